"""How sure a schedule's plans are: cost and dates of every point under the same simulated luck.

Each run is drawn as a single job's options are (planner/risk.py): how far the speed model is off,
electricity, prices and resale are one fact for all runs, start-up, losses and outages each run's own. A run
that ends late holds its rigs longer, so starts are found again in every draw: runs take rigs in order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from planner import money, risk
from planner.answer import Cost, Hours
from planner.terms import Risk

Floats = npt.NDArray[np.float64]
DRAWS = 2000
_WORST = 0.05


@dataclass(frozen=True, slots=True)
class SimJob:
    """One run of one point. draw: its option. Hours count from the start of the schedule. [h]

    start: as planned; a rented run never starts before it. rig: index of its rig type, None for rented.
    cost: what the run costs in the plan, where that is not `draw.priced.cost`. [currency]
    """

    draw: risk.Draw
    release: float
    deadline: float | None
    origin: float
    start: float
    predecessors: tuple[int, ...]
    rig: int | None
    rigs: int
    cost: Decimal


@dataclass(frozen=True, slots=True)
class SimPoint:
    """One plan. fixed: amounts that are no run's, with what moves them: rigs, resale, fees. [currency]

    rigs_from: per rig type, (hour, how many more from then on).
    """

    jobs: tuple[SimJob, ...]
    fixed: tuple[tuple[Decimal, Risk], ...]
    rigs_from: tuple[tuple[tuple[float, int], ...], ...]


@dataclass(frozen=True, slots=True)
class SimOutcome:
    """p50 everywhere is the plan's own figure, p10 and p90 are of the draws. finish: of the last run. [h]

    on_time: None where no run has a deadline. in_budget: None without a budget. cvar95: mean cost of the
    dearest 5 % of draws. not_separable_from: points (by place) whose 80 % range of cost meets this one's.
    """

    cost: Cost
    hours: Hours
    job_costs: tuple[Cost, ...]
    job_hours: tuple[Hours, ...]
    on_time: float | None
    in_budget: float | None
    cvar95: Decimal
    finish_p10: float
    finish_p90: float
    not_separable_from: tuple[int, ...] = ()


def simulate(
    points: Sequence[SimPoint],
    *,
    seed: int,
    draws: int = DRAWS,
    budget: Decimal | None = None,
    weighted: Sequence[float] | None = None,
) -> tuple[SimOutcome, ...]:
    """The outcome of every point under common random numbers: same seed, same draws.

    weighted: weight of each run where the objective sums what is above 0; None: the largest counts.
    """
    drawn = _runs(points, seed, draws)
    found = []
    for place, point in enumerate(points):
        hours = np.array([drawn[place, number][0] for number in range(len(point.jobs))])
        costs = np.array([drawn[place, number][1] for number in range(len(point.jobs))])
        found.append(_outcome(point, hours, costs, seed, budget, weighted))
    return tuple(_separated(found))


def _runs(points: Sequence[SimPoint], seed: int, draws: int) -> dict[tuple[int, int], tuple[Floats, Floats]]:
    """(point, run) -> hours and costs of each draw. Equal options of one run are drawn once."""
    found: dict[tuple[int, int], tuple[Floats, Floats]] = {}
    for number in range(len(points[0].jobs) if points else 0):
        places: dict[int, list[int]] = {}
        options: dict[int, risk.Draw] = {}
        for place, point in enumerate(points):
            draw = point.jobs[number].draw
            options[id(draw.priced)] = draw
            places.setdefault(id(draw.priced), []).append(place)
        simulated = risk.simulate(list(options.values()), seed, draws=draws, run=number)
        for index, key in enumerate(options):
            for place in places[key]:
                job = points[place].jobs[number]
                hours = simulated.hours[index] * job.draw.hours
                found[place, number] = hours, simulated.cost[index] * float(job.cost)
    return found


def _outcome(
    point: SimPoint,
    hours: Floats,
    costs: Floats,
    seed: int,
    budget: Decimal | None,
    weighted: Sequence[float] | None,
) -> SimOutcome:
    jobs = point.jobs
    ends = _ends(point, hours)
    total = costs.sum(axis=0) + _fixed(point, seed, costs.shape[1])
    planned_cost = money.total([*(job.cost for job in jobs), *(amount for amount, _ in point.fixed)])
    planned_ends = np.array([[job.start + job.draw.hours] for job in jobs])
    time, planned = _objective(ends, jobs, weighted), _objective(planned_ends, jobs, weighted)
    finish = ends.max(axis=0)
    due = [number for number, job in enumerate(jobs) if job.deadline is not None]
    late = [ends[n] > (jobs[n].deadline or 0.0) + 1e-6 for n in due]
    worst = np.sort(total)[-max(1, math.ceil(_WORST * total.size)) :]
    return SimOutcome(
        cost=Cost(*_range(total, planned_cost)),
        hours=Hours(*_range(time, money.quantity(float(planned[0])))),
        job_costs=tuple(Cost(*_range(row, job.cost)) for row, job in zip(costs, jobs, strict=True)),
        job_hours=tuple(
            Hours(*_range(row, money.quantity(job.draw.hours))) for row, job in zip(hours, jobs, strict=True)
        ),
        on_time=round(1 - float(np.any(late, axis=0).mean()), 4) if due else None,
        in_budget=None if budget is None else round(float((total <= float(budget)).mean()), 4),
        cvar95=money.quantity(float(worst.mean())),
        finish_p10=float(np.quantile(finish, 0.1)),
        finish_p90=max(float(planned_ends.max()), float(np.quantile(finish, 0.9))),
    )


def _ends(point: SimPoint, hours: Floats) -> Floats:
    """(runs, draws): when each run ends, runs taken in the order of their planned starts. [h]"""
    draws = hours.shape[1]
    free = [_units(steps, draws) for steps in point.rigs_from]
    ends = np.zeros_like(hours)
    for number in sorted(range(len(point.jobs)), key=lambda n: (point.jobs[n].start, n)):
        job = point.jobs[number]
        ready = np.full(draws, job.release if job.rig is not None else job.start)
        for before in job.predecessors:
            ready = np.maximum(ready, ends[before])
        if job.rig is None or free[job.rig].shape[0] < job.rigs:
            ends[number] = ready + hours[number]
            continue
        units = free[job.rig]
        start = np.maximum(ready, units[job.rigs - 1])
        ends[number] = start + hours[number]
        units[: job.rigs] = ends[number]
        units.sort(axis=0)
    return ends


def _units(steps: Sequence[tuple[float, int]], draws: int) -> Floats:
    """(rigs, draws): from when each rig is free, soonest first. [h]"""
    starts = sorted(hour for hour, count in steps for _ in range(count))
    return np.repeat(np.array(starts, dtype=float).reshape(-1, 1), draws, axis=1)


def _fixed(point: SimPoint, seed: int, draws: int) -> Floats:
    """What is no run's, in each draw: the factors are those that the runs have. [currency]"""
    if not point.fixed:
        return np.zeros(draws)
    factors = risk.factors(seed, draws)
    total = np.zeros(draws)
    for amount, moved in point.fixed:
        if moved.factor is None:
            total += float(amount)
        else:
            total += float(amount) * risk.lognormal(factors[moved.factor], moved.low, moved.high)
    return total


def _objective(ends: Floats, jobs: Sequence[SimJob], weighted: Sequence[float] | None) -> Floats:
    since = ends - np.array([[job.origin] for job in jobs])
    if weighted is None:
        return np.asarray(since.max(axis=0))
    return np.asarray((np.maximum(since, 0.0) * np.array(weighted)[:, None]).sum(axis=0))


def _range(drawn: Floats, planned: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    """P10, the planned figure, P90: the planned one never lies outside."""
    low, high = (money.quantity(float(value)) for value in np.quantile(drawn, (0.1, 0.9)))
    return min(planned, low), planned, max(planned, high)


def _separated(found: Sequence[SimOutcome]) -> list[SimOutcome]:
    from dataclasses import replace

    def meet(a: SimOutcome, b: SimOutcome) -> bool:
        return a.cost.p10 <= b.cost.p90 and b.cost.p10 <= a.cost.p90

    return [
        replace(
            outcome,
            not_separable_from=tuple(
                place for place, other in enumerate(found) if place != own and meet(outcome, other)
            ),
        )
        for own, outcome in enumerate(found)
    ]
