"""Rows under simulated luck: rows that can only differ by a factor are simulated once."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from . import money
from .answer import Cost, Hours
from .risk import Draw, simulate
from .rows import Row
from .terms import Terms


class Luck:
    """Spread and chances of rows, in their order. Same seed, same draws.

    Rows of one run under one purchase model differ in the price of an hour alone (regions, zones), so their
    draws are the same up to that factor.
    """

    def __init__(self, rows: Sequence[Row], terms: Terms, seed: int) -> None:
        shapes: dict[tuple[object, ...], int] = {}
        draws: list[Draw] = []
        self._rows = rows
        self._shape: list[int] = []
        for row in rows:
            if row.shape not in shapes:
                shapes[row.shape] = len(draws)
                draws.append(row.draw(row.price(terms)))
            self._shape.append(shapes[row.shape])
        self._simulated = simulate(draws, seed)
        self._hours: dict[int, Hours] = {}

    def hours(self, index: int) -> Hours:
        """P10, central, P90. [h]"""
        shape = self._shape[index]
        if shape not in self._hours:  # the same run, so the same central hours
            self._hours[shape] = self._simulated.spread_of_hours(shape, self._rows[index].hours)
        return self._hours[shape]

    def cost(self, index: int) -> Cost:
        """P10, central, P90. [currency]"""
        return self._simulated.spread_of_cost(self._shape[index], self._rows[index].cost)

    def chance_of_hours(self, index: int, limit: Decimal | None) -> float | None:
        """Share of draws within the limit, None without one."""
        draws = self._simulated
        return draws.chance(draws.hours, self._shape[index], self._rows[index].hours, limit)

    def chance_of_cost(self, index: int, limit: Decimal | None) -> float | None:
        """Share of draws within the limit, None without one."""
        draws = self._simulated
        return draws.chance(draws.cost, self._shape[index], self._rows[index].cost, limit)

    def percentile(self, percent: Decimal) -> list[tuple[Decimal, Decimal]]:
        """(hours, cost) of each row at that percentile, never below the central estimates."""
        share = float(percent) / 100
        hours = np.quantile(self._simulated.hours, share, axis=1).tolist()
        cost = np.quantile(self._simulated.cost, share, axis=1).tolist()
        return [
            (_at_least(row.hours, hours[shape]), _at_least(row.cost, cost[shape]))
            for row, shape in zip(self._rows, self._shape, strict=True)
        ]


def _at_least(central: Decimal, factor: float) -> Decimal:
    return max(central, money.quantity(float(central) * factor))
