"""Every way to run and pay for one job, as rows that are cheap to compare; lines are made for few of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from .answer import Excluded, Job
from .market import Sale
from .options import Machine, OptionFinder, counts
from .purchase_models import PURCHASE_MODELS, PurchaseModel
from .request import OptimizeRequest
from .risk import Draw
from .running_time import Run, Timed
from .terms import Priced, Terms


@dataclass(frozen=True, slots=True)
class Row:
    """One variant under one offer. hours [h] and cost [currency] are central; price() gives their lines."""

    run: Run
    model: PurchaseModel
    sale: Sale
    timed: Timed
    hours: Decimal
    cost: Decimal

    @property
    def id(self) -> str:
        """provider:hardware:count:purchase model[:region or zone]:precision-batch, stable between runs."""
        variant, offer = self.run.variant, self.sale.quote.offer if self.sale.quote else None
        machine, setting = variant.machine, variant.setting
        parts = [machine.provider, machine.id, str(variant.count), self.model.id]
        if offer is not None:
            parts.append(offer.zone or offer.region)
            if offer.contract != self.model.id:
                parts.append(f"{offer.contract}{f'-{offer.payment}' if offer.payment else ''}")
        how = f"{setting.precision}-{setting.micro_batch}x{setting.accumulation}"
        how += "-ckpt" if setting.activation_checkpointing else ""
        how += "" if setting.strategy == "ddp" else f"-{setting.strategy}"
        return ":".join((*parts, how))

    @property
    def group(self) -> tuple[str, str, str, str]:
        """Of each group the cheapest is listed: hardware × purchase model × region."""
        machine = self.run.variant.machine
        return machine.provider, machine.id, self.model.id, self.sale.region

    @property
    def shape(self) -> tuple[object, ...]:
        """Rows of one shape have the same simulated luck, up to their price."""
        offer = self.sale.quote.offer if self.sale.quote else None
        window = (offer.amount, offer.amount_low, offer.amount_high) if offer and offer.amount_low else ()
        return id(self.run), self.model.id, *window

    def price(self, terms: Terms) -> Priced:
        """The lines; they add up to hours and cost."""
        return self.model.price(self.run, self.timed, self.sale, terms)

    def draw(self, priced: Priced) -> Draw:
        """What the simulation needs of it."""
        step = self.run.variant.step
        return Draw(
            priced=priced,
            hours=float(self.hours),
            paid_hours=float(self.timed.paid),
            training_hours=float(self.run.training),
            speed_low=step.low_seconds / step.step_seconds,
            speed_high=step.high_seconds / step.step_seconds,
            start=self.run.start,
        )


def wanted_models(request: OptimizeRequest) -> list[PurchaseModel]:
    """--spot: spot alone, beside what the user owns; --no-spot: all but spot."""
    if request.spot is None:
        return list(PURCHASE_MODELS.values())
    if request.spot:
        wanted = {"spot", "own"} if request.own else {"spot"}
        return [model for model in PURCHASE_MODELS.values() if model.id in wanted]
    return [model for model in PURCHASE_MODELS.values() if model.id != "spot"]


def rows_of_machine(
    machine: Machine,
    job: Job,
    request: OptimizeRequest,
    terms: Terms,
    finder: OptionFinder,
    excluded: list[Excluded],
) -> list[Row]:
    """All rows of one machine in all counts; what keeps it out is added to `excluded`."""
    found: list[Row] = []
    models = wanted_models(request)
    sold = False
    for count in counts(machine, request.max_gpus):
        sales = [(model, sale) for model in models for sale in model.sales(machine, count, terms)]
        if not sales:
            continue
        sold = True
        variants, refused = finder.variants(machine, count)
        excluded += refused
        for variant in variants:
            found += _rows_of_run(Run(variant, job, terms), sales, terms)
    if not sold:
        excluded += _why_unsold(machine, request, terms)
    return found


def _rows_of_run(run: Run, sales: Sequence[tuple[PurchaseModel, Sale]], terms: Terms) -> list[Row]:
    found = []
    for model, sale in sales:
        timed = model.timed(run)
        if timed is None:
            name = f"{run.variant.machine.provider}/{run.variant.machine.id} {model.id}"
            reason = "would hardly ever end: too much work between interruptions"
            terms.market.refuse(name, "interruptions", reason)
            continue
        cost = model.cost(run, timed, sale, terms)
        if cost is not None:
            found.append(Row(run, model, sale, timed, timed.wall, cost))
    return found


def _why_unsold(machine: Machine, request: OptimizeRequest, terms: Terms) -> list[Excluded]:
    if machine.provider == "own":
        return []  # a rig without priced parts is in the market's own list
    if machine.gpu_count > request.max_gpus:
        reason = f"has {machine.gpu_count} GPUs, more than --max-gpus {request.max_gpus}"
        return [Excluded(machine.id, "limit", reason)]
    what = {True: "no spot price", False: "no on-demand price", None: "no price"}[request.spot]
    where = f"in {', '.join(terms.regions)}" if terms.regions else "stored"
    return [Excluded(machine.id, "no_price", f"{what} {where} ({machine.provider})")]
