"""One queue by dynamic programming: the same front as brute force and as the linear model."""

from __future__ import annotations

import dataclasses

import brute_force
import made_schedules
import pytest

from planner.optimizer import queue_dp, schedule_front
from planner.optimizer.flat import flatten
from planner.optimizer.problem import Job, Option, Problem, RigType
from planner.optimizer.reduction import reduce
from planner.optimizer.schedule_front import front


def queue(seed: int, jobs: int = 5) -> Problem:
    """A made schedule whose jobs wait for one another, without commitments, rigs at one price."""
    base = made_schedules.schedule(seed, jobs=jobs)
    made = tuple(
        dataclasses.replace(
            job,
            origin=0.0,
            predecessors=(j - 1,) if j else (),
            options=tuple(
                dataclasses.replace(o, commitment=None, cost=o.cost + o.list_spend) for o in job.options
            ),
        )
        for j, job in enumerate(base.jobs)
    )
    rigs = tuple(
        dataclasses.replace(rig, net_cost=(rig.net_cost[0],) * len(rig.net_cost)) for rig in base.rigs
    )
    return dataclasses.replace(
        base, jobs=made, rigs=rigs, commitments=(), availability=1.0, objective="largest"
    )


def queues(seeds: range) -> list[Problem]:
    """Those that have two jobs or more and an option for each."""
    found = []
    for problem in map(queue, seeds):
        options = reduce(flatten(problem), range(len(problem.pools)))
        if len(set(options.job.tolist())) == len(problem.jobs) and queue_dp.fits(problem, options):
            found.append(problem)
    return found


def test_the_whole_front_is_the_one_by_brute_force() -> None:
    problems = queues(range(40))
    assert len(problems) > 20
    for problem in problems:
        curve = queue_dp.whole_front(problem)
        found = sorted(zip(curve.cost.tolist(), curve.time.tolist(), strict=True))
        assert found == [pytest.approx(row) for row in brute_force.front(problem)]


def test_the_linear_model_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_front, "small_enough", lambda *_: False)
    problem = next(p for p in queues(range(100, 140)) if len(brute_force.front(p)) > 5)
    by_table = front(problem, points=1000)
    monkeypatch.setattr(queue_dp, "fits", lambda *_: False)
    by_model = front(problem, points=1000, gap=1e-7)
    assert [(r.cost, r.time) for r in by_model] == [pytest.approx((r.cost, r.time)) for r in by_table]


def test_hours_off_the_grid_are_bounded_from_below() -> None:
    hours = (1.2345678, 2.7182818, 3.1415926)
    jobs = tuple(
        Job(
            f"j{j}",
            0.0,
            None,
            0.0,
            (0,),
            (j - 1,) if j else (),
            (
                Option("slow", h * 3, 1.0 + j),
                Option("own", h * 2, 0.1, rig=0, rigs=1),
                Option("fast", h, 9.0),
            ),
        )
        for j, h in enumerate(hours)
    )
    problem = Problem((1000.0,), jobs, (RigType("rig", (4.0,), most=1),))
    options = reduce(flatten(problem))
    exact = brute_force.front(problem)
    for row in queue_dp.queue_front(problem, options, 100):
        least = min(cost for cost, time in exact if time <= row.time + 1e-6)
        assert row.bound <= least + 1e-9 <= row.cost + 2e-9


def test_jobs_that_may_overlap_are_no_queue() -> None:
    problem = queue(0)
    loose = dataclasses.replace(
        problem, jobs=tuple(dataclasses.replace(job, predecessors=()) for job in problem.jobs)
    )
    assert queue_dp.fits(problem, flatten(problem))
    assert not queue_dp.fits(loose, flatten(loose))
