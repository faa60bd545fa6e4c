"""Points of the front by the linear model, each placed hour by hour.

One solve gives the cheapest plan whose `time` is at most some hours, and a bound that holds for every plan as
fast. The plan is placed. Where it comes out late, it is told to the model: as a cut where its options are
proven too slow together, by watching a quota, or by taking hours from the months that overflowed (such a
model's bound is not used). What is late after all is still a plan, with the time it has.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence

import numpy as np

from .assemble import choice_of
from .flat import SAME_HOURS, flatten
from .flexible import Flexible
from .linear_model import Solved
from .milp import Cut, ScheduleModel, Shape, build
from .placement import EXACT_JOBS, Placed, Placer, objective
from .problem import Choice, Problem
from .reduction import reduce, shortest_time
from .solver import Solver

# Share of the gap that the tie break may use up.
_TIE_SHARE = 0.05
# Attempts to have a plan placed in time: by cuts that are proven, by cuts that are guesses (where placing is
# no proof; more of them while models are quick), and by taking hours from months.
_CUT_ROUNDS = 60
_GUESSES = 1
_SCALE_ROUNDS = 5
_SCALE = 0.93
# Into how many parts of a month starts are told apart, one step after another, where plans cannot be placed.
_PARTS = (1, 4)


@dataclasses.dataclass(slots=True)
class Found:
    """Choices found so far and what is known of the cost at each `time`."""

    choices: list[Choice]
    bounds: list[tuple[float, float]]  # (time, no plan as fast costs less)

    def front(self) -> list[Choice]:
        """What no other choice beats, cheapest first, each with the best bound known for its time."""
        best: list[Choice] = []
        for choice in sorted(self.choices, key=lambda c: (c.cost, c.time)):
            if not best or choice.time < best[-1].time - SAME_HOURS:
                if best and choice.cost <= best[-1].cost + 1e-9 * max(1.0, abs(choice.cost)):
                    best.pop()
                best.append(choice)
        return [dataclasses.replace(c, bound=min(c.cost, self.bound(c.time))) for c in best]

    def bound(self, hours: float) -> float:
        """No plan with this `time` or less costs less. [currency]"""
        return max((bound for most, bound in self.bounds if most >= hours - SAME_HOURS), default=-math.inf)


class MilpFront:
    """Solves points of one problem. gap: relative, per point. until: time.monotonic() to stop at."""

    def __init__(self, problem: Problem, solver: Solver, gap: float, until: float) -> None:
        self.problem, self.solver, self.gap, self.until = problem, solver, gap, until
        self.all = flatten(problem)
        self.watched: set[int] = set()
        self.parts = 0  # of a month, by which long own runs are told apart
        self.reduced = reduce(self.all)
        self.placer = Placer(problem)
        self.cuts: list[Cut] = []
        self.found = Found([], [])
        self.size = 0.0  # of the cost, for the tie break
        self.place = True  # False takes the model's word for when jobs run; for measuring it alone

    def missing(self) -> list[int]:
        """Jobs without any option."""
        return sorted(set(range(len(self.problem.jobs))) - set(self.all.job.tolist()))

    def shortest(self) -> float:
        """No plan's `time` is below this. [h]"""
        return shortest_time(self.problem, self.reduced, self.placer.order)

    def left(self) -> float:
        """Seconds left."""
        return self.until - time.monotonic()

    def fastest_time(self) -> float:
        """Least `time` by the model, or where the solver does not say, the shortest path alone. [h]"""
        shape = Shape(watched=self.watched, minimise_time=True, parts=self.parts)
        model = build(self.problem, self.reduced, shape)
        if model is None:
            return math.inf
        solved = self.solver.solve(model.model, gap=1e-4, seconds=self._seconds())
        if solved.status == "infeasible":
            return math.inf
        return self.shortest() if solved.x is None else float(solved.x[model.time])

    def point(self, most: float) -> Choice | None:
        """The cheapest plan with `time` ≤ most; None where none was found."""
        scale: dict[int, float] = {}
        guesses: list[Cut] = []  # cuts that are not proven
        cut_rounds = scale_rounds = 0
        best: Choice | None = None
        while True:
            true = not scale and not guesses  # whether the model is still a relaxation
            shape = Shape(
                most, self.watched, self._tie(most), False, [*self.cuts, *guesses], self.parts, scale
            )
            model = build(self.problem, self.reduced, shape)
            solved = self._solve(model) if model is not None else None
            if model is None or solved is None or solved.status == "infeasible":
                if true:
                    self.found.bounds.append((most, math.inf))
                return best
            if true:
                self.found.bounds.append((most, model.bound_of_cost(solved.bound)))
            if solved.x is None:
                return best
            self.size = max(self.size, model.cost(solved.x))
            picks, bought = model.picks(solved.x), model.bought(solved.x, self.problem)
            if not self.place:
                return self._unplaced(model, solved, picks, bought)
            placed = self.placer.place(picks, bought, model.levels(solved.x, self.problem), most)
            choice = self._take(picks, bought, placed, solved.status == "optimal" and true)
            if choice is not None and choice.time <= most + SAME_HOURS:
                return choice if best is None or choice.cost < best.cost else best
            if not placed.exact:
                best = self._near(picks, bought, model.levels(solved.x, self.problem), most, best)
            if self.left() <= 0:
                return best
            if self._watch(picks, bought, placed, model, solved, most) or self._sharpen(picks):
                continue
            if cut_rounds < (_CUT_ROUNDS if len(picks) <= EXACT_JOBS or placed.exact else _GUESSES):
                cut_rounds += 1
                cut = self._cut(picks, bought, placed, most)
                (self.cuts if placed.exact else guesses).append(cut)
                continue
            close = best is not None and best.cost <= self.found.bound(most) * (1 + self.gap)
            if close or scale_rounds >= _SCALE_ROUNDS or not self._shrink(scale, picks, placed, most):
                return best
            scale_rounds += 1

    def _near(
        self,
        picks: Sequence[int],
        bought: Sequence[Sequence[int]],
        levels: Sequence[float],
        most: float,
        best: Choice | None,
    ) -> Choice | None:
        """The better of `best` and a plan near this one that is in time."""
        choice = Flexible(self.problem, self.placer, self.reduced, most).near(picks, bought, levels)
        if choice is None or (best is not None and best.cost <= choice.cost):
            return best
        self.found.choices.append(choice)
        return choice

    def _tie(self, most: float) -> float:
        """Cost of an hour that decides between equally cheap plans, far below the gap in all."""
        if not self.size:
            self.size = self._rough_cost()
        span = most if math.isfinite(most) else self.problem.horizon_hours
        share = _TIE_SHARE * max(self.gap, 1e-6)
        return share * self.size / max(abs(span), 1.0) / (10.0 if math.isinf(most) else 1.0)

    def _rough_cost(self) -> float:
        least = np.full(len(self.problem.jobs), np.inf)
        np.minimum.at(least, self.reduced.job, self.reduced.cost)
        return float(least[np.isfinite(least)].sum())

    def _seconds(self) -> float:
        return max(1.0, self.left())

    def _solve(self, model: ScheduleModel) -> Solved:
        # A plan in hand is not given to HiGHS 1.16.0: from a partial point it called worse plans optimal,
        # with a bound above the optimum (made schedules 421 and 491 of the tests). `found` keeps such plans.
        return self.solver.solve(model.model, gap=self.gap, seconds=self._seconds())

    def _take(
        self,
        picks: Sequence[int],
        bought: Sequence[Sequence[int]],
        placed: Placed,
        proven: bool,
    ) -> Choice | None:
        if not placed.kept:
            return None
        choice = choice_of(self.problem, picks, placed.start, placed.time, bought, -math.inf, proven)
        if choice is not None:
            self.found.choices.append(choice)
        return choice

    def _unplaced(
        self,
        model: ScheduleModel,
        solved: Solved,
        picks: list[int],
        bought: tuple[tuple[int, ...], ...],
    ) -> Choice:
        assert solved.x is not None
        ends = [
            float(solved.x[c]) + job.options[p].hours
            for c, p, job in zip(model.starts, picks, self.problem.jobs, strict=True)
        ]
        choice = Choice(
            option=tuple(picks),
            start=tuple(float(start) for start in solved.x[model.starts]),
            bought=bought,
            level=tuple(model.levels(solved.x, self.problem)),
            cost=model.cost(solved.x),
            time=objective(self.problem, ends),
            bound=-math.inf,
            proven=solved.status == "optimal",
        )
        self.found.choices.append(choice)
        return choice

    def _watch(
        self,
        picks: Sequence[int],
        bought: Sequence[Sequence[int]],
        placed: Placed,
        model: ScheduleModel,
        solved: Solved,
        most: float,
    ) -> bool:
        """Whether quotas are what made the plan late; then those it draws on join the model."""
        assert solved.x is not None
        options = [job.options[pick] for job, pick in zip(self.problem.jobs, picks, strict=True)]
        drawn = {option.pool for option in options if option.pool is not None} - self.watched
        if not drawn:
            return False
        free = dataclasses.replace(
            self.problem,
            pools=tuple(dataclasses.replace(pool, gpus=10**9) for pool in self.problem.pools),
        )
        without = Placer(free).place(picks, bought, model.levels(solved.x, self.problem), most)
        if not without.kept or without.time >= placed.time - SAME_HOURS:
            return False
        self.watched |= drawn
        self.reduced = reduce(self.all, self.watched)
        return True

    def _sharpen(self, picks: Sequence[int]) -> bool:
        """Whether long runs on own rigs are now told apart more finely by when they start."""
        jobs = self.problem.jobs
        long = any(
            job.options[pick].rig is not None and len(job.months) > 1
            for job, pick in zip(jobs, picks, strict=True)
        )
        if not long or self.parts == _PARTS[-1]:
            return False
        self.parts = next(parts for parts in _PARTS if parts > self.parts)
        return True

    def _cut(self, picks: Sequence[int], bought: Sequence[Sequence[int]], placed: Placed, most: float) -> Cut:
        """All jobs' options together, with these rigs, cannot be faster than the best placement found."""
        reach = placed.time - SAME_HOURS if placed.kept else math.inf
        jobs = tuple((j, pick) for j, pick in enumerate(picks))
        return Cut(jobs, tuple(tuple(row) for row in bought), max(reach, most))

    def _shrink(self, scale: dict[int, float], picks: Sequence[int], placed: Placed, most: float) -> bool:
        """Take hours from the months of jobs on own rigs that came out late, or of all where none did."""
        months: set[int] = set()
        for j, job in enumerate(self.problem.jobs):
            if job.options[picks[j]].rig is None:
                continue
            end = placed.start[j] + job.options[picks[j]].hours
            if placed.late[j] > SAME_HOURS or end - job.origin > most or math.isinf(end):
                months |= set(job.months)
        if not months:
            months = {m for j, job in enumerate(self.problem.jobs) for m in job.months}
            if not any(job.options[picks[j]].rig is not None for j, job in enumerate(self.problem.jobs)):
                return False
        for month in months:
            scale[month] = scale.get(month, 1.0) * _SCALE
        return True
