"""The exact Pareto front of (hours, cost): what no other option is both faster and cheaper than."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple


class Point(NamedTuple):
    """One option to compare. hours [h], cost [currency]: both better when smaller."""

    id: str
    hours: Decimal
    cost: Decimal


def dominates(a: Point, b: Point) -> bool:
    """Whether `a` is no slower and no dearer than `b`, and better in one."""
    return a.hours <= b.hours and a.cost <= b.cost and (a.hours < b.hours or a.cost < b.cost)


def pareto_front(points: Sequence[Point]) -> dict[str, str | None]:
    """Per id: None on the front, else the id of a front point that dominates it. Any input order.

    Points equal in both are both on the front. Of the front points that dominate, the cheapest is named,
    which is also the slowest of them. One sort and one pass, O(n log n).

    >>> pareto_front([Point("a", Decimal(10), Decimal(100)), Point("b", Decimal(12), Decimal(100))])
    {'a': None, 'b': 'a'}
    """
    by_time = sorted(points, key=lambda p: (p.hours, p.cost, p.id))
    found: dict[str, str | None] = {}
    best: Point | None = None
    for point in by_time:
        if best is None or point.cost < best.cost:
            best = point
            found[point.id] = None
        elif (point.hours, point.cost) == (best.hours, best.cost):
            found[point.id] = None
        else:
            found[point.id] = best.id
    return {point.id: found[point.id] for point in points}
