"""One job, from request to plan: rows, limits, the front, the risk, the check."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from . import money
from .answer import Assumption, Excluded, Job
from .assemble import options_of
from .assumptions import Assumptions
from .errors import UsageError
from .estimator import Estimator
from .feeding import Feeding
from .limits import Limits, why_empty
from .market import Market
from .models.errors import nearest_names
from .optimizer.check import check_options
from .optimizer.front import Point, pareto_front
from .options import Machine, OptionFinder
from .own_rigs import AtHand
from .plan import Plan
from .request import OptimizeRequest
from .rows import Row, rows_of_machine
from .running_time import checkpoint_hours
from .terms import Tariff, Terms

_OF_RIGS = frozenset({"own", "buy", "amortised"})


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
    request, market, job = planning.request, planning.market, planning.job
    terms = terms_of(planning)
    finder = OptionFinder(
        planning.estimator,
        planning.precisions,
        job.global_batch_size,
        by_slow_end=request.confidence is not None,
        feeding=Feeding.of(vars(request)),
        compiled=request.torch_compile,
    )
    excluded: list[Excluded] = []
    rows: list[Row] = []
    for machine in planning.machines:
        rows += rows_of_machine(machine, job, request, terms, finder, excluded)
    excluded += market.excluded
    limits = Limits.of(request, planning.now)
    if not rows:
        raise why_empty(excluded, finder.nearest_misfit, market)
    kept = limits.keep(rows, terms, request.seed, excluded)
    # The front knows rows by their place: ids are text, and only few of them are ever read.
    points = [Point(str(place), row.hours, row.cost) for place, row in enumerate(kept)]
    front = pareto_front(points)
    listed = _listed(kept, front)
    discount_rate = terms.assume["discount_rate_per_year"]
    options = options_of(listed, kept, front, terms, job, planning.estimator, limits, request.seed)
    check_options(options, listed, points)
    return Plan(
        job=job,
        as_of=market.as_of,
        currency=market.currency,
        options=options,
        excluded=tuple(excluded),
        assumptions=(*planning.job_assumptions, *_assumed(planning, terms, kept[int(listed[0])])),
        warnings=_warnings(planning, terms, {option.purchase_model for option in options}),
        seed=request.seed,
        evaluated=len(rows),
        snapshot=snapshot_of(market),
        limits=limits.as_text(),
        discount_rate=discount_rate,
        request=request.to_json(),
    )


def terms_of(planning: Planning) -> Terms:
    """What all options share, from request, market and assumptions."""
    request, assume = planning.request, planning.assume
    return Terms(
        market=planning.market,
        assume=assume,
        regions=request.region,
        utilization=request.utilization,
        horizon_months=request.horizon,
        pue=request.pue if request.pue is not None else assume["own_pue"],
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


def _listed(kept: Sequence[Row], front: dict[str, str | None]) -> list[str]:
    """The front by cost, then the cheapest of each hardware × purchase model × region by cost; places."""

    def by_cost(place: int) -> tuple[Decimal, Decimal, str]:
        return kept[place].cost, kept[place].hours, kept[place].id

    order = sorted(range(len(kept)), key=lambda place: (kept[place].cost, kept[place].hours))
    on_front = [place for place in order if front[str(place)] is None]
    cheapest: dict[tuple[str, str, str, str], int] = {}
    for place in order:
        cheapest.setdefault(kept[place].group, place)
    rest = [place for place in cheapest.values() if front[str(place)] is not None]
    return [str(place) for part in (on_front, rest) for place in sorted(part, key=by_cost)]


def _assumed(planning: Planning, terms: Terms, cheapest: Row) -> tuple[Assumption, ...]:
    """Everything used that the user did not say, in a fixed order."""
    found = list(planning.assume.used())
    request = planning.request
    if terms.tariff is not None and request.electricity_price is None:
        text = f"electricity {money.text(terms.tariff.price)} {terms.currency}/kWh"
        found.append(Assumption("electricity_price", text, terms.tariff.source))
    if not request.precision:
        text = f"precisions tried: {', '.join(planning.precisions)}"
        found.append(Assumption("precision", text, "usual for this workload"))
    text = "several GPUs: ddp where replicas fit at the full micro-batch, else fsdp as well"
    found.append(Assumption("strategy", text, "how people choose"))
    variant = cheapest.run.variant
    for text in dict.fromkeys((*variant.step.assumptions, *variant.memory.assumptions)):
        found.append(Assumption("estimate", text, "estimators, of the cheapest option"))
    left_out = "storage, egress and tax are left out: no rate for them is stored"
    return (*found, Assumption("left_out", left_out, "price store"))


def _warnings(planning: Planning, terms: Terms, models: set[str]) -> tuple[str, ...]:
    found = []
    if models & _OF_RIGS and terms.assume["staff_cost_per_rig_year"] == 0:
        found.append("staff is not counted for owned rigs; give --assume staff_cost_per_rig_year=…")
    if terms.tariff is None and models & _OF_RIGS:
        found.append("electricity of owned rigs is left out: no tariff is known; give --electricity-price")
    for currency in planning.market.currencies_without_rate:
        found.append(f"prices in {currency} are left out; give --fx {currency}=RATE")
    return tuple(found)


def snapshot_of(market: Market) -> str:
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


# us-east-1, us-gov-west-1, europe-west4: a region that may well exist, though no price of it is stored.
_LIKE_A_REGION = re.compile(r"[a-z]{2,12}(-gov|-iso)?-[a-z]{4,12}-?\d{1,2}")


def check_names(kind: str, asked: Sequence[str], known: Sequence[str]) -> None:
    """Raises UsageError for the first name that is not known, with the nearest.

    A region that looks like one passes: it may exist, and hardware without a price there is excluded with
    that reason.
    """
    for name in asked:
        if name not in known and not (kind == "region" and _LIKE_A_REGION.fullmatch(name)):
            near = nearest_names(name, known)
            hint = f' Did you mean "{near[0]}"?' if near else f" Known: {', '.join(sorted(known))}"
            raise UsageError(f'{kind} = {name}: no {kind} "{name}" has a stored price.{hint}', kind)
