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
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from . import money
from .answer import Cost, Hours
from .assumptions import Figure
from .terms import Factor, Interruptions, Priced

Floats = npt.NDArray[np.float64]

# Each normal is stratified: its 512 values are the expected order statistics of a normal sample, shuffled.
# So a range that hangs on one of them (the speed band of most options) is as exact as P10 and P90 can be;
# the standard error of a chance near 90 % is at most sqrt(0.09 / 512) = 1.3 points.
DRAWS = 512
_STRATUM = 64
Z_80 = 1.2815515655446004
_FACTORS: tuple[Factor, ...] = ("electricity", "spot price", "resale")
# Past this many expected losses their number is taken as normal: the exact walk would need as many columns.
_MANY_LOSSES = 100.0


@dataclass(frozen=True, slots=True)
class Draw:
    """One option to simulate. hours, paid_hours, training_hours: central. [h]

    speed_low, speed_high: factors on training_hours at the ends of the 80 % band. start: of the start-up.
    """

    priced: Priced
    hours: float
    paid_hours: float
    training_hours: float
    speed_low: float
    speed_high: float
    start: Figure


class Simulated:
    """Draws of each option, (options, draws), as factors on its central hours and cost.

    Their P10 and P90 never lie on the wrong side of the central estimate: the expected run of a spot option
    can be longer than the P90 of its draws where losses are rare and dear; the range then ends there.
    """

    def __init__(self, hours: Floats, cost: Floats) -> None:
        self.hours = hours
        self.cost = cost
        self._hours = _p10_p90(hours)
        self._cost = _p10_p90(cost)

    def spread_of_hours(self, index: int, central: Decimal) -> Hours:
        """P10 and P90 around the central estimate. [h]"""
        low, high = _around(self._hours[index], central)
        return Hours(low, central, high)

    def spread_of_cost(self, index: int, central: Decimal) -> Cost:
        """P10 and P90 around the central estimate. [currency]"""
        low, high = _around(self._cost[index], central)
        return Cost(low, central, high)

    def chance(self, of: Floats, index: int, central: Decimal, limit: Decimal | None) -> float | None:
        """Share of draws of `hours` or `cost` within the limit, None without one."""
        if limit is None:
            return None
        kept = of[index] * float(central) <= float(limit)
        return round(float(np.mean(kept)), 4)


def simulate(options: Sequence[Draw], seed: int, *, draws: int = DRAWS, run: int | None = None) -> Simulated:
    """Draws hours and costs of every option under common random numbers. Same seed, same draws.

    run: number of a run in a schedule. Runs share what is one fact for all of them (how far the speed model
    is off, electricity, prices, resale); start-up, losses and outages are each run's own.
    """
    facts = [option.priced.interruptions for option in options]
    luck = _Luck(seed, max((_columns(fact) for fact in facts if fact is not None), default=1), draws, run)
    starts = {option.start.key: _two_sided(luck.start, option.start) for option in options}
    start = np.array([starts[option.start.key] for option in options])
    centre = np.array([[option.training_hours] for option in options])
    low = np.array([[option.speed_low] for option in options])
    high = np.array([[option.speed_high] for option in options])
    training = centre * _factor(luck.speed, low, high)
    paid = start + training + np.array([[_other_hours(option)] for option in options])
    hours = paid.copy()
    for index, fact in enumerate(facts):
        if fact is not None:
            paid[index], waiting = _interrupted(training[index], fact, luck)
            paid[index] += start[index]
            hours[index] = paid[index] + waiting
    hours /= np.array([[option.hours] for option in options])
    paid /= np.array([[option.paid_hours] for option in options])
    return Simulated(hours, _costs(options, paid, luck))


class _Luck:
    """The random numbers of all options, each (draws,) or (draws, losses)."""

    def __init__(self, seed: int, columns: int, draws: int, run: int | None) -> None:
        rng = np.random.default_rng(seed)
        self._scores = _scores(seed, draws)
        rng.standard_normal(draws * _STRATUM)  # what _scores drew
        self.speed = rng.permutation(self._scores)
        start, losses = rng.permutation(self._scores), rng.permutation(self._scores)
        self.by_factor = {factor: rng.permutation(self._scores) for factor in _FACTORS}
        if run is not None:
            rng = np.random.default_rng((seed, run))
            start, losses = rng.permutation(self._scores), rng.permutation(self._scores)
        self.start, self.losses = start, losses
        self.arrivals = rng.exponential(size=(draws, columns)).cumsum(axis=1)
        self.lost = rng.random((draws, columns)).cumsum(axis=1)
        self.outages = rng.exponential(size=(draws, columns)).cumsum(axis=1)


@lru_cache(maxsize=4)
def _scores(seed: int, draws: int) -> Floats:
    """The expected order statistics of a normal sample of that size, symmetric around 0."""
    numbers = np.random.default_rng(seed).standard_normal(draws * _STRATUM)
    sample = np.sort(numbers).reshape(draws, _STRATUM).mean(axis=1)
    return np.asarray((sample - sample[::-1]) / 2)


def factors(seed: int, draws: int) -> dict[Factor, Floats]:
    """The normal of each factor, (draws,), as every option of that seed has it."""
    return _Luck(seed, 1, draws, None).by_factor


def lognormal(z: Floats, low: float, high: float) -> Floats:
    """Factors around 1 whose 10 % and 90 % points are low and high."""
    return _factor(z, low, high)


def _factor(z: Floats, low: Any, high: Any) -> Floats:
    """exp(z σ) with σ from the 10 % point below and the 90 % point above, which may differ."""
    below, above = np.log(low) / -Z_80, np.log(high) / Z_80
    return np.asarray(np.exp(z * np.where(z < 0, below, above)))


def _two_sided(z: Floats, figure: Figure) -> Floats:
    if figure.value == 0:
        return np.zeros_like(z)
    low, high = float(figure.low / figure.value), float(figure.high / figure.value)
    return float(figure.value) * _factor(z, max(low, 1e-6), max(high, 1e-6))


def _other_hours(option: Draw) -> float:
    """Hours that nothing moves: the checkpoints of an uninterrupted run."""
    if option.priced.interruptions is not None:
        return 0.0
    return option.hours - float(option.start.value) - option.training_hours


def _columns(facts: Interruptions) -> int:
    """How many losses to draw: a Poisson count passes four times its mean plus twelve once in a million."""
    return int(4 * min(facts.expected.losses, _MANY_LOSSES)) + 12


def _interrupted(training: Floats, facts: Interruptions, luck: _Luck) -> tuple[Floats, Floats]:
    """Paid hours and hours without a machine of each draw.

    A loss costs the work since the last checkpoint, uniform over an interval, and a restart; it happens when
    the machine hours so far pass the next arrival of a Poisson process of rate 1/M.
    """
    segments = np.ceil(training / facts.interval) if facts.interval else np.zeros_like(training)
    needed = training + segments * facts.checkpoint
    stretch = facts.interval + facts.checkpoint
    expected = facts.expected.losses
    if expected > _MANY_LOSSES:
        scale = training / max(float(np.mean(training)), 1e-12)
        count = np.maximum(0.0, scale * expected + np.sqrt(expected) * luck.losses)
        paid = needed + count * (facts.expected.paid - float(np.mean(needed))) / expected
        return np.maximum(paid, needed), count * facts.outage
    columns = _columns(facts)
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


def _costs(options: Sequence[Draw], ratio: Floats, luck: _Luck) -> Floats:
    """(options, draws): each line times the hours' ratio where it grows with hours, times its factor; all as
    a factor on the option's central cost."""
    plain = np.zeros((len(options), 1))
    by_hours = np.zeros((len(options), 1))
    moved: dict[Factor, list[tuple[int, float, float, float, bool]]] = {factor: [] for factor in _FACTORS}
    for index, option in enumerate(options):
        total = float(option.priced.cost)
        for line, risk in zip(option.priced.lines, option.priced.risks, strict=True):
            share = float(line.amount) / total
            if risk.factor is not None:
                moved[risk.factor].append((index, share, risk.low, risk.high, risk.with_hours))
            elif risk.with_hours:
                by_hours[index] += share
            else:
                plain[index] += share
    cost = plain + by_hours * ratio
    for factor, lines in moved.items():
        if not lines:
            continue
        at, shares, low, high, with_hours = (np.array(column) for column in zip(*lines, strict=True))
        drawn = shares[:, None] * _factor(luck.by_factor[factor], low[:, None], high[:, None])
        drawn *= np.where(with_hours[:, None], ratio[at], 1.0)
        np.add.at(cost, at, drawn)
    return np.asarray(cost)


def _p10_p90(draws: Floats) -> list[list[float]]:
    count = draws.shape[1]
    ranks = [int(0.1 * count), math.ceil(0.9 * count) - 1]
    ends: list[list[float]] = np.partition(draws, ranks, axis=1)[:, ranks].tolist()
    return ends


def _around(factors: list[float], central: Decimal) -> tuple[Decimal, Decimal]:
    value = float(central)
    low, high = (money.quantity(value * factor) for factor in factors)
    return min(central, low), max(central, high)
