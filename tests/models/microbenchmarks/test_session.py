"""Rounds, budgets, interrupts and resuming, with visits that take no time."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.models.microbenchmarks import session
from planner.models.microbenchmarks.registry import Call, Case, Operands, Work
from planner.models.microbenchmarks.timing import Visit

WHO = {"suite_version": 1, "device": "a CPU", "torch": "2.13.0"}


def make_cases(count: int) -> list[Case]:
    def make(take: Operands) -> Call:
        return lambda: None

    return [
        Case(f"case {i}", "matmul", "float32", "nt", make, Work("mm", "gemm", ((2, 3), (3, 4)), 48, 72, 32))
        for i in range(count)
    ]


class Clock:
    """A clock that a visit moves on by one second."""

    def __init__(self) -> None:
        self.moment = 0.0
        self.visited: list[str] = []

    def now(self) -> float:
        return self.moment

    def visit(self, case: Case) -> Visit:
        self.moment += 1.0
        self.visited.append(case.key)
        return Visit([0.001], [0.002])


def test_the_first_round_is_finished_even_when_the_time_is_up() -> None:
    clock = Clock()
    outcome = session.run_visits(make_cases(5), session.Partial(None, WHO), clock.visit, 2.0, now=clock.now)
    assert outcome.rounds == 1
    assert sorted(clock.visited) == [f"case {i}" for i in range(5)]


def test_rounds_go_on_until_the_time_is_up_each_in_its_own_order() -> None:
    clock = Clock()
    session.run_visits(make_cases(6), session.Partial(None, WHO), clock.visit, 24.0, now=clock.now)
    rounds = [clock.visited[i : i + 6] for i in range(0, 24, 6)]
    assert len(clock.visited) == 24
    assert all(sorted(visits) == sorted(rounds[0]) for visits in rounds)
    assert any(visits != rounds[0] for visits in rounds[1:])


def test_an_interrupt_keeps_what_was_measured() -> None:
    clock = Clock()

    def visit(case: Case) -> Visit:
        if len(clock.visited) == 3:
            raise KeyboardInterrupt
        return clock.visit(case)

    partial = session.Partial(None, WHO)
    outcome = session.run_visits(make_cases(5), partial, visit, 60.0, now=clock.now)
    assert outcome.interrupted
    assert len(session.points_of(make_cases(5), partial.samples)) == 3


def test_a_killed_run_is_resumed_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "partial.jsonl"
    first = session.Partial(path, WHO)
    for case in make_cases(4)[:3]:
        first.add(case.key, Visit([0.001, 0.003], [0.002]))
    with path.open("a", encoding="utf-8") as out:
        out.write('{"key": "case 3", "hot": [0.0')  # killed in mid-line
    second = session.Partial(path, WHO)
    assert second.resumed
    assert sorted(second.samples) == ["case 0", "case 1", "case 2"]
    clock = Clock()
    session.run_visits(make_cases(4), second, clock.visit, 0.0, now=clock.now)
    assert clock.visited == ["case 3"]
    assert sorted(session.Partial(path, WHO).samples) == [f"case {i}" for i in range(4)]


def test_results_of_another_torch_are_not_resumed(tmp_path: Path) -> None:
    path = tmp_path / "partial.jsonl"
    session.Partial(path, WHO).add("case 0", Visit([0.001], []))
    other = session.Partial(path, {**WHO, "torch": "2.10.0"})
    assert not other.resumed
    assert other.samples == {}


def test_a_case_that_cannot_run_is_named_and_not_tried_again() -> None:
    clock = Clock()

    def visit(case: Case) -> Visit:
        if case.key == "case 1":
            clock.visited.append(case.key)
            raise NotImplementedError("no such kernel\nwith a long story")
        return clock.visit(case)

    outcome = session.run_visits(make_cases(3), session.Partial(None, WHO), visit, 9.0, now=clock.now)
    assert outcome.failed == {"case 1": "no such kernel"}
    assert clock.visited.count("case 1") == 1


def test_a_point_holds_the_medians_of_all_visits() -> None:
    (case,) = make_cases(1)
    seen = session.Samples(hot=[1.0, 3.0, 2.0], cold=[4.0])
    point = session.point_of(case, case.work, seen)  # type: ignore[arg-type]
    assert point.hot.median == 2.0
    assert point.seconds == 3.0
    assert point.bytes == 104


@pytest.fixture
def tiny_profile() -> object:
    pytest.importorskip("torch")
    return session.calibrate(seconds=5.0, device="cpu", tiny=True)


@pytest.mark.slow
def test_a_real_calibration_of_five_seconds_gives_a_whole_profile(tiny_profile: object) -> None:
    from planner.models.calibration.device_profile import DeviceProfile, from_json, to_json

    assert isinstance(tiny_profile, DeviceProfile)
    suites = {point.suite for point in tiny_profile.points}
    assert {"matmul", "convolution", "attention", "optimizer_step", "overhead"} <= suites
    assert all(point.seconds > 0 for point in tiny_profile.points)
    assert tiny_profile.quality["failed"] == {}
    assert tiny_profile.software["threads"] == 1
    assert {"mm/nt/float32", "bmm/nn/float32"} <= set(tiny_profile.fits["linear"])
    assert from_json(to_json(tiny_profile), "here") == tiny_profile
