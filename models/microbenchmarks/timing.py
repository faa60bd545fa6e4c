"""How time is taken: process CPU time of one thread on a CPU, CUDA events on a card; medians over visits.

Wall time on a shared machine is off by up to 5x; the CPU time of one thread is not. Every case is visited
several times, in an order drawn anew for each round, so that a noisy minute spreads over all of them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .registry import Call, Case, Operands

# A visit's repeats fill this much time, so that the clock's own 0.5 us does not show. [s]
VISIT_SECONDS = 0.003
MOST_REPEATS = 200
MOST_COLD_CALLS = 12
SAMPLES_PER_VISIT = 3


class Clock(Protocol):
    """Seconds that a number of calls take, one after the other, together."""

    name: str

    def seconds(self, calls: Sequence[Call], repeats: int) -> float: ...


class CpuClock:
    """CPU time of this process: right only while torch runs one thread."""

    name = "process CPU time, 1 thread"

    def seconds(self, calls: Sequence[Call], repeats: int) -> float:
        start = time.process_time_ns()
        for _ in range(repeats):
            for call in calls:
                call()
        return (time.process_time_ns() - start) / 1e9


class CudaClock:
    """CUDA events around a stream of calls: no wait between them, as in a training step."""

    name = "CUDA events"

    def seconds(self, calls: Sequence[Call], repeats: int) -> float:
        import torch

        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        begin.record()
        for _ in range(repeats):
            for call in calls:
                call()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3


class HostClock:
    """Wall time until the last launch has returned: what the host spends while the card works on."""

    name = "host time to launch"

    def seconds(self, calls: Sequence[Call], repeats: int) -> float:
        import torch

        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(repeats):
            for call in calls:
                call()
        spent = time.perf_counter() - start
        torch.cuda.synchronize()
        return spent


@dataclass(frozen=True, slots=True)
class Stats:
    """Of the seconds of one call. spread: (p90 - p10) / median."""

    median: float
    low: float
    p90: float
    spread: float
    count: int


def stats_of(samples: Sequence[float]) -> Stats:
    """Median, minimum, 90th percentile and spread. Raises ValueError without samples.

    >>> stats_of([1.0, 2.0, 3.0]).median
    2.0
    """
    if not samples:
        raise ValueError("no samples")
    ordered = sorted(samples)
    median = statistics.median(ordered)
    p90, p10 = _quantile(ordered, 0.9), _quantile(ordered, 0.1)
    return Stats(median, ordered[0], p90, (p90 - p10) / median if median else 0.0, len(ordered))


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


@dataclass(frozen=True, slots=True)
class Visit:
    """Seconds per call: hot on the same operands again and again, cold on operands not touched lately."""

    hot: list[float]
    cold: list[float]


def visit(case: Case, clock: Clock, operands: Operands) -> Visit:
    """Time one case once: warm up, choose repeats from the time one call takes, sample hot and cold."""
    call = case.make(operands)
    call()
    if case.flush:
        return Visit(_flushed(call, clock, operands), [])
    one = max(clock.seconds([call], 1), 1e-7)
    repeats = max(1, min(MOST_REPEATS, round(VISIT_SECONDS / one)))
    # A call of tens of milliseconds is sampled once a visit; later visits give the spread.
    samples = SAMPLES_PER_VISIT if one * repeats < 0.01 else 1
    hot = [clock.seconds([call], repeats) / repeats for _ in range(samples)]
    cold: list[float] = []
    if case.cold:
        count = max(1, min(MOST_COLD_CALLS, round(VISIT_SECONDS / 2 / one)))
        calls = [case.make(operands) for _ in range(count)]
        cold = [clock.seconds(calls, 1) / count]
    return Visit(hot, cold)


def _flushed(call: Call, clock: Clock, operands: Operands) -> list[float]:
    samples = []
    for _ in range(SAMPLES_PER_VISIT):
        operands.flush()
        samples.append(clock.seconds([call], 1))
    return samples


def clock_for(device: str, case: Case) -> Clock:
    """The clock of a case on a device ("cpu", "cuda")."""
    if device == "cpu":
        return CpuClock()
    return HostClock() if case.clock == "host" else CudaClock()


class Progress:
    """One line on a terminal, rewritten: share done and seconds left. Silent anywhere else."""

    def __init__(self, stream: Any, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._seconds, self._now = stream, seconds, now
        self._start = now()
        self._shown = float("-inf")
        self._on = bool(getattr(stream, "isatty", lambda: False)())

    def show(self, what: str) -> None:
        moment = self._now()
        if not self._on or moment - self._shown < 0.2:
            return
        self._shown = moment
        spent = moment - self._start
        share = min(1.0, spent / self._seconds) if self._seconds else 1.0
        left = max(0.0, self._seconds - spent)
        bar = "#" * round(24 * share)
        self._stream.write(f"\r[{bar:<24}] {share:4.0%}  {left:3.0f} s left  {what[:36]:<36}")
        self._stream.flush()

    def close(self) -> None:
        if self._on:
            self._stream.write("\r" + " " * 79 + "\r")
            self._stream.flush()
