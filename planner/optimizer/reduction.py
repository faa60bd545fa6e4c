"""Options that no best plan needs, taken out without losing one. Vectorised over the options of a job.

Within a class an option falls when another is no worse in all that its class shares: hours and cost; for own
rigs also their number (and so rig-hours); for a commitment also the spend drawn from it; in a quota that is
watched also its GPUs. A rented option outside every watched quota uses nothing shared and may run at any
time, so it also beats options of the other classes.

Quotas spoil the reduction (of 15,000 options 14,128 stay instead of 1,403), so only pools found to be
violated are watched; see schedule_front.py.

Exact, with one limit: where a month's cash is limited, a shorter run spends the same money in fewer months.
For runs of up to two months the shorter one can be started so that each month pays no more.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from .flat import SAME_HOURS, Bools, Floats, Ints, Options
from .problem import Problem

# A class of one job is compared pair by pair in blocks of this many, so memory stays at some megabytes.
_BLOCK = 512


def reduce(options: Options, watched: Collection[int] = ()) -> Options:
    """Options that may be part of a best plan. watched: pools whose quota is part of the model."""
    if not len(options):
        return options
    pool = np.where(np.isin(options.pool, list(watched)), options.pool, -1)
    free = (options.rig < 0) & (options.commitment < 0) & (pool < 0)
    keep = np.zeros(len(options), dtype=bool)
    bounds = np.flatnonzero(np.diff(options.job)) + 1
    shared = np.column_stack((options.rig, options.commitment, pool))
    worth = np.column_stack(
        (
            options.hours,
            options.cost,
            np.where(options.rig >= 0, options.rigs, 0),
            np.where(options.commitment >= 0, options.spend, 0.0),
            np.where(pool >= 0, options.gpus, 0),
        )
    )
    for rows in np.split(np.arange(len(options)), bounds):
        own = rows[free[rows]]
        best = own[_stairs(worth[own, 0], worth[own, 1])]
        keep[best] = True
        rest = rows[~free[rows]]
        rest = rest[~_beaten_by_stairs(worth[rest], worth[best])]
        for group in _groups(shared[rest]):
            members = rest[group]
            keep[members[_undominated(worth[members])]] = True
    return options.take(keep)


def within(options: Options, starts: Floats, ends: Floats) -> Options:
    """Options that fit between a job's earliest start and latest finish; both (jobs,). [h]"""
    earliest = np.maximum(options.earliest, starts[options.job])
    latest = np.minimum(options.latest, ends[options.job])
    return options.take(earliest + options.hours <= latest + SAME_HOURS)


def windows(problem: Problem, options: Options, order: list[int], most: float) -> tuple[Floats, Floats]:
    """Earliest start and latest finish of each job if `time` shall not exceed `most`. (jobs,) each, [h]

    order: see flat.order_of_jobs. From the fastest option of each job along the longest path both ways, so a
    filter by them drops what is slower than `most` less the longest fastest path through the job.
    """
    count = len(problem.jobs)
    first = np.searchsorted(options.job, np.arange(count + 1))
    start, end = np.zeros(count), np.zeros(count)
    fastest = np.full(count, np.inf)
    for j in order:
        job, rows = problem.jobs[j], slice(first[j], first[j + 1])
        start[j] = max([job.release, *(end[i] for i in job.predecessors)])
        if first[j] == first[j + 1]:
            end[j] = np.inf
            continue
        end[j] = float(np.min(np.maximum(options.earliest[rows], start[j]) + options.hours[rows]))
        start[j] = max(start[j], float(options.earliest[rows].min()))
        fastest[j] = float(options.hours[rows].min())
    latest = np.array([_latest(problem, j, most) for j in range(count)])
    for j in reversed(order):
        for i in problem.jobs[j].predecessors:
            if np.isfinite(fastest[j]):
                latest[i] = min(latest[i], latest[j] - fastest[j])
    return start, latest


def shortest_time(problem: Problem, options: Options, order: list[int]) -> float:
    """No plan's `time` is below this: every job as fast as it can be, as if nothing were shared. [h]"""
    start, _ = windows(problem, options, order, float("inf"))
    ends = np.full(len(problem.jobs), np.inf)
    np.minimum.at(ends, options.job, np.maximum(options.earliest, start[options.job]) + options.hours)
    late = ends - np.array([job.origin for job in problem.jobs])
    if problem.objective == "largest":
        return float(late.max()) if len(late) else 0.0
    return float(np.maximum(late, 0.0) @ np.array([job.weight for job in problem.jobs]))


def filtered(
    problem: Problem, options: Options, order: list[int], most: float
) -> tuple[Options, Floats, Floats]:
    """Options left for `time` of at most `most`, and the windows they leave, to the fixed point."""
    while True:
        starts, ends = windows(problem, options, order, most)
        left = within(options, starts, ends)
        if len(left) == len(options):
            return left, starts, ends
        options = left


def _latest(problem: Problem, j: int, most: float) -> float:
    job = problem.jobs[j]
    allowed = most if problem.objective == "largest" or job.weight <= 0 else most / job.weight
    if problem.objective == "sum" and job.weight <= 0:
        allowed = float("inf")
    return min(float("inf") if job.deadline is None else job.deadline, job.origin + allowed)


def _stairs(hours: Floats, cost: Floats) -> Ints:
    """Places of the options that none is both faster and cheaper than, fastest first."""
    order = np.lexsort((cost, hours))
    lowest = np.minimum.accumulate(cost[order])
    keep = np.ones(len(order), dtype=bool)
    keep[1:] = cost[order][1:] < lowest[:-1]
    return order[keep]


def _beaten_by_stairs(worth: Floats, stairs: Floats) -> Bools:
    """Whether some step of the stairs is no slower and no dearer. stairs: fastest first."""
    if not len(stairs):
        return np.zeros(len(worth), dtype=bool)
    step = np.searchsorted(stairs[:, 0], worth[:, 0], side="right") - 1
    beaten: Bools = (step >= 0) & (stairs[np.maximum(step, 0), 1] <= worth[:, 1])
    return beaten


def _groups(shared: Ints) -> list[Ints]:
    """Places that share the same rig, commitment and pool."""
    if not len(shared):
        return []
    _, group = np.unique(shared, axis=0, return_inverse=True)
    order = np.argsort(group, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(group[order])) + 1)


def _undominated(worth: Floats) -> Ints:
    """Places that no other is at least as good as in every column; of equal ones the first."""
    order = np.lexsort(worth.T[::-1])
    ranked = worth[order]
    beaten = np.zeros(len(order), dtype=bool)
    for begin in range(0, len(order), _BLOCK):
        block = ranked[begin : begin + _BLOCK]
        no_worse = np.ones((len(block), begin + len(block)), dtype=bool)
        for column in range(worth.shape[1]):
            no_worse &= ranked[None, : begin + len(block), column] <= block[:, None, column]
        earlier = np.arange(begin + len(block)) < (begin + np.arange(len(block)))[:, None]
        beaten[begin : begin + len(block)] = (no_worse & earlier).any(axis=1)
    return order[~beaten]
