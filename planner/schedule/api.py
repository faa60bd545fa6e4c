"""From a schedule file to its plan: `planner.optimize_schedule`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.answer import Assumption
from planner.errors import Infeasible, UsageError
from planner.request import number

from .plan import PlanPoint, SchedulePlan
from .simulate import DRAWS

if TYPE_CHECKING:
    from planner.market import Market
    from planner.optimizer.relax import ProblemInfeasible, Relaxation

    from .assemble import Parts
    from .file import ScheduleFile
    from .options import Work

POINTS = 12
SECONDS = 45.0
_MOST_TOLD = 6
Progress = Callable[[str, int, int], None]
# Keys of the file that may be given beside it.
OVERRIDES = ("budget", "currency", "as_of", "seed", "objective", "name")


def optimize_schedule(
    schedule: str | Path | Mapping[str, Any],
    *,
    points: int = POINTS,
    confidence: Decimal | None = None,
    seconds: float = SECONDS,
    draws: int = DRAWS,
    progress: Progress | None = None,
    **overrides: Any,
) -> SchedulePlan:
    """The exact front of a whole schedule: what to buy, what to rent and when, one plan a point.

    schedule: the path of a YAML file, or its values. points: most of them. confidence: percentile at which
    deadlines and budget must be kept for a plan to be chosen [percent]; None: the central figures.
    seconds: wall time of the search, after which the points found so far are answered with their gaps.
    progress: called with (what is done, done, of how many). overrides: keys of the file, such as budget.
    Raises UsageError, Infeasible (naming what to relax), NoPrice and NothingStored.
    """
    from .reading import checked

    values, name = _values(schedule)
    for key, value in overrides.items():
        if key not in OVERRIDES:
            raise UsageError(f'no key "{key}"; a schedule\'s flags: {", ".join(OVERRIDES)}', key)
        if value is not None:
            values[key] = _with_currency(value, values) if key == "budget" else value
    file = checked(values, name)
    return _plan(file, values, points, confidence, seconds, draws, progress or _silent)


def _with_currency(budget: Any, values: Mapping[str, Any]) -> Any:
    """A bare number given beside the file is in the file's own currency."""
    try:
        number(budget)
    except ValueError:
        return budget
    return f"{budget} {values.get('currency', 'USD')}"


def runs_as_rows(schedule: str | Path | Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each run of a schedule with its dates, once the file is sound. Raises UsageError."""
    from planner.answer import moment

    from .build import rig_counts
    from .options import request_of
    from .reading import checked
    from .rigs import known_rigs
    from .runs import calendar_of, runs_of

    values, name = _values(schedule)
    file = checked(values, name)
    calendar = calendar_of(file)
    runs = runs_of(file, calendar)
    known_rigs(rig_counts(file))
    for job in file.jobs:
        _known_workload(job.id, request_of(job, file).model)
    return [
        {
            "run": run.id,
            "workload": run.job.workload,
            "release": moment(calendar.moment(run.release)),
            "deadline": None if run.deadline is None else moment(calendar.moment(run.deadline)),
            "after": ", ".join(runs[before].id for before in run.predecessors) or None,
        }
        for run in runs
    ]


def _known_workload(job: str, model: str) -> None:
    from planner.api import find_workload

    try:
        find_workload(model)
    except UsageError as error:
        raise UsageError(f"{job}: {error}", "jobs") from error


def _values(schedule: str | Path | Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    from .reading import load

    if isinstance(schedule, str | Path):
        return load(schedule), str(schedule)
    if isinstance(schedule, Mapping):
        return dict(schedule), "schedule"
    raise UsageError("give the path of a schedule file, or its values", "schedule")


def _plan(
    file: ScheduleFile,
    values: dict[str, Any],
    points: int,
    confidence: Decimal | None,
    seconds: float,
    draws: int,
    progress: Progress,
) -> SchedulePlan:
    from planner.optimizer.relax import ProblemInfeasible
    from planner.optimizer.schedule_front import front

    from .assemble import points_of

    parts, market = _parts(file, progress)
    try:
        choices = front(
            parts.built.problem,
            points=points,
            seconds=seconds,
            progress=lambda done, of: progress("points of the front", done, of),
        )
    except ProblemInfeasible as error:
        raise _infeasible(error, parts) from error
    found = points_of(parts, choices, confidence, draws)
    return _answer(parts, market, values, found, confidence)


def parts_of(file: ScheduleFile) -> tuple[Parts, Market]:
    """Everything that a schedule's plans are decided from, and the prices it rests on."""
    return _parts(file, _silent)


def _parts(file: ScheduleFile, progress: Progress) -> tuple[Parts, Market]:
    """Everything that is decided from, and the prices it rests on."""
    from planner.api import market_for
    from planner.planning import default_as_of

    from .assemble import Parts
    from .build import build, rig_counts
    from .options import Workshop, request_of
    from .rigs import owned_of, rigs_of
    from .runs import calendar_of, runs_of

    calendar = calendar_of(file)
    runs = runs_of(file, calendar)
    first = request_of(file.jobs[0], file)
    market = market_for(first, first.as_of or default_as_of())
    owned = owned_of(rig_counts(file), market)
    workshop = Workshop(file, market, owned, first.as_of or datetime.now(UTC))
    works: list[Work] = []
    for run in runs:
        works.append(workshop.work(run))
        progress("options of the runs", len(works), len(runs))
    rigs = rigs_of(file, calendar, works[0].terms)
    built = build(file, calendar, runs, works, rigs)
    return Parts(file, calendar, runs, tuple(works), rigs, built), market


def _infeasible(error: ProblemInfeasible, parts: Parts) -> Infeasible:
    """Names what to relax, in the file's own words."""
    if not error.relaxations:
        said = "; ".join(error.reasons)
        return Infeasible("limits", "limits", said, f"no plan keeps every limit of {parts.file.name}: {said}")
    limits = " and ".join(dict.fromkeys(each.limit for each in error.relaxations))
    nearest = _set(error.relaxations, parts)
    message = f"no plan keeps every limit of {parts.file.name}; relax {nearest}"
    for other in error.alternatives:
        message += f"\nor instead relax {_set(other, parts)}"
    return Infeasible(limits, limits, nearest, message)


def _set(relaxations: Sequence[Relaxation], parts: Parts) -> str:
    """Relaxations that go together, in words; of very many the first."""
    told = [_relaxed(each, parts) for each in relaxations[:_MOST_TOLD]]
    more = len(relaxations) - len(told)
    return "; and ".join(told) + (f"; and {more} more like these" if more else "")


def _relaxed(each: Relaxation, parts: Parts) -> str:
    """One relaxation: the limit, what it is, what it would have to be."""
    currency, calendar = parts.file.currency, parts.calendar
    where = f" of {each.item}" if each.item else ""
    if each.limit in ("deadline", "months"):
        asked, needed = calendar.moment(each.asked), calendar.moment(math.ceil(each.needed * 60) / 60)
        later = each.needed - each.asked
        what = "the deadline" if each.limit == "deadline" else "the schedule's end for the run"
        return (
            f"{what}{where}: {asked:%Y-%m-%d %H:%M} UTC is {later:,.1f} h too early, "
            f"{needed:%Y-%m-%d %H:%M} would do"
        )
    if each.limit == "month budget":
        month = calendar.name(int(each.item))
        fixed = float(parts.rigs.fixed_by_month[int(each.item)])
        asked_sum, needed_sum = each.asked + fixed, _up(each.needed + fixed)
        return f"monthly_budget in {month}: {needed_sum:,.2f} {currency} instead of {asked_sum:,.2f}"
    if each.limit == "budget":
        fixed = float(sum(parts.rigs.fixed_by_month, Decimal(0)))
        return f"budget: {_up(each.needed + fixed):,.2f} {currency} instead of {each.asked + fixed:,.2f}"
    unit = {"quota": "GPUs", "power": "W", "rigs": "rigs"}[each.limit]
    return f"{each.limit}{where}: {each.needed:g} {unit} instead of {each.asked:g}"


def _up(amount: float) -> float:
    """To the cent above: a cent less would not do. [currency]"""
    return math.ceil(amount * 100 - 1e-6) / 100


def _answer(
    parts: Parts,
    market: Market,
    values: dict[str, Any],
    points: Sequence[PlanPoint],
    confidence: Decimal | None,
) -> SchedulePlan:
    from planner.planning import snapshot_of

    from .assemble import prices_used

    file, calendar = parts.file, parts.calendar
    works = list({id(work): work for work in parts.works}.values())
    excluded = {(each.id, each.reason): each for work in works for each in (*work.excluded, *market.excluded)}
    return SchedulePlan(
        name=file.name,
        as_of=market.as_of,
        snapshot=snapshot_of(market),
        currency=file.currency,
        seed=file.seed,
        objective=file.objective,
        starts=calendar.starts,
        ends=calendar.ends,
        time_zone=file.time_zone,
        discount_rate=file.costs.discount_rate,
        limits=_limits(file, confidence),
        schedule=_plain(values),
        front=tuple(points),
        chosen=next((point.point for point in points if point.meets_limits), None),
        prices=prices_used(works, points, parts),
        excluded=tuple(excluded.values()),
        assumptions=_assumptions(parts, works),
        warnings=_warnings(parts, points, market),
    )


def _limits(file: ScheduleFile, confidence: Decimal | None) -> dict[str, str]:
    found = {}
    for key, amount in (("budget", file.budget), ("monthly_budget", file.monthly_budget)):
        if amount is not None:
            found[key] = f"{amount[0]:f} {amount[1]}"
    deadlines = sum(job.deadline is not None for job in file.jobs)
    if deadlines:
        found["deadlines"] = f"{deadlines} of {len(file.jobs)} jobs"
    if confidence is not None:
        found["confidence"] = f"P{confidence:f}"
    return found


def _assumptions(parts: Parts, works: Sequence[Work]) -> tuple[Assumption, ...]:
    """Everything used that the file does not say, each once."""
    from planner import money

    found = [
        Assumption("prices", "today's prices hold for the whole schedule: none is forecast", "schedule"),
        Assumption("rigs_at_hand", "rigs at hand are kept: the resale they lose is in no plan", "schedule"),
        Assumption("schedule_end", "every run ends within the schedule's last month", "schedule"),
        Assumption("left_out", "storage and egress are left out: no rate for them is stored", "price store"),
    ]
    tariff = works[0].terms.tariff
    if tariff is not None and parts.file.costs.electricity is None:
        said = f"electricity {money.text(tariff.price)} {parts.file.currency}/kWh"
        found.append(Assumption("electricity_price", said, tariff.source))
    found += [each for work in works for each in work.told]
    found += works[0].terms.assume.used()
    return tuple({(each.key, each.text): each for each in found}.values())


def _warnings(parts: Parts, points: Sequence[PlanPoint], market: Market) -> tuple[str, ...]:
    found = []
    if parts.rigs.costs and parts.file.costs.staff is None:
        found.append("staff is not counted for owned rigs; give costs: {staff: 1200 USD/rig-year}")
    if parts.rigs.costs and parts.works[0].terms.tariff is None:
        found.append(
            "electricity of owned rigs is left out: no tariff is known; give costs: {electricity: …}"
        )
    for currency in market.currencies_without_rate:
        found.append(f"prices in {currency} are left out; give fx: {{{currency}: RATE}}")
    loose = [point.point for point in points if not point.proven]
    if loose:
        said = ", ".join(map(str, loose))
        found.append(f"the search ended before points {said} were proven; their gap says how far off at most")
    return tuple(found)


def _plain(value: Any) -> Any:
    """Values of the file as JSON has them."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _silent(what: str, done: int, of: int) -> None:
    return None
