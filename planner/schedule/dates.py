"""The calendar of a schedule: months as they begin in its time zone, and hours counted from the first.

A month has the hours it has: 672 in February, 696 in a leap year's, 743 or 745 where the clock changes.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from zoneinfo import ZoneInfo

from .quantities import start_of

_HOUR = timedelta(hours=1)


def month_after(day: date, months: int) -> date:
    """The first day of the month that many months later."""
    count = day.year * 12 + day.month - 1 + months
    return date(count // 12, count % 12 + 1, 1)


@dataclass(frozen=True)
class Calendar:
    """first: first day of month 0. months: how many. zone: in which they begin."""

    first: date
    months: int
    zone: ZoneInfo

    @cached_property
    def edges(self) -> tuple[datetime, ...]:
        """The start of each month and the end of the last, UTC."""
        days = (month_after(self.first, number) for number in range(self.months + 1))
        return tuple(start_of(day, self.zone) for day in days)

    @cached_property
    def edge_hours(self) -> tuple[float, ...]:
        """`edges` in hours from the start. [h]"""
        return tuple(self.hours(edge) for edge in self.edges)

    @property
    def starts(self) -> datetime:
        return self.edges[0]

    @property
    def ends(self) -> datetime:
        return self.edges[-1]

    @property
    def month_hours(self) -> tuple[float, ...]:
        """Of each month. [h]"""
        hours = self.edge_hours
        return tuple(end - start for start, end in itertools.pairwise(hours))

    def hours(self, at: datetime) -> float:
        """Hours from the start. [h]"""
        return (at - self.starts) / _HOUR

    def moment(self, hours: float | Decimal) -> datetime:
        """The instant so many hours after the start, to the second."""
        return self.starts + timedelta(seconds=round(float(hours) * 3600))

    def month_of(self, hours: float) -> int:
        """The number of the month that instant lies in; the last one past the end."""
        return min(self.months - 1, max(0, bisect_right(self.edge_hours, hours) - 1))

    def window(self, release: float, deadline: float | None) -> tuple[int, ...]:
        """The months that overlap the hours from release to deadline (None: to the end)."""
        last = self.months - 1 if deadline is None else self.month_of(max(release, deadline - 1e-9))
        return tuple(range(self.month_of(release), last + 1))

    def pieces(self, start: float, end: float) -> Iterator[tuple[float, float]]:
        """The hours from start to end, cut where months begin. The rest past the last month is one piece."""
        cuts = [edge for edge in self.edge_hours[1:-1] if start < edge < end]
        points = [start, *cuts, end]
        yield from itertools.pairwise(points)

    def name(self, month: int) -> str:
        """ "2027-03"."""
        return f"{month_after(self.first, month):%Y-%m}"
