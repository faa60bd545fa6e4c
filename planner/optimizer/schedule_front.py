"""The front of a schedule: for every `time`, the least that it costs, with a plan that keeps every hour.

Which method: all combinations where they are few (exact); dynamic programming where jobs form one queue; the
linear model otherwise. Points are set by
halving the interval across which the cost drops most, since costs fall steeply near the fastest plan and
hardly at all far from it.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections.abc import Callable

from . import queue_dp
from .check_choice import check_choice
from .enumerate_small import small_enough, small_front
from .flat import SAME_HOURS, flatten
from .milp_front import MilpFront
from .problem import Choice, Problem
from .reduction import reduce
from .relax import explained
from .solver import Solver

# Rows closer than the gap are not ordered, so the gap is tight where a tight one is quick.
GAP_OF_FEW_JOBS = 1e-3
GAP_OF_MANY_JOBS = 5e-3
FEW_JOBS = 50
# Wall time of one attempt to find a plan under relaxed limits.
_SECONDS_PER_TRY = 15.0

Progress = Callable[[int, int], None]


def front(
    problem: Problem,
    *,
    points: int = 16,
    gap: float | None = None,
    seconds: float = 60.0,
    progress: Progress | None = None,
    solver: Solver | None = None,
) -> tuple[Choice, ...]:
    """Choices that no plan beats within their gap: cheapest first, each faster than the one before.

    points: most rows. gap: relative, at which a row counts as solved; None: 1e-3 up to 50 jobs, 5e-3 beyond.
    seconds: wall time after which the rows found so far are returned, with the gaps they have.
    progress: called with (rows so far, points). solver: None starts one and ends it.
    Raises ProblemInfeasible, which names the limits to relax. Every row has passed check_choice.
    """
    own = solver or Solver()
    try:
        rows = _rows(problem, own, points, gap, seconds, progress)
        if not rows:
            raise explained(
                problem,
                lambda wider, most: _rows(wider, own, most, gap, min(seconds, _SECONDS_PER_TRY), None),
                seconds,
            )
    finally:
        if solver is None:
            own.close()
    if progress is not None:
        progress(len(rows), points)
    return rows


def _rows(
    problem: Problem,
    solver: Solver,
    points: int,
    gap: float | None,
    seconds: float,
    progress: Progress | None,
) -> tuple[Choice, ...]:
    """Checked rows, () where no plan was found."""
    options = reduce(flatten(problem), range(len(problem.pools)))
    if len(set(options.job.tolist())) < len(problem.jobs):
        return ()
    if small_enough(problem, options):
        rows = small_front(problem, options)
    elif queue_dp.fits(problem, options):
        rows = queue_dp.queue_front(problem, options, points)
    else:
        rows = _by_model(problem, solver, points, gap_of(problem, gap), seconds, progress)
    rows = rows if len(rows) <= points else _thinned(rows, points)
    for choice in rows:
        check_choice(problem, choice)
    return tuple(rows)


def gap_of(problem: Problem, asked: float | None) -> float:
    """The relative gap to solve to."""
    if asked is not None:
        return asked
    return GAP_OF_FEW_JOBS if len(problem.jobs) <= FEW_JOBS else GAP_OF_MANY_JOBS


def _by_model(
    problem: Problem, solver: Solver, points: int, gap: float, seconds: float, progress: Progress | None
) -> list[Choice]:
    work = MilpFront(problem, solver, gap, time.monotonic() + seconds)
    if work.missing():
        return []
    search(work, points, gap, progress)
    rows = work.found.front()
    return [dataclasses.replace(row, proven=row.proven or row.gap <= gap) for row in rows]


def search(work: MilpFront, points: int, gap: float, progress: Progress | None) -> None:
    """Both ends, then between them."""
    work.point(math.inf)
    if points > 1 and work.left() > 0:
        shortest = work.shortest()
        if work.point(shortest) is None and work.left() > 0:
            fastest = work.fastest_time()
            if fastest > shortest + SAME_HOURS and math.isfinite(fastest):
                work.point(fastest)
    if work.found.choices:
        bisect(work, points, gap, progress)


@dataclasses.dataclass(slots=True)
class _Interval:
    """Between a row and the next faster one: hours not asked yet, and what the cost falls by across it."""

    low: float
    high: float
    drop: float
    asked: int


def bisect(work: MilpFront, points: int, gap: float, progress: Progress | None) -> None:
    """Solve in the interval of the largest drop until there are enough rows or nothing is left to find.

    Then rows that came out of a search for something faster are solved for at their own time.
    """
    asked: list[float] = []
    while work.left() > 0:
        rows = work.found.front()
        if progress is not None:
            progress(len(rows), points)
        open_ = [] if len(rows) >= points else _intervals(rows, asked, gap, work.shortest())
        if not open_:
            if not _settle(work, rows, asked, gap):
                return
            continue
        widest = max(open_, key=lambda interval: interval.drop)
        most = _between(widest)
        asked.append(most)
        work.point(most)


def _settle(work: MilpFront, rows: list[Choice], asked: list[float], gap: float) -> bool:
    """Solve once for the row of the widest gap, if that has not been done; whether there was one."""
    loose = [row for row in rows if row.gap > 1.5 * gap and row.time not in asked]
    if not loose:
        return False
    row = max(loose, key=lambda row: row.gap)
    asked.append(row.time)
    work.point(row.time)
    return True


def _intervals(rows: list[Choice], asked: list[float], gap: float, shortest: float) -> list[_Interval]:
    found = []
    for slow, fast in itertools.pairwise(rows):
        inside = [most for most in asked if fast.time <= most < slow.time]
        low = max([fast.time, *inside])
        drop = fast.cost - slow.cost
        if slow.time - low > _near(slow.time) and drop > gap * abs(slow.cost):
            found.append(_Interval(low, slow.time, drop, len(inside)))
    if rows:  # what is faster than all of them is dear: as urgent as the largest drop known
        end = rows[-1].time
        inside = [most for most in asked if most < end]
        low = max([shortest, *inside])
        if end - low > _near(end):
            drop = max((interval.drop for interval in found), default=1.0)
            found.append(_Interval(low, end, drop, 2))
    return found


def _near(hours: float) -> float:
    return max(1.5e-4, 1e-9 * abs(hours))


def _between(interval: _Interval) -> float:
    """The middle, by ratio where hours are positive; after two that found nothing, just below the slow end:
    if nothing lies there, nothing lies between."""
    if interval.asked >= 2:
        return interval.high - max(1e-4, 1e-10 * abs(interval.high))
    if interval.low > 0:
        return math.sqrt(interval.low * interval.high)
    return (interval.low + interval.high) / 2


def _thinned(rows: list[Choice], points: int) -> list[Choice]:
    """The two ends and those between across which the cost drops most evenly."""
    if points <= 1:
        return rows[:1]
    kept = [0, len(rows) - 1]
    while len(kept) < points:
        gaps = [(rows[b].cost - rows[a].cost, a, b) for a, b in itertools.pairwise(kept) if b - a > 1]
        if not gaps:
            break
        _, a, b = max(gaps, key=lambda g: g[0])
        middle = (rows[a].cost + rows[b].cost) / 2
        kept.append(min(range(a + 1, b), key=lambda i: abs(rows[i].cost - middle)))
        kept.sort()
    return [rows[i] for i in kept]
