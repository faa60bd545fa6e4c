"""What is free over time: rigs or GPUs at every instant, and money or cover by the month."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

from .flat import SAME_HOURS


class Profile:
    """How many of one thing are free at every instant, as steps.

    times: where the number changes, ascending from -inf; free: from each of them to the next.
    """

    __slots__ = ("free", "times")

    def __init__(self, steps: Sequence[tuple[float, float]]) -> None:
        """steps: (hour, number free from then on), ascending; the first holds before its hour too."""
        self.times = [-math.inf, *(hour for hour, _ in steps[1:])]
        self.free = [number for _, number in steps]

    def copy(self) -> Profile:
        other = Profile.__new__(Profile)
        other.times, other.free = self.times[:], self.free[:]
        return other

    def earliest(self, after: float, hours: float, number: float) -> float:
        """First start at or after `after` from which `number` is free for `hours`; inf if never. [h]"""
        times, free = self.times, self.free
        i = bisect.bisect_right(times, after + SAME_HOURS) - 1
        start, last = after, len(times)
        while i < last:
            if free[i] < number - 1e-9:
                i += 1
                if i == last:
                    return math.inf
                start = times[i]
                continue
            i += 1
            if i == last or times[i] >= start + hours - SAME_HOURS:
                return start
        return math.inf

    def take(self, start: float, end: float, number: float) -> None:
        """Hold `number` from start to end."""
        if end - start <= SAME_HOURS:
            return
        first, last = self._cut(start), self._cut(end)
        for i in range(first, last):
            self.free[i] -= number

    def _cut(self, hour: float) -> int:
        """Place of the step that begins at `hour`, made if there is none within SAME_HOURS."""
        i = bisect.bisect_right(self.times, hour + SAME_HOURS) - 1
        if self.times[i] >= hour - SAME_HOURS:
            return i
        self.times.insert(i + 1, hour)
        self.free.insert(i + 1, self.free[i])
        return i + 1


class Months:
    """An amount left in each month, drawn evenly over the hours of a run."""

    __slots__ = ("left", "starts")

    def __init__(self, starts: Sequence[float], left: Sequence[float]) -> None:
        """starts: of each month and the end of the last; left: of each month, inf where unlimited."""
        self.starts = starts
        self.left = list(left)

    def copy(self) -> Months:
        return Months(self.starts, self.left)

    def earliest(self, after: float, hours: float, amount: float) -> float:
        """First start at or after `after` whose months can all pay; past the last month all can. [h]"""
        start = after
        while True:
            worse = next(
                (
                    month
                    for month, part in spread(self.starts, start, hours, amount)
                    if part > self.left[month] + 1e-7 * max(1.0, amount)
                ),
                None,
            )
            if worse is None:
                return start
            if hours <= SAME_HOURS:
                later = self.starts[worse + 1]
            else:  # as late as leaves to that month what it can pay
                fits = max(0.0, self.left[worse]) * hours / amount
                later = self.starts[worse + 1] - min(fits, hours)
            start = later if later > start else start + SAME_HOURS

    def take(self, start: float, hours: float, amount: float) -> None:
        """Draw what a run from `start` uses in each month."""
        for month, part in spread(self.starts, start, hours, amount):
            self.left[month] -= part


def spread(starts: Sequence[float], start: float, hours: float, amount: float) -> list[tuple[int, float]]:
    """(month, its part of the amount) of a run, evenly over its hours; what lies past the end is left out."""
    month = max(0, bisect.bisect_right(starts, start + SAME_HOURS) - 1)
    if month >= len(starts) - 1:
        return []
    if hours <= SAME_HOURS:
        return [(month, amount)]
    parts: list[tuple[int, float]] = []
    end = start + hours
    while month < len(starts) - 1 and starts[month] < end - SAME_HOURS:
        overlap = min(end, starts[month + 1]) - max(start, starts[month])
        parts.append((month, amount * overlap / hours))
        month += 1
    return parts
