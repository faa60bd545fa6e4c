"""Jobs one after another: the whole front by dynamic programming over time, no solver.

f_j[t] is the least cost of jobs 1 to j if job j has ended by hour t:
    f_j[t] = min over options o of f_{j-1}[t − hours_o] + cost_o,
with waiting for releases, and for months of own rigs, allowed. Rigs are counted outside: one such table for
each number of rigs that some option asks for; between them the cheapest wins at every hour.

What it needs (`fits` says whether): every job waits for the one before it, so no two share anything at once;
one origin, the largest `time`; rigs that work all hours and whose price does not fall later; no commitment
and no month budget, since those count money by the month. Quotas then bind each option alone.

Exact where hours lie on the grid (whole hours, halves, …). Otherwise hours are rounded up for the plan and
down for its bound, so the gap of a row says what the grid cost.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .assemble import choice_of, power_kept
from .enumerate_small import useful_months
from .flat import SAME_HOURS, Floats, Ints, Options, flatten, month_starts, most_rigs, order_of_jobs
from .problem import Choice, Problem
from .reduction import reduce

_GRIDS = (1.0, 0.5, 0.25, 0.1, 0.05, 0.01)
# Steps of time in a table of one job: 1.6 MB.
MOST_STEPS = 200_000
_ROUNDED_STEPS = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Every point of a front, fastest first. time [h] and cost [currency], both (points,).

    rigs: number of each type that is owned, by point: indices into `counts`.
    """

    time: Floats
    cost: Floats
    rigs: Ints
    counts: tuple[tuple[int, ...], ...]


def fits(problem: Problem, options: Options) -> bool:
    """Whether the jobs form such a queue."""
    order = order_of_jobs(problem)
    if len(order) < 2 or problem.objective != "largest" or problem.month_budget is not None:
        return False
    if any(before not in problem.jobs[j].predecessors for before, j in itertools.pairwise(order)):
        return False
    own = bool((options.rig >= 0).any())
    if (options.commitment >= 0).any() or len({job.origin for job in problem.jobs}) > 1:
        return False
    if own and problem.availability < 1.0:
        return False
    return all(len(useful_months(kind.net_cost)) <= 1 for kind in problem.rigs)


def whole_front(problem: Problem, options: Options | None = None) -> Curve:
    """All points. options: None reduces those of the problem."""
    return _Queue(problem, options).curve(down=False)


def queue_front(problem: Problem, options: Options, points: int) -> list[Choice]:
    """Up to `points` choices of the whole front, cheapest first, spread by what the cost drops."""
    queue = _Queue(problem, options)
    curve = queue.curve(down=False)
    if not len(curve.time):
        return []
    bound = curve if queue.exact else queue.curve(down=True)
    rows: list[Choice] = []
    for place in _spread(curve, points):
        choice = queue.choice(curve, int(place))
        if choice is None:
            continue
        fastest_first = np.searchsorted(bound.time, choice.time + SAME_HOURS, side="right") - 1
        least = float(bound.cost[fastest_first]) if fastest_first >= 0 else math.inf
        rows.append(_bounded(choice, least))
    return sorted(rows, key=lambda row: row.cost)


def _bounded(choice: Choice, least: float) -> Choice:
    import dataclasses

    near = 1e-9 * max(1.0, abs(choice.cost))
    bound = choice.cost if least >= choice.cost - near else least
    return dataclasses.replace(choice, bound=bound, proven=True)


def _spread(curve: Curve, points: int) -> list[int]:
    """Both ends, then again and again the middle (by cost) of the largest drop."""
    cost = curve.cost
    kept = sorted({0, len(cost) - 1})
    if points <= 1:
        return [len(cost) - 1]
    while len(kept) < min(points, len(cost)):
        drops = [(cost[a] - cost[b], a, b) for a, b in itertools.pairwise(kept) if b - a > 1]
        if not drops:
            break
        _, a, b = max(drops)
        middle = (cost[a] + cost[b]) / 2
        inside = np.arange(a + 1, b)
        kept.append(int(inside[np.argmin(np.abs(cost[inside] - middle))]))
        kept.sort()
    return kept


class _Queue:
    def __init__(self, problem: Problem, options: Options | None) -> None:
        self.problem = problem
        flat = reduce(flatten(problem), range(len(problem.pools))) if options is None else options
        self.options = flat
        self.order = order_of_jobs(problem)
        self.opens = month_starts(problem)
        self.grid, self.exact = self._grid()
        self.origin = problem.jobs[0].origin

    def _grid(self) -> tuple[float, bool]:
        o = self.options
        slowest = np.zeros(len(self.problem.jobs))
        np.maximum.at(slowest, o.job, o.hours)
        hours = max(1.0, float(o.earliest.max(initial=0.0)) + float(slowest.sum()))
        marks = np.concatenate((o.hours, o.earliest, o.latest[np.isfinite(o.latest)], self.opens))
        for grid in _GRIDS:
            if hours / grid > MOST_STEPS:
                break
            steps = marks / grid
            if (np.abs(steps - np.round(steps)) <= 1e-7 * np.maximum(1.0, steps)).all():
                return grid, True
        return max(hours / _ROUNDED_STEPS, 1e-6), False

    def counts(self) -> Iterator[tuple[int, ...]]:
        """Numbers of rigs worth owning: at hand, or as many as some option asks for."""
        o, problem = self.options, self.problem
        numbers = []
        for rig, kind in enumerate(problem.rigs):
            asked = set(o.rigs[o.rig == rig].tolist())
            most = most_rigs(problem, rig)
            numbers.append(sorted({kind.at_hand, *(n for n in asked if kind.at_hand < n <= most)}))
        for counts in itertools.product(*numbers):
            if power_kept(problem, [self._bought(rig, count) for rig, count in enumerate(counts)]):
                yield counts

    def _bought(self, rig: int, count: int) -> tuple[int, ...]:
        kind = self.problem.rigs[rig]
        bought = [0] * len(self.problem.month_hours)
        if count > kind.at_hand:
            bought[useful_months(kind.net_cost)[0]] = count - kind.at_hand
        return tuple(bought)

    def price(self, counts: Sequence[int]) -> float:
        """Of the rigs bought. [currency]"""
        total = 0.0
        for rig, kind in enumerate(self.problem.rigs):
            for month, count in enumerate(self._bought(rig, counts[rig])):
                total += count * (kind.net_cost[month] or 0.0) if count else 0.0
        return total

    def steps(self, counts: Sequence[int], down: bool) -> list[tuple[Ints, Ints, Ints, Floats, Ints]]:
        """Per job in order, of usable options: hours, earliest, latest (in steps), cost, place."""
        o, problem = self.options, self.problem
        usable, earliest = np.ones(len(o), dtype=bool), o.earliest.copy()
        for rig, kind in enumerate(problem.rigs):
            mine = o.rig == rig
            usable &= ~mine | (o.rigs <= counts[rig])
            later = mine & (o.rigs > kind.at_hand)
            if later.any() and counts[rig] > kind.at_hand:
                earliest[later] = np.maximum(earliest[later], self.opens[useful_months(kind.net_cost)[0]])
        round_ = np.floor if down else np.ceil
        last = np.ceil if down else np.floor
        per_job = []
        for j in self.order:
            rows = np.flatnonzero(usable & (o.job == j))
            far = np.where(np.isfinite(o.latest[rows]), o.latest[rows] / self.grid, 1e15)
            table = (
                _near_round(o.hours[rows] / self.grid, round_),
                _near_round(earliest[rows] / self.grid, round_),
                _near_round(far, last),
            )
            keep = _needed(*table, o.cost[rows])
            per_job.append((*(column[keep] for column in table), o.cost[rows][keep], o.place[rows][keep]))
        return per_job  # type: ignore[return-value]

    def tables(self, counts: Sequence[int], down: bool, keep: bool) -> list[Floats]:
        """f after each job (keep), or after the last; each (steps + 1,). [currency]"""
        per_job = self.steps(counts, down)
        if any(not len(hours) for hours, *_ in per_job):
            return []
        length = 0
        for (
            hours,
            earliest,
            _,
            _,
            _,
        ) in per_job:
            length = max(length, int(earliest.max())) + int(hours.max())
        f = np.zeros(length + 1)
        kept = []
        for hours, earliest, latest, cost, _ in per_job:
            new = np.full(length + 1, np.inf)
            for h, e, last, c in zip(hours.tolist(), earliest.tolist(), latest.tolist(), cost, strict=True):
                end = min(length, last)
                if e + h <= end:
                    part = new[e + h : end + 1]
                    np.minimum(part, f[e : end + 1 - h] + c, out=part)
            if (latest < length).any():
                np.minimum.accumulate(new, out=new)
            f = new
            if keep:
                kept.append(f)
        return kept if keep else [f]

    def curve(self, down: bool) -> Curve:
        """The least cost over all numbers of rigs, where it drops."""
        best: Floats = np.zeros(0)
        who: Ints = np.zeros(0, dtype=np.int64)
        all_counts = tuple(self.counts())
        for number, counts in enumerate(all_counts):
            tables = self.tables(counts, down, keep=False)
            if not tables:
                continue
            total = tables[0] + self.price(counts)
            size = max(len(total), len(best))
            total, best = _held(total, size), _held(best, size)
            who = np.concatenate((who, np.full(size - len(who), who[-1] if len(who) else -1)))
            better = total < best - 1e-9
            best[better], who[better] = total[better], number
        if self.problem.budget is not None:
            best = np.where(best <= self.problem.budget * (1 + 1e-9), best, np.inf)
        lower = np.minimum.accumulate(best)
        drops = np.isfinite(lower)
        drops[1:] &= lower[1:] < lower[:-1] - 1e-9
        at = np.flatnonzero(drops)
        return Curve((at * self.grid - self.origin).astype(np.float64), lower[at], who[at], all_counts)

    def choice(self, curve: Curve, place: int) -> Choice | None:
        """The plan of one point: back along the tables."""
        counts = curve.counts[int(curve.rigs[place])]
        tables, per_job = self.tables(counts, False, keep=True), self.steps(counts, False)
        t = round((float(curve.time[place]) + self.origin) / self.grid)
        picks, ends = [0] * len(self.order), 0.0
        for number in range(len(self.order) - 1, -1, -1):
            hours, earliest, latest, cost, places = per_job[number]
            before = tables[number - 1] if number else np.zeros(len(tables[0]))
            end = np.minimum(min(t, len(before) - 1), latest)
            start = end - hours
            able = start >= earliest
            value = np.where(able, before[np.maximum(start, 0)] + cost, np.inf)
            chosen = int(np.argmin(value))
            picks[self.order[number]] = int(places[chosen])
            t = int(start[chosen])
        starts = [0.0] * len(picks)
        for j in self.order:
            row = np.flatnonzero((self.options.job == j) & (self.options.place == picks[j]))[0]
            option = self.problem.jobs[j].options[picks[j]]
            earliest_start = float(self.options.earliest[row])
            if option.rig is not None and option.rigs > self.problem.rigs[option.rig].at_hand:
                month = useful_months(self.problem.rigs[option.rig].net_cost)[0]
                earliest_start = max(earliest_start, self.opens[month])
            starts[j] = max(ends, earliest_start)
            ends = starts[j] + option.hours
        return choice_of(self.problem, picks, starts, ends - self.origin, None, None, True)


def _held(values: Floats, size: int) -> Floats:
    """Longer by its last value: more time costs no more."""
    last = values[-1] if len(values) else np.inf
    return np.concatenate((values, np.full(size - len(values), last)))


def _near_round(values: Floats, how: object) -> Ints:
    """Rounded, but what is a whole number up to float noise stays one."""
    near = np.round(values)
    rounded = how(values)  # type: ignore[operator]
    return np.where(np.abs(values - near) <= 1e-7 * np.maximum(1.0, values), near, rounded).astype(np.int64)


def _needed(hours: Ints, earliest: Ints, latest: Ints, cost: Floats) -> Ints:
    """Places of options that none beats with as wide a window; fastest first."""
    kept: list[int] = []
    for place in np.lexsort((cost, hours)).tolist():
        beaten = any(
            cost[k] <= cost[place] and earliest[k] <= earliest[place] and latest[k] >= latest[place]
            for k in kept
        )
        if not beaten:
            kept.append(place)
    return np.array(kept, dtype=np.int64)
