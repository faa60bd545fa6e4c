"""The front of a schedule against brute force, and what must hold of every front."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import brute_force
import made_schedules
import pytest

from planner.optimizer import schedule_front
from planner.optimizer.check_choice import check_choice
from planner.optimizer.problem import Choice, Problem
from planner.optimizer.relax import ProblemInfeasible
from planner.optimizer.schedule_front import front
from planner.optimizer.solver import Solver


@pytest.fixture(scope="module")
def solver() -> Iterator[Solver]:
    with Solver() as shared:
        yield shared


def rows(problem: Problem, **asked: object) -> tuple[Choice, ...]:
    """The front, () where no plan is possible."""
    try:
        return front(problem, **asked)  # type: ignore[arg-type]
    except ProblemInfeasible:
        return ()


def assert_same(found: tuple[Choice, ...], wanted: list[tuple[float, float]], near: float) -> None:
    assert len(found) == len(wanted)
    for row, (cost, time) in zip(found, wanted, strict=True):
        assert row.cost == pytest.approx(cost, rel=near, abs=near)
        assert row.time == pytest.approx(time, abs=1e-5)


@pytest.mark.parametrize("seed", range(40))
def test_the_front_of_a_small_schedule_is_the_one_by_brute_force(seed: int) -> None:
    problem = made_schedules.schedule(seed)
    found = rows(problem, points=10_000)
    assert_same(found, brute_force.front(problem), 1e-9)
    assert all(row.gap == 0 and row.proven for row in found)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40, 240))
def test_two_hundred_more_small_schedules(seed: int) -> None:
    problem = made_schedules.schedule(seed)
    assert_same(rows(problem, points=10_000), brute_force.front(problem), 1e-9)


def by_model(problem: Problem, solver: Solver, monkeypatch: pytest.MonkeyPatch) -> tuple[Choice, ...]:
    monkeypatch.setattr(schedule_front, "small_enough", lambda *_: False)
    return rows(problem, points=10_000, gap=1e-7, solver=solver, seconds=600)


@pytest.mark.parametrize("seed", range(300, 325))
def test_the_linear_model_finds_the_front_by_brute_force(
    seed: int, solver: Solver, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = made_schedules.schedule(seed, jobs=4, options=5)
    assert_same(by_model(problem, solver, monkeypatch), brute_force.front(problem), 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(400, 600))
def test_the_linear_model_on_two_hundred_more(
    seed: int, solver: Solver, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = made_schedules.schedule(seed)
    assert_same(by_model(problem, solver, monkeypatch), brute_force.front(problem), 1e-5)


@pytest.mark.parametrize("seed", range(1000, 1012))
def test_bounds_hold_and_no_row_is_dominated(
    seed: int, solver: Solver, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = made_schedules.schedule(seed)
    monkeypatch.setattr(schedule_front, "small_enough", lambda *_: False)
    found = rows(problem, points=4, gap=0.05, solver=solver)
    exact = brute_force.front(problem)
    for row in found:
        check_choice(problem, row)
        least = min(cost for cost, time in exact if time <= row.time + 1e-5)
        assert row.bound <= least * (1 + 1e-6) + 1e-6
        assert row.cost >= least * (1 - 1e-9)
    for cheap, fast in itertools.pairwise(found):
        assert cheap.cost < fast.cost
        assert cheap.time > fast.time


def test_fewer_points_are_rows_of_the_whole_front() -> None:
    problem = made_schedules.schedule(0)
    whole = rows(problem, points=10_000)
    assert len(whole) > 3
    few = rows(problem, points=3)
    assert len(few) == 3
    assert set(few) <= set(whole)
    assert (few[0], few[-1]) == (whole[0], whole[-1])


def test_no_job_is_no_cost() -> None:
    problem = dataclasses.replace(made_schedules.schedule(0), jobs=())
    (row,) = front(problem)
    assert (row.cost, row.time) == (0.0, 0.0)
