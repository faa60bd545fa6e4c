"""Calendar months of a time zone, and amounts cut where they begin.

A month has the hours it has: 672 in February, 696 in a leap year's, 743 or 745 where the clock changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from zoneinfo import ZoneInfo

from planner import money

MONTHS_A_YEAR = 12


@dataclass(frozen=True, slots=True, order=True)
class Month:
    """A calendar month. index: months since year 0."""

    index: int

    @property
    def year(self) -> int:
        return self.index // MONTHS_A_YEAR

    @property
    def number(self) -> int:
        """1 is January."""
        return self.index % MONTHS_A_YEAR + 1

    @property
    def first_day(self) -> date:
        return date(self.year, self.number, 1)

    def plus(self, months: int) -> Month:
        return Month(self.index + months)

    def fiscal(self, starts: int) -> tuple[int, int]:
        """(fiscal year, period 1 to 12) where the year starts in month `starts`; named after its end."""
        moved = self.index + (MONTHS_A_YEAR + 1 - starts) % MONTHS_A_YEAR
        return moved // MONTHS_A_YEAR, moved % MONTHS_A_YEAR + 1


def month(year: int, number: int) -> Month:
    return Month(year * MONTHS_A_YEAR + number - 1)


def month_of(at: datetime, zone: ZoneInfo) -> Month:
    """The month an instant lies in."""
    there = at.astimezone(zone)
    return month(there.year, there.month)


@cache
def start_of(which: Month, zone: ZoneInfo) -> datetime:
    """Its first instant, in UTC."""
    return datetime(which.year, which.number, 1, tzinfo=zone).astimezone(UTC)


def hours_of(which: Month, zone: ZoneInfo) -> Decimal:
    """[h]

    >>> [str(hours_of(month(y, m), ZoneInfo("UTC"))) for y, m in ((2027, 2), (2028, 2), (2027, 3))]
    ['672', '696', '744']
    """
    seconds = (start_of(which.plus(1), zone) - start_of(which, zone)).total_seconds()
    return money.plain(money.divided(Decimal(int(seconds)), Decimal(3600)))


def between(first: Month, last: Month) -> Iterator[Month]:
    """Both included."""
    return (Month(index) for index in range(first.index, last.index + 1))


def pieces(start: datetime, end: datetime, zone: ZoneInfo) -> list[tuple[Month, datetime, datetime]]:
    """The time from start to end cut where months begin; one piece where they are the same instant."""
    first = month_of(start, zone)
    if end <= start_of(first.plus(1), zone):
        return [(first, start, end)]
    found = []
    while start < end:
        edge = min(end, start_of(first.plus(1), zone))
        found.append((first, start, edge))
        start, first = edge, first.plus(1)
    return found


def split(amount: Decimal, weights: list[Decimal], step: Decimal = money.PRICE_STEP) -> list[Decimal]:
    """`amount` in proportion to `weights`, each part a multiple of `step` but the last: it takes the rest.

    The parts add up exactly and none has the other sign. Rounding the running sum keeps every part within
    a step of its share.
    """
    whole = money.total(weights)
    if len(weights) == 1 or not whole:
        return [amount] + [money.ZERO] * (len(weights) - 1)
    parts, passed, given = [], money.ZERO, money.ZERO
    for weight in weights[:-1]:
        passed += weight
        upto = money.quantity(money.divided(money.product(amount, passed), whole), step)
        upto = min(upto, amount) if amount > 0 else max(upto, amount)
        parts.append(money.total((upto, -given)))
        given = upto
    return [*parts, money.total((amount, -given))]


def split_by_month(
    amount: Decimal, start: datetime, end: datetime, zone: ZoneInfo, step: Decimal = money.PRICE_STEP
) -> list[tuple[Month, Decimal]]:
    """An amount for a service, by the months it is rendered in, in proportion to their time."""
    cut = pieces(start, end, zone)
    seconds = [Decimal(int((to - since).total_seconds())) for _, since, to in cut]
    return [(which, part) for (which, _, _), part in zip(cut, split(amount, seconds, step), strict=True)]


def rounded_together(amounts: list[Decimal], step: Decimal) -> list[Decimal]:
    """Each amount as a multiple of `step` so that they add up to their rounded sum: largest remainders first.

    >>> [str(a) for a in rounded_together([Decimal("0.004")] * 3, Decimal("0.01"))]
    ['0.01', '0.00', '0.00']
    """
    floors = [amount // step * step for amount in amounts]
    floors = [low - step if low > amount else low for low, amount in zip(floors, amounts, strict=True)]
    missing = money.quantity(money.total(amounts), step) - money.total(floors)
    order = sorted(range(len(amounts)), key=lambda i: (floors[i] - amounts[i], i))
    result = [money.quantity(low, step) for low in floors]
    for position in order[: int(missing / step)]:
        result[position] += step
    return result
