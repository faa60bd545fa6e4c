"""From the numbers of a Choice back to a plan: runs with their options, rigs, promises, ledger and risk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from planner import money
from planner.answer import PlanOption, PriceUsed
from planner.errors import InternalError
from planner.optimizer.problem import Choice
from planner.terms import CERTAIN, Risk, Terms

from . import ledger
from .build import Built, Source
from .dates import Calendar
from .file import ScheduleFile
from .options import Choosable, Work, converted
from .plan import CommitmentHeld, JobPlan, Payment, PlanPoint, Purchase, ScheduleRisk
from .rigs import RigCost, Rigs
from .runs import Run
from .simulate import SimJob, SimOutcome, SimPoint, simulate

# Floats of the solver against exact sums: what may lie between them, as a share and as an amount.
_SAME = 1e-6


@dataclass(frozen=True, slots=True)
class Parts:
    """All that points are assembled from."""

    file: ScheduleFile
    calendar: Calendar
    runs: tuple[Run, ...]
    works: tuple[Work, ...]
    rigs: Rigs
    built: Built


@dataclass(frozen=True, slots=True)
class _Draft:
    """One point before it is simulated."""

    choice: Choice
    placed: tuple[ledger.Placed, ...]
    levels: ledger.Levels
    purchases: tuple[tuple[RigCost, int, Purchase], ...]
    paid: tuple[tuple[Payment, Risk], ...]
    of_runs: tuple[Payment, ...]


def points_of(
    parts: Parts, choices: Sequence[Choice], confidence: Decimal | None, draws: int
) -> tuple[PlanPoint, ...]:
    """Every choice as a point, cheapest first. Raises InternalError where exact sums and solver disagree."""
    drafts = [_draft(parts, choice) for choice in choices]
    budget = converted(parts.file.budget, parts.file, "budget")
    outcomes = simulate(
        [_simulated(parts, draft) for draft in drafts], seed=parts.file.seed, draws=draws, budget=budget
    )
    details = _details(parts, drafts)
    return tuple(
        _point(parts, number, draft, outcome, details, budget, confidence, draws)
        for number, (draft, outcome) in enumerate(zip(drafts, outcomes, strict=True), 1)
    )


def _draft(parts: Parts, choice: Choice) -> _Draft:
    file, calendar, rigs = parts.file, parts.calendar, parts.rigs
    placed = tuple(_placed(parts, number, choice) for number in range(len(parts.runs)))
    held = [converted(each.held, file, "held") or money.ZERO for each in file.cloud.commitments]
    both = [ledger.level_of(level, have) for level, have in zip(choice.level, held, strict=True)]
    levels = ledger.Levels(tuple(level for level, _ in both), tuple(new for _, new in both))
    purchases = tuple(ledger.purchases_of(rigs, choice.bought))
    paid: list[tuple[Payment, Risk]] = []
    for cost, month, purchase in purchases:
        paid += ledger.purchase_payments(cost, month, purchase, rigs)
    for cost in rigs.costs:
        paid += [(each, CERTAIN) for each in ledger.keep_payments(cost, cost.at_hand, 0, calendar)]
    paid += [(each, CERTAIN) for each in ledger.promise_payments(file, levels, calendar)]
    carbon = file.costs.carbon_intensity
    of_runs = tuple(pay for each in placed for pay in ledger.run_payments(each, calendar, carbon))
    draft = _Draft(choice, placed, levels, purchases, tuple(paid), of_runs)
    _check(parts, draft)
    return draft


def _placed(parts: Parts, number: int, choice: Choice) -> ledger.Placed:
    source: Source = parts.built.sources[number][choice.option[number]]
    start = choice.start[number]
    terms = parts.works[number].terms
    return ledger.Placed(
        run=parts.runs[number],
        chosen=source.choosable,
        start=start,
        end=start + float(source.choosable.row.hours),
        commitment=source.commitment,
        list_price=_list_price(source, terms),
    )


def _list_price(source: Source, terms: Terms) -> Decimal | None:
    """What a unit of its compute line costs on demand in the same place; None where none is stored."""
    row = source.choosable.row
    quote = row.sale.quote
    if quote is None:
        return None
    machine = row.run.variant.machine.id
    same = [
        sale.quote.unit_price
        for sale in terms.market.cloud(machine, frozenset({"on_demand"}), (row.sale.region,))
        if sale.quote is not None
        and sale.quote.offer.unit == quote.offer.unit
        and sale.quote.offer.provider == quote.offer.provider
    ]
    return max(min(same), quote.unit_price) if same else None


def _check(parts: Parts, draft: _Draft) -> None:
    """The ledger against what the solver thought it costs, where no discounting lies between them."""
    if parts.file.costs.discount_rate:
        return
    fixed = sum(parts.rigs.fixed_by_month, money.ZERO)
    exact = float(_total(draft) - fixed)
    rounding = 1e-6 * parts.calendar.edge_hours[-1] * len(draft.levels.new)  # levels are rounded up
    if abs(exact - draft.choice.cost) > _SAME * max(1.0, abs(exact)) + rounding:
        raise InternalError(f"a plan adds up to {exact:.6f} but was chosen at {draft.choice.cost:.6f}")


def _total(draft: _Draft) -> Decimal:
    return money.total([*(pay.amount for pay in draft.of_runs), *(pay.amount for pay, _ in draft.paid)])


def _simulated(parts: Parts, draft: _Draft) -> SimPoint:
    problem = parts.built.problem
    jobs = []
    for number, placed in enumerate(draft.placed):
        job, option = problem.jobs[number], problem.jobs[number].options[draft.choice.option[number]]
        draw = placed.chosen.row.draw(placed.chosen.priced)
        covered = placed.commitment is not None
        jobs.append(
            SimJob(
                draw=draw,
                release=job.release,
                deadline=parts.runs[number].deadline,
                origin=job.origin,
                start=placed.start,
                predecessors=job.predecessors,
                rig=option.rig,
                rigs=option.rigs,
                cost=money.ZERO if covered else placed.chosen.cost,
            )
        )
    rigs_from = []
    for cost, by_month in zip(parts.rigs.costs, draft.choice.bought, strict=True):
        steps = [(0.0, cost.at_hand)]
        steps += [(parts.calendar.edge_hours[month], count) for month, count in enumerate(by_month) if count]
        rigs_from.append(tuple(steps))
    return SimPoint(
        jobs=tuple(jobs),
        fixed=tuple((pay.amount, risk) for pay, risk in draft.paid),
        rigs_from=tuple(rigs_from),
    )


def _details(parts: Parts, drafts: Iterable[_Draft]) -> dict[tuple[int, str], PlanOption]:
    """(work, option id) -> the option with all its terms; each made once."""
    wanted: dict[int, tuple[Work, dict[str, Choosable]]] = {}
    for draft in drafts:
        for work, placed in zip(parts.works, draft.placed, strict=True):
            wanted.setdefault(id(work), (work, {}))[1][placed.chosen.id] = placed.chosen
    found = {}
    for key, (work, chosen) in wanted.items():
        for name, option in work.plan_options(chosen.values(), parts.file.seed).items():
            found[key, name] = option
    return found


def _point(
    parts: Parts,
    number: int,
    draft: _Draft,
    outcome: SimOutcome,
    details: Mapping[tuple[int, str], PlanOption],
    budget: Decimal | None,
    confidence: Decimal | None,
    draws: int,
) -> PlanPoint:
    book = sorted(
        (*draft.of_runs, *(pay for pay, _ in draft.paid)), key=lambda pay: (pay.due, pay.job, pay.description)
    )
    jobs = tuple(
        _job_plan(parts, index, placed, outcome, details[id(parts.works[index]), placed.chosen.id])
        for index, placed in enumerate(draft.placed)
    )
    late = max((each for each in (_late(placed) for placed in draft.placed) if each is not None), default=0.0)
    energy = [pay.energy_kwh for pay in book if pay.energy_kwh is not None]
    carbon = [pay.co2_kg for pay in book if pay.co2_kg is not None]
    return PlanPoint(
        point=number,
        kind=_kind(draft),
        cost=outcome.cost,
        present_value=present_value(book, parts.calendar, parts.file.costs.discount_rate),
        cash_upfront=money.total(
            pay.amount for pay in book if pay.due <= parts.calendar.starts and pay.amount > 0
        ),
        finish=max(job.end for job in jobs),
        time_hours=outcome.hours,
        late_hours=round(late, 6),
        energy_kwh=money.total(energy) if energy else None,
        co2_kg=money.total(carbon) if carbon else None,
        gap=draft.choice.gap,
        proven=draft.choice.proven,
        meets_limits=_meets(outcome, late, budget, confidence),
        purchases=tuple(purchase for _, _, purchase in draft.purchases),
        commitments=_commitments(parts, draft),
        jobs=jobs,
        ledger=tuple(book),
        risk=ScheduleRisk(
            draws=draws,
            on_time=outcome.on_time,
            in_budget=outcome.in_budget,
            cvar95=outcome.cvar95,
            finish_p10=parts.calendar.moment(outcome.finish_p10),
            finish_p90=parts.calendar.moment(outcome.finish_p90),
            not_separable_from=tuple(place + 1 for place in outcome.not_separable_from),
        ),
        notes=_notes(draft),
    )


def _kind(draft: _Draft) -> Literal["cloud", "hybrid", "owned"]:
    owned = [placed.chosen.owned for placed in draft.placed]
    if not any(owned) and not draft.purchases:
        return "cloud"
    return "owned" if all(owned) else "hybrid"


def _late(placed: ledger.Placed) -> float | None:
    return None if placed.run.deadline is None else max(0.0, placed.end - placed.run.deadline - 1e-6)


def _meets(outcome: SimOutcome, late: float, budget: Decimal | None, confidence: Decimal | None) -> bool:
    """By the central figures, or at the percentile asked for."""
    if confidence is None:
        return late == 0 and (budget is None or outcome.cost.p50 <= budget)
    sure = float(confidence) / 100
    return (outcome.on_time is None or outcome.on_time >= sure) and (
        outcome.in_budget is None or outcome.in_budget >= sure
    )


def _job_plan(
    parts: Parts, index: int, placed: ledger.Placed, outcome: SimOutcome, option: PlanOption
) -> JobPlan:
    run, calendar, chosen = placed.run, parts.calendar, placed.chosen
    carbon = parts.file.costs.carbon_intensity
    energy = chosen.energy_kwh
    return JobPlan(
        id=run.id,
        workload=parts.works[index].job.workload,
        project=run.job.project,
        team=run.job.team,
        tags=run.job.tags,
        option=chosen.id,
        provider=option.provider,
        hardware=option.hardware,
        count=option.count,
        gpu=option.gpu,
        gpu_count=option.gpu_count,
        purchase_model="savings_plan" if placed.commitment is not None else option.purchase_model,
        region=option.region,
        release=calendar.moment(run.release),
        deadline=None if run.deadline is None else calendar.moment(run.deadline),
        start=calendar.moment(placed.start),
        end=calendar.moment(placed.end),
        hours=outcome.job_hours[index],
        cost=outcome.job_costs[index],
        energy_kwh=energy,
        co2_kg=None if energy is None or carbon is None else money.quantity(energy * carbon),
        predecessors=tuple(parts.runs[before].id for before in run.predecessors),
        detail=option.to_json(),
    )


def _commitments(parts: Parts, draft: _Draft) -> tuple[CommitmentHeld, ...]:
    found = []
    calendar = parts.calendar
    for number, each in enumerate(parts.file.cloud.commitments):
        level, new = draft.levels.level[number], draft.levels.new[number]
        if not level:
            continue
        used = sum(float(placed.chosen.cost) for placed in draft.placed if placed.commitment == number)
        covers = float(level) / (1 - float(each.discount)) * calendar.edge_hours[-1]
        for amount, held in ((level - new, True), (new, False)):
            if amount:
                found.append(
                    CommitmentHeld(
                        id=each.id, provider=each.provider, kind="savings plan", level=amount,
                        discount=each.discount, start=calendar.starts, end=calendar.ends,
                        used_share=round(used / covers, 6), held=held,
                    )
                )  # fmt: skip
    return tuple(found)


def _notes(draft: _Draft) -> tuple[str, ...]:
    if any(placed.commitment is not None for placed in draft.placed):
        return ("runs under a promised spend pay nothing themselves: the promise is paid by the month",)
    return ()


def present_value(book: Iterable[Payment], calendar: Calendar, rate: Decimal) -> Decimal:
    """Of all payments at the start of the schedule: amount / (1 + rate)^(years). [currency]"""
    if not rate:
        return money.total(pay.amount for pay in book)
    year = Decimal(365 * 24 * 3600)
    growth = 1 + rate
    total = sum(
        (
            pay.amount / growth ** (Decimal((pay.due - calendar.starts).total_seconds()) / year)
            for pay in book
        ),
        money.ZERO,
    )
    return money.quantity(total)


def prices_used(works: Iterable[Work], points: Iterable[PlanPoint], parts: Parts) -> tuple[PriceUsed, ...]:
    """Every stored price a payment of any point rests on, each once."""
    known: dict[str, PriceUsed] = {}
    for work in works:
        for each in work.choosable:
            for used in each.priced.prices:
                known.setdefault(used.id, used)
    for cost in parts.rigs.costs:
        for part in cost.parts:
            known.setdefault(part.quote.used.id, part.quote.used)
    wanted = {name for point in points for pay in point.ledger for name in pay.price_ids}
    return tuple(known[name] for name in sorted(wanted & known.keys()))
