"""Clocks and visits with a clock of our own: no real time is looked at."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest

from planner.models.microbenchmarks import timing
from planner.models.microbenchmarks.registry import Call, Case, Operands


class FakeClock:
    """Every call takes `seconds_per_call`; remembers how many calls it was given."""

    name = "fake"

    def __init__(self, seconds_per_call: float) -> None:
        self.seconds_per_call = seconds_per_call
        self.calls = 0

    def seconds(self, calls: Sequence[Call], repeats: int) -> float:
        for call in calls:
            call()
        self.calls += len(calls) * repeats
        return self.seconds_per_call * len(calls) * repeats


class NoOperands:
    """Operands of which only flushes are counted."""

    dtype = "float32"
    device = "cpu"

    def __init__(self) -> None:
        self.flushes = 0

    def floats(self, *shape: int, dtype: str | None = None) -> object:
        raise AssertionError("not asked for here")

    def integers(self, *shape: int, below: int) -> object:
        raise AssertionError("not asked for here")

    def flush(self) -> None:
        self.flushes += 1


def make_case(*, cold: bool = True, flush: bool = False) -> tuple[Case, list[int]]:
    made: list[int] = []

    def make(take: Operands) -> Call:
        made.append(1)
        return lambda: None

    return Case("a", "matmul", "float32", "", make, cold=cold, flush=flush), made


def test_a_visit_gives_seconds_per_call_hot_and_cold() -> None:
    case, _ = make_case()
    found = timing.visit(case, FakeClock(0.0005), NoOperands())  # type: ignore[arg-type]
    assert found.hot == pytest.approx([0.0005] * timing.SAMPLES_PER_VISIT)
    assert found.cold == pytest.approx([0.0005])


def test_a_quick_call_is_repeated_until_the_clock_can_see_it_and_a_slow_one_is_not() -> None:
    quick, slow = FakeClock(1e-6), FakeClock(0.2)
    timing.visit(make_case()[0], quick, NoOperands())  # type: ignore[arg-type]
    timing.visit(make_case()[0], slow, NoOperands())  # type: ignore[arg-type]
    assert quick.calls > timing.MOST_REPEATS
    assert slow.calls <= 3


def test_cold_calls_each_have_operands_of_their_own() -> None:
    case, made = make_case()
    timing.visit(case, FakeClock(0.0005), NoOperands())  # type: ignore[arg-type]
    assert len(made) == 1 + round(timing.VISIT_SECONDS / 2 / 0.0005)


def test_a_case_that_asks_for_it_finds_its_caches_emptied_before_each_call() -> None:
    case, _ = make_case(cold=False, flush=True)
    operands = NoOperands()
    found = timing.visit(case, FakeClock(0.0005), operands)  # type: ignore[arg-type]
    assert operands.flushes == len(found.hot) == timing.SAMPLES_PER_VISIT
    assert found.cold == []


def test_statistics_are_those_of_the_samples() -> None:
    found = timing.stats_of([4.0, 1.0, 2.0, 3.0, 5.0])
    assert (found.median, found.low, found.count) == (3.0, 1.0, 5)
    assert found.p90 == pytest.approx(4.6)
    assert found.spread == pytest.approx((4.6 - 1.4) / 3.0)
    with pytest.raises(ValueError, match="no samples"):
        timing.stats_of([])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_says_the_time_left_on_a_terminal_and_nothing_in_a_pipe() -> None:
    moments = iter([0.0, 25.0, 25.1])
    terminal, pipe = Terminal(), io.StringIO()
    timing.Progress(terminal, 100.0, lambda: next(moments)).show("mm/nt")
    assert "75 s left" in terminal.getvalue()
    assert "25%" in terminal.getvalue()
    timing.Progress(pipe, 100.0, lambda: 0.0).show("mm/nt")
    assert pipe.getvalue() == ""
