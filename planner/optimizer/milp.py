"""The schedule as a mixed-integer linear model: what is bought and rented, and by which option each job runs.

Minimise Σ c x + Σ net_cost b + Σ level × term + a little × M, over
  x[o] in {0,1}        option o of its job runs it; one a job
  b[v,n,m] in {0,1}    the n-th rig of type v is bought in month m; z[v,n,t] = Σ_{m ≤ t} b[v,n,m] ≤ 1
  E[c] ≥ 0             level of commitment c above what is held; in steps where it has them
  S[j], M              start of a job; largest finish − origin (or the weighted sum)
  y, u, w ≥ 0          rig-hours, committed spend and cash of a job in each month, where it has several
subject to
  precedence           S[j] ≥ S[i] + Σ h x,  S[j] + Σ h x ≤ latest finish,  S[j] ≥ Σ earliest x
  size                 Σ_{o: k ≥ n} x ≤ z[v, n − at hand, last month of the job]      (unary: tight)
  hours of a month     Σ k h x / availability ≤ H (at hand + Σ z)
  cover of a month     Σ s x ≤ H φ (held + E) / (1 − d)
  quota of a month     Σ g h x ≤ H quota, for watched pools; power; budget; cash of a month
`time ≤ most` enters through the latest finishes, which also drop options (reduction.filtered) and shorten the
hours that a month has to give.

A relaxation of the placed schedule: hours of a month are a heap, not a calendar. So its bound holds for every
placed plan; its plan must still be placed (placement.py).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from .enumerate_small import useful_months
from .flat import Bools, Floats, Ints, Options, month_starts, most_rigs, order_of_jobs
from .linear_model import Builder, Entry, LinearModel
from .periods import by_start, overlap
from .problem import Problem
from .reduction import filtered

# Rows that tie a start to the month its rigs arrive are left out beyond so many; placement minds the dates.
_MOST_ARRIVAL_ROWS = 4000


@dataclass(frozen=True, slots=True)
class Cut:
    """These options together, with no more rigs than these, cannot be placed in time.

    picks: (job, place) pairs. bought: by type and month. most: the `time` they were too slow for.
    """

    picks: tuple[tuple[int, int], ...]
    bought: tuple[tuple[int, ...], ...]
    most: float


@dataclass(frozen=True, slots=True, eq=False)
class ScheduleModel:
    """A model and what its columns mean. `offset`: to be added to an objective to make a cost. [currency]"""

    model: LinearModel
    options: Options
    x: Ints
    buys: tuple[tuple[int, int, int, int], ...]  # (rig type, n, month, column)
    extra: Ints  # of each commitment
    starts: Ints
    time: int
    longest: float
    tie_break: float

    def picks(self, x: Floats) -> list[int]:
        """Place of each job's option."""
        jobs = int(self.options.job.max()) + 1 if len(self.options) else 0
        best = np.full(jobs, -1)
        chosen = np.flatnonzero(x[self.x] > 0.5)
        best[self.options.job[chosen]] = self.options.place[chosen]
        return [int(place) for place in best]

    def bought(self, x: Floats, problem: Problem) -> tuple[tuple[int, ...], ...]:
        """Rigs by type and month of first use."""
        counts = [[0] * len(problem.month_hours) for _ in problem.rigs]
        for rig, _, month, column in self.buys:
            counts[rig][month] += round(float(x[column]))
        return tuple(tuple(row) for row in counts)

    def levels(self, x: Floats, problem: Problem) -> list[float]:
        """Of each commitment. [currency/h]"""
        return [c.held + float(x[column]) for c, column in zip(problem.commitments, self.extra, strict=True)]

    def cost(self, x: Floats) -> float:
        """Without the tie break. [currency]"""
        return float(self.model.cost @ x) - self.tie_break * float(x[self.time])

    def bound_of_cost(self, bound: float) -> float:
        """What a bound of the objective says of the cost: the tie break adds at most its largest value."""
        return bound - self.tie_break * self.longest


@dataclass(slots=True)
class Shape:
    """How a model is built. most: `time` at most [h]. watched: pools in the model.

    tie_break: cost of an hour of `time`, to choose the fastest of equally cheap plans. [currency/h]
    minimise_time: `time` is the objective, money is not. parts: of a month, by which long own
    runs are told apart by their start; with any, hours between two moments are counted, not only in months.
    scale: of the hours a month gives, by month; below 1 where plans could not be placed; such a model's
    bound proves nothing.
    """

    most: float = math.inf
    watched: Collection[int] = ()
    tie_break: float = 0.0
    minimise_time: bool = False
    cuts: Sequence[Cut] = ()
    parts: int = 0
    scale: dict[int, float] = field(default_factory=dict)


def build(problem: Problem, options: Options, shape: Shape) -> ScheduleModel | None:
    """options: reduced with shape.watched. None where some job has no option left."""
    order = order_of_jobs(problem)
    if shape.parts:
        options = by_start(options, month_starts(problem), shape.parts)
    options, starts, ends = filtered(problem, options, order, shape.most)
    if len(np.unique(options.job)) < len(problem.jobs):
        return None
    return _Maker(problem, options, starts, ends, shape, order).make()


class _Maker:
    def __init__(
        self,
        problem: Problem,
        options: Options,
        starts: Floats,
        ends: Floats,
        shape: Shape,
        order: list[int],
    ) -> None:
        self.problem, self.options, self.shape, self.order = problem, options, shape, order
        self.early, self.late = starts, ends
        self.opens = month_starts(problem)
        self.builder = Builder()
        self.first = np.searchsorted(options.job, np.arange(len(problem.jobs) + 1))
        self.months = [self._months_of(j) for j in range(len(problem.jobs))]
        self.money = 0.0 if shape.minimise_time else 1.0
        self.held = options.hours / problem.availability  # of rigs
        # Between which moments each option starts, at most.
        self.soonest = np.maximum(options.earliest, starts[options.job])
        self.latest_start = np.maximum(
            np.minimum(options.latest, ends[options.job]) - options.hours, self.soonest
        )

    def make(self) -> ScheduleModel:
        problem, builder, options = self.problem, self.builder, self.options
        self.x = builder.columns(len(options), self.money * options.cost, 0.0, 1.0, whole=True)
        for j in range(len(problem.jobs)):
            builder.row([(self._x(j), 1.0)], 1.0, 1.0)
        self._buys()
        self._levels()
        self._times()
        self._sizes()
        self._rig_hours()
        if self.shape.parts:
            self._between_moments()
        self._packing()
        self._cover()
        self._quotas()
        self._limits()
        self._cuts()
        return ScheduleModel(
            builder.model(),
            options,
            self.x,
            tuple(self.buys),
            self.extra,
            self.start,
            self.time,
            self.longest,
            self.shape.tie_break,
        )

    def _x(self, j: int) -> Ints:
        return self.x[self.first[j] : self.first[j + 1]]

    def _rows(self, j: int) -> slice:
        return slice(int(self.first[j]), int(self.first[j + 1]))

    def _months_of(self, j: int) -> list[int]:
        """Months of a job in which it can run at all, its first start and latest finish kept."""
        job = self.problem.jobs[j]
        care = 0.0
        own = self.options.rig[self._rows(j)] >= 0
        if own.any():
            care = float(self.options.hours[self._rows(j)][own].max()) * (1 / self.problem.availability - 1)
        return [
            month
            for month in job.months
            if self.opens[month] < self.late[j] + care - 1e-9 and self.opens[month + 1] > self.early[j] + 1e-9
        ] or list(job.months[:1])

    def _buys(self) -> None:
        """Rigs in unary form: the n-th only after the (n−1)-th."""
        problem, builder, options = self.problem, self.builder, self.options
        self.buys: list[tuple[int, int, int, int]] = []
        self.owned: list[list[list[tuple[int, int]]]] = []  # per type, per n: (month, column)
        for rig, kind in enumerate(problem.rigs):
            own = options.rig == rig
            jobs = options.job[own]
            widest = np.zeros(len(problem.jobs), dtype=np.int64)
            np.maximum.at(widest, jobs, options.rigs[own])
            useful = int(widest.max(initial=0)) if problem.one_queue else int(widest.sum())
            count = max(0, min(most_rigs(problem, rig), useful) - kind.at_hand)
            months = useful_months(kind.net_cost) if problem.month_budget is None else None
            if months is None:
                months = [month for month, cost in enumerate(kind.net_cost) if cost is not None]
            last = max((self.months[j][-1] for j in set(jobs.tolist())), default=-1)
            months = [month for month in months if month <= last]
            ladder: list[list[tuple[int, int]]] = []
            for n in range(count if months else 0):
                prices = np.array([kind.net_cost[month] or 0.0 for month in months])
                columns = builder.columns(len(months), self.money * prices, 0.0, 1.0, whole=True)
                ladder.append(list(zip(months, columns.tolist(), strict=True)))
                self.buys += [(rig, n, month, column) for month, column in ladder[-1]]
                if len(months) > 1:
                    builder.row([(columns, 1.0)], high=1.0)
                if n:
                    for upto in range(1, len(months) + 1):
                        before = np.array([column for _, column in ladder[-2][:upto]])
                        builder.row([(columns[:upto], 1.0), (before, -1.0)], high=0.0)
            self.owned.append(ladder)

    def _levels(self) -> None:
        extra = []
        for c in self.problem.commitments:
            high = max(0.0, c.most - c.held)
            column = self.builder.columns(1, self.money * c.term_hours, 0.0, high)
            extra.append(int(column[0]))
            if c.step > 0:
                self._steps(int(column[0]), c.step, c.held, high)
        self.extra = np.array(extra, dtype=np.int64)

    def _steps(self, extra: int, step: float, held: float, high: float) -> None:
        """Levels are multiples of the step; what is held already may lie between two of them."""
        most = math.floor(high / step) + 1 if math.isfinite(high) else 1_000_000
        steps = int(self.builder.columns(1, 0.0, 0.0, most, whole=True)[0])
        rest = held % step
        if rest <= 1e-9 * step or step - rest <= 1e-9 * step:
            self.builder.row([(extra, 1.0), (steps, -step)], 0.0, 0.0)
            return
        any_ = int(self.builder.columns(1, 0.0, 0.0, 1.0, whole=True)[0])
        self.builder.row([(extra, 1.0), (steps, -step), (any_, rest)], 0.0, 0.0)
        self.builder.row([(steps, 1.0), (any_, -float(most))], high=0.0)
        self.builder.row([(any_, 1.0), (steps, -1.0)], high=0.0)

    def _times(self) -> None:
        problem, builder, options = self.problem, self.builder, self.options
        end = problem.horizon_hours + float(sum(options.hours[self._rows(j)].max() for j in self.order))
        far = np.array([job.release for job in problem.jobs]).max(initial=0.0) + end
        fastest = np.minimum.reduceat(options.hours, self.first[:-1]) if problem.jobs else np.zeros(0)
        high = np.minimum(self.late, far) - fastest
        self.start = builder.columns(len(problem.jobs), 0.0, self.early, np.maximum(high, self.early))
        followed = {i for job in problem.jobs for i in job.predecessors}
        for j in self.order:
            self._start_rows(j, far)
        self._time_rows(followed, far)

    def _start_rows(self, j: int, far: float) -> None:
        problem, builder, options = self.problem, self.builder, self.options
        rows, x = self._rows(j), self._x(j)
        start = int(self.start[j])
        for before in dict.fromkeys(problem.jobs[j].predecessors):
            hours = options.hours[self._rows(before)]
            builder.row([(start, 1.0), (int(self.start[before]), -1.0), (self._x(before), -hours)], low=0.0)
        if (options.earliest[rows] > self.early[j] + 1e-9).any():
            builder.row([(start, 1.0), (x, -np.maximum(options.earliest[rows], self.early[j]))], low=0.0)
        latest = np.minimum(np.minimum(options.latest[rows], self.late[j]), far)
        if (latest < far).any():
            builder.row([(start, 1.0), (x, options.hours[rows] - latest)], high=0.0)

    def _time_rows(self, followed: set[int], far: float) -> None:
        problem, builder, options = self.problem, self.builder, self.options
        ends = np.full(len(problem.jobs), np.inf)
        np.minimum.at(
            ends, options.job, np.maximum(options.earliest, self.early[options.job]) + options.hours
        )
        origin = np.array([job.origin for job in problem.jobs])
        late = ends - origin
        weight = np.array([job.weight for job in problem.jobs])
        if problem.objective == "largest":
            self.low_time = float(late.max(initial=-np.inf)) if len(late) else 0.0
        else:
            self.low_time = float(np.maximum(late, 0.0) @ weight)
        self.longest = min(self.shape.most, self._longest(origin, weight, far))
        price = 1.0 if self.shape.minimise_time else self.shape.tie_break
        self.time = int(builder.columns(1, price, min(self.low_time, self.longest), self.longest)[0])
        wanted = price > 0 or (problem.objective == "sum" and math.isfinite(self.shape.most))
        if not wanted:
            return
        parts = []
        for j in range(len(problem.jobs)):
            rows, x = self._rows(j), self._x(j)
            finish: list[Entry] = [(int(self.start[j]), 1.0), (x, options.hours[rows])]
            if problem.objective == "largest":
                if j in followed and all(
                    problem.jobs[k].origin <= origin[j]
                    for k, job in enumerate(problem.jobs)
                    if j in job.predecessors
                ):
                    continue
                builder.row([*finish, (self.time, -1.0)], high=float(origin[j]))
            elif weight[j] > 0:
                missed = int(builder.columns(1, 0.0, 0.0, np.inf)[0])
                builder.row([*finish, (missed, -1.0)], high=float(origin[j]))
                parts.append((missed, -float(weight[j])))
        if problem.objective == "sum":
            builder.row([(self.time, 1.0), *parts], low=0.0)

    def _longest(self, origin: Floats, weight: Floats, far: float) -> float:
        """No plan worth looking at takes longer. [h]"""
        late = far - origin
        if self.problem.objective == "largest":
            return float(late.max(initial=0.0))
        return float(np.maximum(late, 0.0) @ weight)

    def _sizes(self) -> None:
        problem, builder, options = self.problem, self.builder, self.options
        arrivals = 0
        for rig, kind in enumerate(problem.rigs):
            for j in sorted(set(options.job[options.rig == rig].tolist())):
                rows = self._rows(j)
                needs = np.where(options.rig[rows] == rig, options.rigs[rows], 0)
                last = self.months[j][-1]
                previous: Bools | None = None
                for n in range(kind.at_hand + 1, int(needs.max()) + 1):
                    wide = needs >= n
                    if previous is not None and np.array_equal(wide, previous):
                        continue  # the row of a larger n is the stronger one; it comes with the next change
                    top = int(needs[wide].min())
                    previous = wide
                    ladder = self.owned[rig]
                    rung = ladder[top - kind.at_hand - 1] if top - kind.at_hand <= len(ladder) else []
                    owned = np.array([c for month, c in rung if month <= last], dtype=np.int64)
                    builder.row([(self._x(j)[wide], 1.0), (owned, -1.0)], high=0.0)
                    self._bought_before(j, wide, rung)
                    for place, (month, _) in enumerate(rung):
                        opened = self.opens[month]
                        if opened <= self.early[j] + 1e-9 or arrivals >= _MOST_ARRIVAL_ROWS:
                            continue
                        arrivals += 1
                        before = np.array([c for _, c in rung[:place]], dtype=np.int64)
                        gain = opened - self.early[j]
                        builder.row(
                            [(int(self.start[j]), 1.0), (self._x(j)[wide], -gain), (before, gain)],
                            low=float(self.early[j]),
                        )

    def _bought_before(self, j: int, wide: Bools, rung: list[tuple[int, int]]) -> None:
        """A run that must start by some month needs its rigs bought by then."""
        by = np.searchsorted(self.opens, self.latest_start[self._rows(j)] + 1e-9, side="right") - 1
        for month, _ in rung[1:]:
            early = wide & (by < month)
            if early.any():
                owned = np.array([c for m, c in rung if m < month], dtype=np.int64)
                self.builder.row([(self._x(j)[early], 1.0), (owned, -1.0)], high=0.0)

    def _spread(self, j: int, rows: Ints, rate: Floats, hours: Floats) -> dict[int, tuple[Ints, Floats]]:
        """What a job takes of something by month: (columns, coefficients) per month.

        rows: places of its options that take any; rate: how much in each of `hours`.
        """
        months = self.months[j]
        x, amount = self.x[rows], rate * hours
        if len(months) == 1:
            return {months[0]: (x, amount)}
        columns = self.builder.columns(len(months), 0.0, 0.0, np.inf)
        self.builder.row([(columns, 1.0), (x, -amount)], 0.0, 0.0)
        for month, column in zip(months, columns.tolist(), strict=True):
            least, most = overlap(
                self.soonest[rows], self.latest_start[rows], hours, self.opens[month], self.opens[month + 1]
            )
            if (most < hours * (1 - 1e-9)).any():
                self.builder.row([(column, 1.0), (x, -rate * most)], high=0.0)
            if (least > 1e-9).any():
                self.builder.row([(column, 1.0), (x, -rate * least)], low=0.0)
        return {month: (columns[place : place + 1], np.ones(1)) for place, month in enumerate(months)}

    def _rig_hours(self) -> None:
        problem, options = self.problem, self.options
        groups = [options.rig >= 0] if problem.one_queue else []
        rigs: list[int | None] = [None] if problem.one_queue else []
        rigs += list(range(len(problem.rigs)))
        groups += [options.rig == number for number in range(len(problem.rigs))]
        for rig, own in zip(rigs, groups, strict=True):
            by_month: dict[int, list[tuple[Ints, Floats]]] = {}
            last: dict[int, float] = {}
            first: dict[int, float] = {}
            for j in sorted(set(options.job[own].tolist())):
                rows = np.arange(self.first[j], self.first[j + 1])[own[self._rows(j)]]
                width = np.ones(len(rows)) if rig is None else options.rigs[rows].astype(float)
                for month, part in self._spread(j, rows, width, self.held[rows]).items():
                    by_month.setdefault(month, []).append(part)
                    last[month] = max(last.get(month, -math.inf), float(self.late[j]))
                    first[month] = min(first.get(month, math.inf), float(self.early[j]))
            jobs = set(options.job[own].tolist())
            several = any(len(self.months[j]) > 1 for j in jobs)
            self.longest_run = float(options.hours[own].max(initial=0.0))
            for month, parts in by_month.items():
                self._hours_row(rig, month, parts, first[month], last[month], several)

    def _hours_row(
        self,
        rig: int | None,
        month: int,
        parts: list[tuple[Ints, Floats]],
        first: float,
        last: float,
        several: bool,
    ) -> None:
        """Rig-hours held in a month; where all must have ended before the month does, only up to there.

        Care behind the last run may lie past its finish. Where all runs lie inside the month, what is held up
        to the last finish is at least `availability` of all that is held; a longer run may bring along the
        care of earlier months.
        """
        opens, closes = self.opens[month], self.opens[month + 1]
        hours = closes - max(opens, first)
        upto = max(0.0, min(closes, last) - max(opens, first))
        idle = 1 / self.problem.availability - 1
        hours = min(hours, upto + idle * (self.longest_run if several else upto))
        hours *= self.shape.scale.get(month, 1.0)
        entries: list[Entry] = list(parts)
        there = 1.0
        if rig is not None:
            there = float(self.problem.rigs[rig].at_hand)
            owned = [c for rung in self.owned[rig] for m, c in rung if m <= month]
            entries.append((np.array(owned, dtype=np.int64), -hours))
        self.builder.row(entries, high=hours * there)

    def _between_moments(self) -> None:
        """Rig-hours that runs must hold between two moments, wherever they start in their windows.

        Source: energetic reasoning, J. Erschler, P. Lopez (1990). Moments: the windows of jobs.
        """
        options, problem = self.options, self.problem
        for rig in range(len(problem.rigs)):
            rows = np.flatnonzero(options.rig == rig)
            jobs = sorted(set(options.job[rows].tolist()))
            spans = {(float(self.early[j]), float(self.late[j])) for j in jobs}
            spans |= {(float(self.early[j]), self.opens[self.months[j][-1] + 1]) for j in jobs}
            for start, end in sorted(span for span in spans if math.isfinite(span[1])):
                least, _ = overlap(self.soonest[rows], self.latest_start[rows], self.held[rows], start, end)
                least = least * options.rigs[rows]
                most = np.zeros(len(problem.jobs))
                np.maximum.at(most, options.job[rows], least)
                if most.sum() <= problem.rigs[rig].at_hand * (end - start):
                    continue
                bought = [(c, end - max(start, self.opens[m])) for rung in self.owned[rig] for m, c in rung]
                columns = np.array([c for c, hours in bought if hours > 0], dtype=np.int64)
                there = np.array([hours for _, hours in bought if hours > 0])
                self.builder.row(
                    [(self.x[rows], least), (columns, -there)],
                    high=problem.rigs[rig].at_hand * (end - start),
                )

    def _packing(self) -> None:
        """Runs cannot be cut to fill a month: what a rig can take one after another.

        u maps shares of a month to [0, 1] so that shares of at most 1 in all keep Σ u ≤ 1 (dual feasible
        functions); so Σ k u(share) x ≤ rigs. With u = 1 above a half: of runs longer than half a month a rig
        takes one. Source: S. Fekete, J. Schepers, New classes of fast lower bounds for bin packing problems,
        Math. Programming 91 (2001).
        """
        problem, options = self.problem, self.options
        single = np.array([len(months) == 1 for months in self.months], dtype=bool)
        month_of = np.array([months[0] if months else -1 for months in self.months], dtype=np.int64)
        for rig in range(len(problem.rigs)):
            mine = (options.rig == rig) & single[options.job]
            for month in sorted(set(month_of[options.job[mine]].tolist())):
                rows = np.flatnonzero(mine & (month_of[options.job] == month))
                jobs = options.job[rows]
                opens = max(self.opens[month], float(self.early[jobs].min()))
                whole = self.opens[month + 1] - opens
                upto = min(self.opens[month + 1], float(self.late[jobs].max())) - opens
                share = options.hours[rows] / min(upto, whole * problem.availability)
                owned = [c for rung in self.owned[rig] for m, c in rung if m <= month]
                for grown in _dual_feasible(share):
                    weight = grown * options.rigs[rows]
                    if weight.any():
                        entries: list[Entry] = [
                            (self.x[rows], weight),
                            (np.array(owned, dtype=np.int64), -1.0),
                        ]
                        self.builder.row(entries, high=float(problem.rigs[rig].at_hand))

    def _cover(self) -> None:
        problem, options = self.problem, self.options
        for number, c in enumerate(problem.commitments):
            by_month: dict[int, list[tuple[Ints, Floats]]] = {}
            mine = options.commitment == number
            for j in sorted(set(options.job[mine].tolist())):
                rows = np.arange(self.first[j], self.first[j + 1])[mine[self._rows(j)]]
                hours = np.maximum(options.hours[rows], 1e-9)
                for month, part in self._spread(j, rows, options.spend[rows] / hours, hours).items():
                    by_month.setdefault(month, []).append(part)
            for month, parts in by_month.items():
                cover = problem.month_hours[month] * c.load_factor / (1 - c.discount)
                entries: list[Entry] = [*parts, (int(self.extra[number]), -cover)]
                self.builder.row(entries, high=cover * c.held)

    def _quotas(self) -> None:
        """GPU-hours between the first start and the latest finish of the jobs that may draw on a pool."""
        options = self.options
        for pool in self.shape.watched:
            rows = np.flatnonzero(options.pool == pool)
            jobs = options.job[rows]
            if not len(rows) or not np.isfinite(self.late[jobs]).all():
                continue
            hours = float(self.late[jobs].max() - self.early[jobs].min())
            used = options.gpus[rows] * options.hours[rows]
            self.builder.row([(self.x[rows], used)], high=hours * self.problem.pools[pool].gpus)

    def _limits(self) -> None:
        problem, builder, options = self.problem, self.builder, self.options
        if problem.watts is not None and self.buys:
            watts = np.array([problem.rigs[rig].watts for rig, *_ in self.buys])
            room = problem.watts - sum(kind.watts * kind.at_hand for kind in problem.rigs)
            builder.row([(np.array([b[3] for b in self.buys]), watts)], high=max(0.0, room))
        if problem.budget is not None:
            builder.row(self._money(options.cost), high=problem.budget)
        if problem.month_budget is not None:
            self._cash(problem.month_budget)

    def _money(self, runs: Floats) -> list[Entry]:
        kinds = self.problem.rigs
        prices = np.array([kinds[rig].net_cost[month] or 0.0 for rig, _, month, _ in self.buys])
        terms = np.array([c.term_hours for c in self.problem.commitments])
        columns = np.array([b[3] for b in self.buys], dtype=np.int64)
        return [(self.x, runs), (columns, prices), (self.extra, terms)]

    def _cash(self, limits: Sequence[float | None]) -> None:
        """A job's cost is spread over the months in which it can run; those past the end are free."""
        problem, builder, options = self.problem, self.builder, self.options
        by_month: dict[int, list[Entry]] = {}
        for j in range(len(problem.jobs)):
            months = [
                month
                for month in range(len(limits))
                if self.opens[month + 1] > self.early[j] + 1e-9 and self.opens[month] < self.late[j] - 1e-9
            ]
            cost = options.cost[self._rows(j)]
            past = self.late[j] > self.opens[-1] + 1e-9
            if not months or not cost.any():
                continue
            if len(months) == 1 and not past:
                by_month.setdefault(months[0], []).append((self._x(j), cost))
                continue
            columns = builder.columns(len(months), 0.0, 0.0, np.inf)
            free = [(builder.columns(1, 0.0, 0.0, np.inf), 1.0)] if past else []
            builder.row([(columns, 1.0), *free, (self._x(j), -cost)], 0.0, 0.0)
            for month, column in zip(months, columns.tolist(), strict=True):
                by_month.setdefault(month, []).append((int(column), 1.0))
        for month, most in enumerate(limits):
            if most is None:
                continue
            share = problem.month_hours[month] / problem.horizon_hours
            entries = by_month.get(month, [])
            for rig, _, when, column in self.buys:
                if when == month:
                    entries.append((column, problem.rigs[rig].net_cost[month] or 0.0))
            fees = np.array([c.term_hours * share for c in problem.commitments])
            builder.row([*entries, (self.extra, fees)], high=most)

    def _cuts(self) -> None:
        """Not these options again with no more rigs, unless there is more time."""
        place_of: dict[tuple[int, int], list[int]] = {}
        for job, place, column in zip(self.options.job, self.options.place, self.x, strict=True):
            place_of.setdefault((int(job), int(place)), []).append(int(column))
        for cut in self.shape.cuts:
            if self.shape.most > cut.most + 1e-9:
                continue
            if any(pick not in place_of for pick in cut.picks):
                continue
            columns = [column for pick in cut.picks for column in place_of[pick]]
            relief = []
            for rig, ladder in enumerate(self.owned):
                for n, rung in enumerate(ladder):
                    for month, column in rung:
                        if sum(cut.bought[rig][: month + 1]) <= n:
                            relief.append(column)
            self.builder.row(
                [(np.array(columns), 1.0), (np.array(relief, dtype=np.int64), -1.0)],
                high=len(cut.picks) - 1.0,
            )


def _dual_feasible(share: Floats) -> list[Floats]:
    """Some such functions of shares in [0, 1]: what they map them to."""
    found = []
    for k in (1, 2, 3):
        steps = (k + 1) * share
        near = np.abs(steps - np.round(steps)) < 1e-9
        found.append(np.where(near, share, np.floor(steps) / k))
    for edge in (0.25, 0.4):
        found.append(np.where(share > 1 - edge + 1e-9, 1.0, np.where(share < edge - 1e-9, 0.0, share)))
    return found
