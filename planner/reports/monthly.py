"""A ledger by month: what leaves, of which kind, added exactly."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from planner import money


@dataclass(frozen=True, slots=True)
class Month:
    """name: 2027-01. kinds: category -> sum. total: of them all. [currency]"""

    name: str
    kinds: Mapping[str, Decimal]
    total: Decimal


def months(ledger: Iterable[Mapping[str, Any]], time_zone: str) -> tuple[Month, ...]:
    """The payments of a plan document by the month in which they fall due, every month between them too.

    time_zone: in which months begin. The totals add up to the plan's cost, to the last decimal.
    """
    zone = ZoneInfo(time_zone)
    sums: defaultdict[tuple[int, int], defaultdict[str, list[Decimal]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for payment in ledger:
        due = datetime.fromisoformat(payment["due"]).astimezone(zone)
        sums[due.year, due.month][payment["category"]].append(Decimal(payment["amount"]))
    if not sums:
        return ()
    return tuple(
        _month(year, month, sums.get((year, month), {})) for year, month in _between(min(sums), max(sums))
    )


def _month(year: int, month: int, sums: Mapping[str, Iterable[Decimal]]) -> Month:
    kinds = {kind: money.total(amounts) for kind, amounts in sorted(sums.items())}
    return Month(f"{year:04d}-{month:02d}", kinds, money.total(kinds.values()))


def _between(first: tuple[int, int], last: tuple[int, int]) -> Iterable[tuple[int, int]]:
    year, month = first
    while (year, month) <= last:
        yield year, month
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
