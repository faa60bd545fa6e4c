"""How sure a plan is: cost and time of every option under the same simulated luck.

Each source of uncertainty (speed, start-up, losses, spot price, electricity, resale) is one random number per
draw, shared by all options, so that options are compared under equal luck. Central estimates stay what the
plan says; this module adds only the spread around them and the chance to keep the limits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from . import money
from .answer import Cost, Hours
from .assumptions import Figure
from .terms import Factor, Interruptions, Priced

Floats = npt.NDArray[np.float64]

# Standard error of a chance near 90 % from this many draws: sqrt(0.09 / 1024) = 0.9 points.
DRAWS = 1024
Z_80 = 1.2815515655446004
_FACTORS: tuple[Factor, ...] = ("electricity", "spot price", "resale")
# Past this many expected losses their number is taken as normal: the exact walk would need as many columns.
_MANY_LOSSES = 100.0


@dataclass(frozen=True, slots=True)
class Row:
    """One option to simulate. training_hours: central; low and high: factors on it of the 80 % speed band."""

    priced: Priced
    training_hours: float
    speed_low: float
    speed_high: float
    start: Figure


@dataclass(frozen=True, slots=True)
class Simulated:
    """Draws of each row, (rows, draws): hours and cost."""

    hours: Floats
    cost: Floats

    def spread_of_hours(self, row: int, central: Decimal) -> Hours:
        """P10 and P90 around the central estimate. [h]"""
        low, high = _around(self.hours[row], central)
        return Hours(low, central, high)

    def spread_of_cost(self, row: int, central: Decimal) -> Cost:
        """P10 and P90 around the central estimate. [currency]"""
        low, high = _around(self.cost[row], central)
        return Cost(low, central, high)

    def chance_of_hours(self, row: int, limit: Decimal | None) -> float | None:
        """Share of draws within the limit, None without one."""
        return None if limit is None else _share(self.hours[row] <= float(limit))

    def chance_of_cost(self, row: int, limit: Decimal | None) -> float | None:
        """Share of draws within the limit, None without one."""
        return None if limit is None else _share(self.cost[row] <= float(limit))


def simulate(rows: Sequence[Row], seed: int) -> Simulated:
    """Draws hours and costs of every row under common random numbers. Same seed, same draws."""
    luck = _Luck(seed)
    start = np.array([_two_sided(luck.start, row.start) for row in rows])
    centre = np.array([[row.training_hours] for row in rows])
    low = np.array([[row.speed_low] for row in rows])
    high = np.array([[row.speed_high] for row in rows])
    training = centre * _factor(luck.speed, low, high)
    other = np.array([[_other_hours(row)] for row in rows])
    paid = start + training + other
    hours = paid.copy()
    for index, row in enumerate(rows):
        facts = row.priced.interruptions
        if facts is not None:
            paid[index], waiting = _interrupted(training[index], facts, luck)
            paid[index] += start[index]
            hours[index] = paid[index] + waiting
    central_paid = np.array([[_paid_hours(row)] for row in rows])
    return Simulated(hours, _costs(rows, paid / central_paid, luck))


class _Luck:
    """The random numbers of all rows, each (draws,) or (draws, losses); normals come in opposite pairs."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.speed = self._normal()
        self.start = self._normal()
        self.losses = self._normal()
        self.by_factor = {factor: self._normal() for factor in _FACTORS}
        columns = int(2 * _MANY_LOSSES)
        self.arrivals = self._rng.exponential(size=(DRAWS, columns)).cumsum(axis=1)
        self.lost = self._rng.random((DRAWS, columns)).cumsum(axis=1)
        self.outages = self._rng.exponential(size=(DRAWS, columns)).cumsum(axis=1)

    def _normal(self) -> Floats:
        half = self._rng.standard_normal(DRAWS // 2)
        half /= np.sqrt(np.mean(half**2))
        return self._rng.permutation(np.concatenate((half, -half)))


def _factor(z: Floats, low: Any, high: Any) -> Floats:
    """exp(z σ) with σ from the 10 % point below and the 90 % point above, which may differ."""
    below, above = np.log(low) / -Z_80, np.log(high) / Z_80
    return np.asarray(np.exp(z * np.where(z < 0, below, above)))


def _two_sided(z: Floats, figure: Figure) -> Floats:
    if figure.value == 0:
        return np.zeros_like(z)
    low, high = float(figure.low / figure.value), float(figure.high / figure.value)
    return float(figure.value) * _factor(z, max(low, 1e-6), max(high, 1e-6))


def _other_hours(row: Row) -> float:
    """Hours that nothing moves: the checkpoints of an uninterrupted run."""
    if row.priced.interruptions is not None:
        return 0.0
    return float(row.priced.hours) - float(row.start.value) - row.training_hours


def _paid_hours(row: Row) -> float:
    facts = row.priced.interruptions
    if facts is None:
        return float(row.priced.hours)
    return float(row.start.value) + facts.expected.paid


def _interrupted(training: Floats, facts: Interruptions, luck: _Luck) -> tuple[Floats, Floats]:
    """Paid hours and hours without a machine of each draw.

    A loss costs the work since the last checkpoint, uniform over an interval, and a restart; it happens when
    the machine hours so far pass the next arrival of a Poisson process of rate 1/M.
    """
    segments = np.ceil(training / facts.interval)
    needed = training + segments * facts.checkpoint
    stretch = facts.interval + facts.checkpoint
    expected = facts.expected.losses
    if expected > _MANY_LOSSES:
        scale = training / max(float(np.mean(training)), 1e-12)
        count = np.maximum(0.0, scale * expected + np.sqrt(expected) * luck.losses)
        paid = needed + count * (facts.expected.paid - float(np.mean(needed))) / expected
        return np.maximum(paid, needed), count * facts.outage
    columns = min(luck.arrivals.shape[1], int(4 * expected) + 12)
    steps = np.arange(columns)
    redone = luck.lost[:, :columns] * stretch + (steps + 1) * facts.restart
    before = np.concatenate((np.zeros((len(training), 1)), redone[:, :-1]), axis=1)
    survived = luck.arrivals[:, :columns] * facts.mean_to_loss >= needed[:, None] + before
    count = np.where(survived.any(axis=1), survived.argmax(axis=1), columns)
    last = np.maximum(count - 1, 0)
    draws = np.arange(len(training))
    happened = count > 0
    paid = needed + np.where(happened, redone[draws, last], 0.0)
    waiting = np.where(happened, luck.outages[draws, last] * facts.outage, 0.0)
    return paid, waiting


def _costs(rows: Sequence[Row], ratio: Floats, luck: _Luck) -> Floats:
    """(rows, draws): each line times the hours' ratio where it grows with hours, times its factor."""
    plain = np.zeros((len(rows), 1))
    by_hours = np.zeros((len(rows), 1))
    moved: dict[Factor, list[tuple[int, float, float, float, bool]]] = {factor: [] for factor in _FACTORS}
    for index, row in enumerate(rows):
        for line, risk in zip(row.priced.lines, row.priced.risks, strict=True):
            amount = float(line.amount)
            if risk.factor is not None:
                moved[risk.factor].append((index, amount, risk.low, risk.high, risk.with_hours))
            elif risk.with_hours:
                by_hours[index] += amount
            else:
                plain[index] += amount
    cost = plain + by_hours * ratio
    for factor, lines in moved.items():
        if not lines:
            continue
        at, amounts, low, high, with_hours = (np.array(column) for column in zip(*lines, strict=True))
        drawn = amounts[:, None] * _factor(luck.by_factor[factor], low[:, None], high[:, None])
        drawn *= np.where(with_hours[:, None], ratio[at], 1.0)
        np.add.at(cost, at, drawn)
    return np.asarray(cost)


def _around(draws: Floats, central: Decimal) -> tuple[Decimal, Decimal]:
    """P10 and P90, never on the wrong side of the central estimate.

    The expected run of a spot option can lie above the P90 of its draws where losses are rare and dear; the
    range then ends at the estimate.
    """
    low, high = np.partition(draws, _RANKS)[list(_RANKS)]
    return min(central, _rounded(float(low))), max(central, _rounded(float(high)))


_RANKS = (int(0.1 * DRAWS), math.ceil(0.9 * DRAWS) - 1)


def _rounded(value: float) -> Decimal:
    return money.quantity(value)


def _share(kept: npt.NDArray[np.bool_]) -> float:
    return round(float(np.mean(kept)), 4)
