"""A mixed-integer linear model as sparse arrays, for whichever solver; and a builder for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .flat import Bools, Floats, Ints

# Columns and their coefficients; either may be a single one.
Entry = tuple[Ints | int, Floats | float]


@dataclass(frozen=True, slots=True, eq=False)
class LinearModel:
    """Least cost·x with low ≤ x ≤ high and row_low ≤ A x ≤ row_high; x of `whole` columns are integers.

    A by rows: entries of row r are [begin[r], begin[r+1]) of index (columns) and value.
    """

    cost: Floats
    low: Floats
    high: Floats
    whole: Bools
    row_low: Floats
    row_high: Floats
    begin: Ints
    index: Ints
    value: Floats


@dataclass(frozen=True, slots=True)
class Solved:
    """What a solver said. status: "optimal" (within the gap), "limit" (stopped with or without a point),
    "infeasible". x: the best point or None. bound: no point costs less (-inf where unknown).
    """

    status: str
    x: Floats | None
    objective: float
    bound: float

    @property
    def gap(self) -> float:
        """(objective − bound) / objective: the share that is not proven. [0, 1]"""
        if self.x is None or self.objective <= 0:
            return 0.0
        return max(0.0, (self.objective - self.bound) / self.objective)


@dataclass(slots=True)
class Builder:
    """Columns and rows, added in blocks."""

    _cost: list[Floats] = field(default_factory=list)
    _low: list[Floats] = field(default_factory=list)
    _high: list[Floats] = field(default_factory=list)
    _whole: list[Bools] = field(default_factory=list)
    _columns: int = 0
    _rows: int = 0
    _row_low: list[float] = field(default_factory=list)
    _row_high: list[float] = field(default_factory=list)
    _row: list[Ints] = field(default_factory=list)
    _index: list[Ints] = field(default_factory=list)
    _value: list[Floats] = field(default_factory=list)

    def columns(
        self,
        count: int,
        cost: Floats | float = 0.0,
        low: Floats | float = 0.0,
        high: Floats | float = np.inf,
        whole: bool = False,
    ) -> Ints:
        """New columns; their numbers."""
        for store, value in ((self._cost, cost), (self._low, low), (self._high, high)):
            store.append(np.broadcast_to(np.asarray(value, dtype=np.float64), (count,)).copy())
        self._whole.append(np.full(count, whole))
        self._columns += count
        return np.arange(self._columns - count, self._columns)

    def row(
        self,
        entries: Sequence[Entry],
        low: float = -np.inf,
        high: float = np.inf,
    ) -> int:
        """One row: Σ value × column in [low, high]; (columns, values) pairs, either may be a single one.

        A column may be named once only. Returns the row's number.
        """
        for index, value in entries:
            columns = np.atleast_1d(np.asarray(index, dtype=np.int64))
            values = np.broadcast_to(np.asarray(value, dtype=np.float64), columns.shape)
            used = values != 0.0
            self._index.append(columns[used])
            self._value.append(values[used])
            self._row.append(np.full(int(used.sum()), self._rows))
        self._row_low.append(low)
        self._row_high.append(high)
        self._rows += 1
        return self._rows - 1

    def add_cost(self, column: int, cost: float) -> None:
        """More cost per unit of a column."""
        for block in self._cost:
            if column < len(block):
                block[column] += cost
                return
            column -= len(block)

    def model(self) -> LinearModel:
        """All that was added."""
        row = _joined(self._row, np.int64)
        order = np.argsort(row, kind="stable")
        begin = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=self._rows)))).astype(np.int64)
        return LinearModel(
            cost=_joined(self._cost, np.float64),
            low=_joined(self._low, np.float64),
            high=_joined(self._high, np.float64),
            whole=_joined(self._whole, np.bool_),
            row_low=np.array(self._row_low, dtype=np.float64),
            row_high=np.array(self._row_high, dtype=np.float64),
            begin=begin,
            index=_joined(self._index, np.int64)[order],
            value=_joined(self._value, np.float64)[order],
        )


def _joined(blocks: list, kind: type) -> np.ndarray:  # type: ignore[type-arg]
    return np.concatenate(blocks).astype(kind) if blocks else np.zeros(0, dtype=kind)
