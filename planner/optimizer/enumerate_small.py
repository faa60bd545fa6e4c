"""The whole front of a small schedule without a solver: every combination of options and purchases, in order
of cost, placed only where it could still be faster than all cheaper ones. Exact where the placement is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from .assemble import choice_of, lifted_level, power_kept
from .flat import SAME_HOURS, Floats, Ints, Options, most_rigs, order_of_jobs
from .placement import EXACT_JOBS, Placer
from .problem import Choice, Problem

# Combinations × purchases looked at: 16 bytes each, and about a second.
MOST_ROWS = 400_000
Purchase = tuple[tuple[int, ...], ...]


def small_enough(problem: Problem, options: Options) -> bool:
    """Whether all combinations can be looked at and the best placement of each is sure to be found.

    It is not where money is counted by the month and a run may begin in one month or another.
    """
    if len(problem.jobs) > EXACT_JOBS or problem.month_budget is not None:
        return False
    committed = set(options.job[options.commitment >= 0].tolist())
    if any(len(problem.jobs[j].months) > 1 for j in committed):
        return False
    rows: int = math.prod(np.bincount(options.job, minlength=len(problem.jobs)).tolist())
    if rows > MOST_ROWS:
        return False
    most = _useful_rigs(problem, options)
    for rig, kind in enumerate(problem.rigs):
        months = len(useful_months(kind.net_cost))
        rows *= math.comb(max(0, most[rig] - kind.at_hand) + months, months) if months else 1
    return rows <= MOST_ROWS


def small_front(problem: Problem, options: Options) -> list[Choice]:
    """Every point of the front, cheapest first. options: reduced with all pools watched."""
    combos = _combinations(problem, options)
    if not len(combos):
        return []
    cost, least, who, plans = _rows(problem, options, combos)
    order = np.lexsort((least, cost))
    placer = Placer(problem)
    front: list[Choice] = []
    fastest, at = math.inf, 0
    while at < len(order):
        # The next row that might be faster than everything cheaper.
        ahead = np.flatnonzero(least[order[at:]] < fastest - SAME_HOURS)
        if not len(ahead):
            break
        at += int(ahead[0])
        row = int(order[at])
        at += 1
        choice = _placed(problem, options, placer, combos[who[row][0]], plans[who[row][1]], fastest)
        if choice is None or choice.time >= fastest - SAME_HOURS:
            continue
        if front and choice.cost <= front[-1].cost + 1e-9 * max(1.0, abs(choice.cost)):
            front.pop()  # as cheap, and faster
        front.append(choice)
        fastest = choice.time
    return front


def _placed(
    problem: Problem, options: Options, placer: Placer, combo: Ints, bought: Purchase, fastest: float
) -> Choice | None:
    picks = [int(place) for place in options.place[combo]]
    levels = [c.most if math.isfinite(c.most) else 1e18 for c in problem.commitments]
    placed = placer.place(picks, bought, levels, below=fastest - SAME_HOURS / 2)
    if not placed.kept or not math.isfinite(placed.time):
        return None
    return choice_of(problem, picks, placed.start, placed.time, bought, proven=True)


def _combinations(problem: Problem, options: Options) -> Ints:
    """(combinations, jobs): places in `options`."""
    first = np.searchsorted(options.job, np.arange(len(problem.jobs) + 1))
    ranges = [np.arange(first[j], first[j + 1]) for j in range(len(problem.jobs))]
    if not ranges:
        return np.zeros((1, 0), dtype=np.int64)
    grid = np.meshgrid(*ranges, indexing="ij")
    return np.stack([axis.ravel() for axis in grid], axis=1)


def _rows(
    problem: Problem, options: Options, combos: Ints
) -> tuple[Floats, Floats, list[tuple[int, int]], list[Purchase]]:
    """Cost, least time, (combination, purchase) of each row that may be a plan, and the purchases."""
    order = order_of_jobs(problem)
    runs = options.cost[combos].sum(axis=1) + _fees(problem, options, combos)
    plans = list(_purchase_plans(problem, options))
    costs, times, who = [], [], []
    for number, bought in enumerate(plans):
        paid = sum(
            count * (kind.net_cost[month] or 0.0)
            for kind, counts in zip(problem.rigs, bought, strict=True)
            for month, count in enumerate(counts)
        )
        least = _least_time(problem, options, combos, bought, order)
        cost = runs + paid
        good = np.isfinite(least) & np.isfinite(cost)
        if problem.budget is not None:
            good &= cost <= problem.budget * (1 + 1e-9)
        rows = np.flatnonzero(good)
        costs.append(cost[rows])
        times.append(least[rows])
        who.append(np.column_stack((rows, np.full(len(rows), number))))
    return np.concatenate(costs), np.concatenate(times), np.concatenate(who), plans  # type: ignore[return-value]


def _fees(problem: Problem, options: Options, combos: Ints) -> Floats:
    """What commitments add. (combinations,) Each job draws in its one month: see small_enough."""
    fees = np.zeros(len(combos))
    hours = np.array(problem.month_hours)
    for number, c in enumerate(problem.commitments):
        spend = np.where(options.commitment == number, options.spend, 0.0)
        drawn = np.zeros((len(combos), len(hours)))
        for j, job in enumerate(problem.jobs):
            if job.months:
                drawn[:, job.months[0]] += spend[combos[:, j]]
        level = (drawn / hours).max(axis=1) * (1 - c.discount) / c.load_factor
        lifted = [lifted_level(c, value) for value in level.tolist()]
        extra = np.array([np.inf if value is None else value - c.held for value in lifted])
        fees += extra * c.term_hours
    return fees


def _least_time(
    problem: Problem, options: Options, combos: Ints, bought: Purchase, order: Sequence[int]
) -> Floats:
    """No placement of a combination is faster; inf where its rigs are never there. (combinations,) [h]"""
    opens = np.concatenate(([0.0], np.cumsum(problem.month_hours)))
    earliest = options.earliest.copy()
    there = []
    for kind, counts in zip(problem.rigs, bought, strict=True):
        there.append(kind.at_hand + np.cumsum(counts))
    for row in np.flatnonzero(options.rig >= 0):
        months = np.flatnonzero(there[options.rig[row]] >= options.rigs[row])
        opened = opens[months[0]] if len(months) else np.inf
        if len(months) and months[0] == 0:
            opened = 0.0
        earliest[row] = max(earliest[row], opened)
    ends = np.zeros(combos.shape)
    for j in order:
        rows = combos[:, j]
        start = earliest[rows]
        for before in problem.jobs[j].predecessors:
            start = np.maximum(start, ends[:, before])
        ends[:, j] = start + options.hours[rows]
        ends[ends[:, j] > options.latest[rows] + SAME_HOURS, j] = np.inf
    late = ends - np.array([job.origin for job in problem.jobs])
    if problem.objective == "sum":
        weights = np.array([job.weight for job in problem.jobs])
        never = np.isinf(late)
        least = np.where(never, 0.0, np.maximum(late, 0.0)) @ np.maximum(weights, 0.0)
        return np.where(never.any(axis=1), np.inf, least)
    least = late.max(axis=1) if late.shape[1] else np.zeros(len(combos))
    return np.maximum(least, _queue_time(problem, options, combos, earliest, there))


def _queue_time(
    problem: Problem, options: Options, combos: Ints, earliest: Floats, there: list[Ints]
) -> Floats:
    """Least time from rig-hours alone: they all lie between the first start and the last finish. [h]"""
    origin = max((job.origin for job in problem.jobs), default=0.0)
    least = np.full(len(combos), -np.inf)
    for rig, counts in enumerate(there):
        own = options.rig == rig
        if counts[-1] <= 0 or not own.any():
            continue
        share = options.hours / counts[-1] * (options.rigs if not problem.one_queue else counts[-1])
        used = np.where(own, share, 0.0)[combos].sum(axis=1)
        first = np.where(own, earliest, np.inf)[combos].min(axis=1)
        least = np.maximum(least, np.where(np.isfinite(first), first + used - origin, -np.inf))
    return least


def useful_months(net_cost: Sequence[float | None]) -> list[int]:
    """Months in which buying can pay: cheaper than in every earlier month."""
    found: list[int] = []
    for month, cost in enumerate(net_cost):
        if cost is not None and all(cost < (net_cost[m] or 0.0) for m in found):
            found.append(month)
    return found


def _useful_rigs(problem: Problem, options: Options) -> list[int]:
    """More rigs than all jobs could use at once are never bought."""
    most = []
    for rig in range(len(problem.rigs)):
        own = options.rig == rig
        widest = np.zeros(len(problem.jobs), dtype=np.int64)
        np.maximum.at(widest, options.job[own], options.rigs[own])
        together = int(widest.max(initial=0)) if problem.one_queue else int(widest.sum())
        most.append(min(most_rigs(problem, rig), max(together, problem.rigs[rig].at_hand)))
    return most


def _purchase_plans(problem: Problem, options: Options) -> Iterator[Purchase]:
    """Every purchase that power allows and jobs could use."""
    most = _useful_rigs(problem, options)
    per_rig: list[list[tuple[int, ...]]] = []
    for rig, kind in enumerate(problem.rigs):
        months = useful_months(kind.net_cost)
        room = max(0, most[rig] - kind.at_hand) if months else 0
        counts = []
        for total in range(room + 1):
            for chosen in itertools.combinations_with_replacement(months, total):
                counts.append(tuple(chosen.count(month) for month in range(len(problem.month_hours))))
        per_rig.append(counts)
    for plan in itertools.product(*per_rig):
        if power_kept(problem, plan):
            yield plan
