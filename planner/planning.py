"""One job, from request to plan: machines × counts × variants × offers, the front, the risk, the check."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from . import money
from .answer import Assumption, Chance, Excluded, Job, PlanOption, Room, Speed
from .assumptions import Assumptions
from .errors import UsageError
from .estimator import Estimator
from .limits import Limits
from .market import Market
from .models.errors import nearest_names
from .optimizer.check import check_options
from .optimizer.front import Point, pareto_front
from .options import Machine, OptionFinder, Variant, counts
from .own_rigs import AtHand
from .plan import Plan
from .purchase_models import PURCHASE_MODELS, PurchaseModel
from .request import OptimizeRequest
from .risk import Row, Simulated, simulate
from .running_time import checkpoint_hours, run_of
from .terms import Priced, Sale, Tariff, Terms

_NO_RIGS = frozenset({"own", "buy", "amortised"})


@dataclass(frozen=True, slots=True)
class Found:
    """One variant with a price. group: rows of one hardware × count × purchase model × region."""

    id: str
    variant: Variant
    priced: Priced
    hours: Decimal
    cost: Decimal

    @property
    def group(self) -> tuple[str, str, str, str]:
        machine = self.variant.machine
        return machine.provider, machine.id, self.priced.purchase_model, self.priced.region


@dataclass(frozen=True, slots=True)
class Planning:
    """Everything one plan is made from; the parts can be real or made up.

    machines: what may be used, filtered already. precisions: most usual first.
    now: for deadlines given as an instant.
    """

    request: OptimizeRequest
    job: Job
    job_assumptions: tuple[Assumption, ...]
    machines: Sequence[Machine]
    at_hand: AtHand
    market: Market
    assume: Assumptions
    estimator: Estimator
    precisions: Sequence[str]
    now: datetime


def make_plan(planning: Planning) -> Plan:
    """The plan. Raises Infeasible, NoPrice, NothingStored, UsageError, InternalError."""
    request, market = planning.request, planning.market
    terms = terms_of(planning)
    finder = OptionFinder(planning.estimator, planning.precisions, planning.job.global_batch_size)
    excluded: list[Excluded] = []
    found: list[Found] = []
    for machine in planning.machines:
        found += _of_machine(machine, planning, terms, finder, excluded)
    excluded += market.excluded
    limits = Limits.of(request, planning.now)
    limits.refuse_if_empty(found, excluded, market)
    simulated = _simulate(found, planning) if limits.needs_simulation else None
    kept = limits.keep(found, simulated, excluded)
    front = pareto_front([Point(row.id, row.hours, row.cost) for row in kept])
    listed = _listed(kept, front)
    options = _options(listed, front, _simulate(listed, planning), planning, limits)
    check_options(options, [(row.id, row.hours, row.cost) for row in kept])
    return Plan(
        job=planning.job,
        as_of=market.as_of,
        currency=market.currency,
        options=options,
        excluded=tuple(excluded),
        assumptions=(*planning.job_assumptions, *_assumed(planning, terms, listed)),
        warnings=_warnings(planning, terms, listed),
        seed=request.seed,
        evaluated=len(found),
        snapshot=_snapshot(market),
        limits=limits.as_text(),
    )


def terms_of(planning: Planning) -> Terms:
    """What all options share, from request, market and assumptions."""
    request, assume = planning.request, planning.assume
    pue = request.pue if request.pue is not None else assume["own_pue"]
    return Terms(
        market=planning.market,
        assume=assume,
        regions=request.region,
        utilization=request.utilization,
        horizon_months=request.horizon,
        pue=pue,
        tariff=_tariff(request, planning.market),
        checkpoint_hours=checkpoint_hours(planning.job.parameters, assume),
        at_hand=planning.at_hand.counts,
        own_rates=planning.at_hand.rates,
    )


def _tariff(request: OptimizeRequest, market: Market) -> Tariff | None:
    if request.electricity_price is not None:
        return Tariff(request.electricity_price, "given by the user", None, "quoted", None)
    quote = market.electricity()
    if quote is None:
        return None
    return Tariff(quote.unit_price, quote.source, quote.offer.observed_at, "quoted", quote.used)


def _models(request: OptimizeRequest) -> list[PurchaseModel]:
    """--spot: spot alone, beside what the user owns; --no-spot: all but spot."""
    if request.spot is None:
        return list(PURCHASE_MODELS.values())
    if request.spot:
        wanted = {"spot", "own"} if request.own else {"spot"}
        return [model for model in PURCHASE_MODELS.values() if model.id in wanted]
    return [model for model in PURCHASE_MODELS.values() if model.id != "spot"]


def _of_machine(
    machine: Machine, planning: Planning, terms: Terms, finder: OptionFinder, excluded: list[Excluded]
) -> list[Found]:
    """All priced rows of one machine; what keeps it out is added to `excluded`."""
    found: list[Found] = []
    priced_at_all = False
    for count in counts(machine, planning.request.max_gpus):
        sales = [
            (model, sale)
            for model in _models(planning.request)
            for sale in model.sales(machine, count, terms)
        ]
        priced_at_all = priced_at_all or bool(sales)
        if not sales:
            continue
        variants, refused = finder.variants(machine, count)
        excluded += refused
        for variant in variants:
            found += _priced_rows(variant, sales, planning, terms)
    if not priced_at_all:
        reason = _why_no_sale(machine, planning, terms)
        if reason is not None:
            excluded.append(reason)
    return found


def _priced_rows(
    variant: Variant, sales: Sequence[tuple[PurchaseModel, Sale]], planning: Planning, terms: Terms
) -> list[Found]:
    run = run_of(variant, planning.job)
    rows: list[Found] = []
    names: dict[str, int] = {}
    for model, sale in sales:
        priced = model.price(variant, run, sale, terms)
        if priced is None:
            continue
        name = _id_of(variant, priced, sale)
        names[name] = names.get(name, 0) + 1
        if names[name] > 1:
            name = f"{name}#{names[name]}"
        rows.append(Found(name, variant, priced, priced.hours, priced.cost))
    return rows


def _id_of(variant: Variant, priced: Priced, sale: Sale) -> str:
    """provider:hardware:count:purchase model[:region[zone]]:precision-batch, stable between runs."""
    machine, setting = variant.machine, variant.setting
    zone = (sale.quote.offer.zone or "") if sale.quote else ""
    where = f":{zone or priced.region}" if priced.region else ""
    how = f"{setting.precision}-{setting.micro_batch}x{setting.accumulation}"
    how += "-ckpt" if setting.activation_checkpointing else ""
    how += "" if setting.strategy == "ddp" else f"-{setting.strategy}"
    return f"{machine.provider}:{machine.id}:{variant.count}:{priced.purchase_model}{where}:{how}"


def _why_no_sale(machine: Machine, planning: Planning, terms: Terms) -> Excluded | None:
    if machine.provider == "own":
        return None  # a rig without priced parts is in the market's own list
    if machine.gpu_count > planning.request.max_gpus:
        reason = f"has {machine.gpu_count} GPUs, more than --max-gpus {planning.request.max_gpus}"
        return Excluded(machine.id, "limit", reason)
    what = {True: "no spot price", False: "no on-demand price", None: "no price"}[planning.request.spot]
    where = f"in {', '.join(terms.regions)}" if terms.regions else "stored"
    return Excluded(machine.id, "no_price", f"{what} {where} ({machine.provider})")


def _simulate(rows: Sequence[Found], planning: Planning) -> Simulated:
    return simulate([_row(found, planning.assume) for found in rows], planning.request.seed)


def _row(found: Found, assume: Assumptions) -> Row:
    step = found.variant.step
    owned = found.variant.machine.provider == "own"
    training = next(line.hours for line in found.priced.time_lines if line.item == "training")
    return Row(
        priced=found.priced,
        training_hours=float(training),
        speed_low=step.low_seconds / step.step_seconds,
        speed_high=step.high_seconds / step.step_seconds,
        start=assume.figure("own_start_hours" if owned else "cloud_start_hours"),
    )


def _listed(kept: Sequence[Found], front: dict[str, str | None]) -> list[Found]:
    """The front by cost, then the cheapest of each hardware × purchase model × region by cost."""

    def by_cost(row: Found) -> tuple[Decimal, Decimal, str]:
        return row.cost, row.hours, row.id

    on_front = sorted((row for row in kept if front[row.id] is None), key=by_cost)
    cheapest: dict[tuple[str, str, str, str], Found] = {}
    for row in sorted(kept, key=by_cost):
        cheapest.setdefault(row.group, row)
    rest = [row for row in cheapest.values() if front[row.id] is not None]
    return [*on_front, *sorted(rest, key=by_cost)]


def _options(
    listed: Sequence[Found],
    front: dict[str, str | None],
    simulated: Simulated,
    planning: Planning,
    limits: Limits,
) -> tuple[PlanOption, ...]:
    return tuple(
        _option(index, found, front[found.id], simulated, planning, limits)
        for index, found in enumerate(listed)
    )


def _option(
    index: int, found: Found, beaten_by: str | None, simulated: Simulated, planning: Planning, limits: Limits
) -> PlanOption:
    machine, priced, epochs = found.variant.machine, found.priced, planning.job.epochs
    return PlanOption(
        rank=index + 1,
        id=found.id,
        provider=machine.provider,
        hardware=machine.id,
        count=found.variant.count,
        gpu=machine.gpu.id,
        gpu_count=found.variant.gpu_count,
        purchase_model=priced.purchase_model,
        region=priced.region,
        pareto=beaten_by is None,
        dominated_by=beaten_by,
        cost=simulated.spread_of_cost(index, found.cost),
        time_hours=simulated.spread_of_hours(index, found.hours),
        cash_upfront=priced.cash_upfront,
        cost_per_epoch=money.price(money.divided(found.cost, epochs)) if epochs else None,
        price_per_gpu_hour=priced.price_per_gpu_hour,
        cost_lines=priced.lines,
        time_lines=priced.time_lines,
        memory=room_of(found.variant),
        throughput=speed_of(found.variant, planning.job),
        prices=priced.prices,
        chance=Chance(
            simulated.chance_of_hours(index, limits.hours), simulated.chance_of_cost(index, limits.budget)
        ),
        notes=(*priced.notes, *found.variant.step.notes),
    )


def room_of(variant: Variant) -> Room:
    """The variant's memory as an answer."""
    memory = variant.memory
    return Room(
        allocated_bytes=(memory.allocated_bytes.p50, memory.allocated_bytes.p95),
        reserved_bytes=(memory.reserved_bytes.p50, memory.reserved_bytes.p95),
        process_bytes=(memory.process_bytes.p50, memory.process_bytes.p95),
        capacity_bytes=memory.capacity_bytes,
        fits=memory.fits,
        breakdown=memory.breakdown,
        peak_phase=memory.peak_phase,
        peak_op=memory.peak_op,
        tier=memory.tier,
    )


def speed_of(variant: Variant, job: Job) -> Speed:
    """The variant's speed as an answer."""
    step, setting = variant.step, variant.setting
    return Speed(
        value=step.samples_per_second,
        low=step.samples_per_second * step.step_seconds / step.high_seconds,
        high=step.samples_per_second * step.step_seconds / step.low_seconds,
        step_seconds=step.step_seconds,
        step_seconds_low=step.low_seconds,
        step_seconds_high=step.high_seconds,
        steps=job.steps,
        precision=setting.precision,
        global_batch_size=job.global_batch_size,
        micro_batch_size=setting.micro_batch,
        accumulation=setting.accumulation,
        activation_checkpointing=setting.activation_checkpointing,
        strategy=setting.strategy,
        link=setting.link,
        network=setting.network,
        communication_seconds=step.communication_seconds,
        tier=step.tier,
        breakdown=step.breakdown,
        notes=step.notes,
    )


def _assumed(planning: Planning, terms: Terms, listed: Sequence[Found]) -> tuple[Assumption, ...]:
    """Everything used that the user did not say, in a fixed order."""
    found = list(planning.assume.used())
    request = planning.request
    if terms.tariff is not None and request.electricity_price is None:
        price = money.text(terms.tariff.price)
        found.append(
            Assumption("electricity_price", f"electricity {price} {terms.currency}/kWh", terms.tariff.source)
        )
    if not request.precision:
        text = f"precisions tried: {', '.join(planning.precisions)}"
        found.append(Assumption("precision", text, "usual for this workload"))
    seen: dict[str, Assumption] = {}
    for row in listed[:1]:
        for text in (*row.variant.step.assumptions, *row.variant.memory.assumptions):
            seen.setdefault(text, Assumption("estimate", text, "estimators, of the cheapest option"))
    found += seen.values()
    found.append(
        Assumption(
            "left_out", "storage, egress and tax are left out: no rate for them is stored", "price store"
        )
    )
    return tuple(found)


def _warnings(planning: Planning, terms: Terms, listed: Sequence[Found]) -> tuple[str, ...]:
    found = []
    models = {row.priced.purchase_model for row in listed}
    if models & _NO_RIGS and terms.assume["staff_cost_per_rig_year"] == 0:
        found.append("staff is not counted for owned rigs; give --assume staff_cost_per_rig_year=…")
    if terms.tariff is None and models & _NO_RIGS:
        found.append("electricity of owned rigs is left out: no tariff is known; give --electricity-price")
    refused = {e.reason.split()[2] for e in planning.market.excluded if e.code == "currency"}
    found += [f"prices in {name} are left out; give --fx {name}=RATE" for name in sorted(refused)]
    return tuple(found)


def _snapshot(market: Market) -> str:
    """Names the prices that were read: a hash over what was observed."""
    digest = hashlib.sha256()
    for offer in market.offers:
        amount = "" if offer.amount is None else str(offer.amount)
        row = (offer.kind, offer.provider, offer.item, offer.region, offer.contract, amount, offer.currency)
        digest.update("|".join((*row, offer.observed_at.isoformat())).encode())
    return f"sha256:{digest.hexdigest()[:16]}"


def default_as_of() -> datetime:
    """The end of today, UTC: the same all day, so that equal requests of one day give equal bytes."""
    return datetime.now(UTC).replace(hour=23, minute=59, second=59, microsecond=0)


def check_names(kind: str, asked: Sequence[str], known: Sequence[str]) -> None:
    """Raises UsageError for the first name that is not known, with the nearest."""
    for name in asked:
        if name not in known:
            near = nearest_names(name, known)
            hint = f' Did you mean "{near[0]}"?' if near else f" Known: {', '.join(sorted(known))}"
            raise UsageError(f'{kind} = {name}: no {kind} "{name}" has a stored price.{hint}', kind)
