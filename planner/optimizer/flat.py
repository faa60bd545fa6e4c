"""The options of a problem as flat arrays, and what the calendar allows each of them.

Every solver here reads these arrays. An option that can never be chosen is left out from the start: more
rigs than could ever stand there, more GPUs than its quota, or more hours than lie between its earliest start
and its latest finish.

How own rigs are held: a run of `hours` holds its rigs for hours / availability, because the hours a rig needs
for repair and care have to go somewhere; they are put behind the run. The job itself ends after `hours`. A
run on own rigs or on a commitment lies inside the months of its job, the care of its rigs included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .problem import Job, Option, Problem

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# Hours closer than this are the same moment (3.6 ms); far above float noise of sums of some thousand hours.
SAME_HOURS = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """Options in play, sorted by job; all arrays (options,).

    job, place: indices into Problem.jobs and Job.options. rig, pool, commitment: -1 for none.
    earliest: no start before. latest: no finish after, inf where nothing bounds it. [h]
    """

    job: Ints
    place: Ints
    hours: Floats
    cost: Floats
    rig: Ints
    rigs: Ints
    pool: Ints
    gpus: Ints
    commitment: Ints
    spend: Floats
    earliest: Floats
    latest: Floats

    def take(self, chosen: Bools | Ints) -> Options:
        """Those chosen, in the order given."""
        return Options(
            self.job[chosen],
            self.place[chosen],
            self.hours[chosen],
            self.cost[chosen],
            self.rig[chosen],
            self.rigs[chosen],
            self.pool[chosen],
            self.gpus[chosen],
            self.commitment[chosen],
            self.spend[chosen],
            self.earliest[chosen],
            self.latest[chosen],
        )

    def __len__(self) -> int:
        return len(self.job)


def month_starts(problem: Problem) -> list[float]:
    """Start of each month and, last, the end of the horizon. (months + 1,) [h]"""
    starts = [0.0]
    for hours in problem.month_hours:
        starts.append(starts[-1] + hours)
    return starts


def most_rigs(problem: Problem, rig: int) -> int:
    """Rigs of a type that can ever stand there: what is at hand, or more where some can be bought."""
    kind = problem.rigs[rig]
    if all(cost is None for cost in kind.net_cost):
        return kind.at_hand
    return max(kind.at_hand, kind.most)


def option_window(problem: Problem, starts: list[float], job: Job, option: Option) -> tuple[float, float]:
    """Earliest start and latest finish of a job by one option, other jobs aside. [h]"""
    deadline = math.inf if job.deadline is None else job.deadline
    if option.rig is None and option.commitment is None:
        return job.release, deadline
    if not job.months:
        return job.release, -math.inf
    opens, closes = starts[job.months[0]], starts[job.months[-1] + 1]
    care = option.hours * (1 / problem.availability - 1) if option.rig is not None else 0.0
    return max(job.release, opens), min(deadline, closes - care)


def flatten(problem: Problem) -> Options:
    """All options that can be chosen at all."""
    starts = month_starts(problem)
    caps = [most_rigs(problem, rig) for rig in range(len(problem.rigs))]
    rows: list[tuple[float, ...]] = []
    for j, job in enumerate(problem.jobs):
        # Per class the window is the same but for the care of rigs, so it is asked for once per class.
        free = (job.release, math.inf if job.deadline is None else job.deadline)
        for place, option in enumerate(job.options):
            bound = option.rig is not None or option.commitment is not None
            earliest, latest = option_window(problem, starts, job, option) if bound else free
            if option.rig is not None and option.rigs > caps[option.rig]:
                continue
            if option.pool is not None and option.gpus > problem.pools[option.pool].gpus:
                continue
            if earliest + option.hours > latest + SAME_HOURS:
                continue
            rows.append(
                (
                    j,
                    place,
                    option.hours,
                    option.cost,
                    -1 if option.rig is None else option.rig,
                    option.rigs if option.rig is not None else 0,
                    -1 if option.pool is None else option.pool,
                    option.gpus,
                    -1 if option.commitment is None else option.commitment,
                    option.list_spend,
                    earliest,
                    latest,
                )
            )
    table = np.array(rows, dtype=np.float64).reshape(len(rows), 12)
    whole = {0, 1, 4, 5, 6, 7, 8}
    columns: list[Any] = [
        table[:, c].astype(np.int64) if c in whole else table[:, c].copy() for c in range(12)
    ]
    return Options(*columns)


def order_of_jobs(problem: Problem) -> list[int]:
    """Jobs so that each comes after its predecessors; otherwise in their own order.

    Raises ValueError where jobs wait for one another in a circle.
    """
    left = [len(set(job.predecessors)) for job in problem.jobs]
    after: list[list[int]] = [[] for _ in problem.jobs]
    for j, job in enumerate(problem.jobs):
        for before in set(job.predecessors):
            after[before].append(j)
    ready = [j for j, count in enumerate(left) if count == 0]
    order: list[int] = []
    while ready:
        j = ready.pop(0)
        order.append(j)
        for follower in after[j]:
            left[follower] -= 1
            if left[follower] == 0:
                ready.append(follower)
    if len(order) < len(problem.jobs):
        circle = [problem.jobs[j].id for j, count in enumerate(left) if count > 0]
        raise ValueError(f"jobs wait for one another in a circle: {', '.join(circle)}")
    return order
