"""A plan that is sure to be in time, close to one that was not: jobs that come out late are run otherwise.

Jobs are put in one after another, by their option of the plan wherever that still ends in time, else by the
cheapest option that does; then each is taken out once and put back by the cheapest option that fits among the
others. No proof of anything, but hours and money are real: what comes out is a plan.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np

from .assemble import choice_of
from .flat import SAME_HOURS, Options
from .placement import Placer, Search, State, Task, objective
from .problem import Choice, Problem
from .reduction import filtered

_ORDERS = 6


class Flexible:
    """Plans of one problem with `time` at most `most`. options: those that may be used; see reduction."""

    def __init__(self, problem: Problem, placer: Placer, options: Options, most: float) -> None:
        self.problem, self.placer, self.most = problem, placer, most
        left, self.starts, self.ends = filtered(problem, options, placer.order, most)
        price = left.cost + _commitment_price(problem, left)
        first = np.searchsorted(left.job, np.arange(len(problem.jobs) + 1))
        self.by_price: list[list[int]] = []
        self.price: list[dict[int, float]] = []
        for j in range(len(problem.jobs)):
            rows = np.arange(first[j], first[j + 1])
            rows = rows[np.argsort(price[rows], kind="stable")]
            self.by_price.append(left.place[rows].tolist())
            self.price.append(dict(zip(left.place[rows].tolist(), price[rows].tolist(), strict=True)))

    def near(
        self, picks: Sequence[int], bought: Sequence[Sequence[int]], level: Sequence[float]
    ) -> Choice | None:
        """The cheapest plan found near this one; None where none was."""
        if any(not options for options in self.by_price):
            return None
        dice = random.Random(0)
        best: Choice | None = None
        for number in range(_ORDERS):
            plan = _Plan(self, picks, bought, level)
            keys = plan.keys(number, dice)
            if not plan.build(keys):
                continue
            plan.improve()
            plan.improve()
            choice = choice_of(
                self.problem,
                plan.picks,
                plan.state.starts,
                objective(self.problem, plan.state.ends),
                bought,
                -math.inf,
            )
            if choice is None or choice.time > self.most + SAME_HOURS:
                continue
            if best is None or choice.cost < best.cost:
                best = choice
        return best


def _commitment_price(problem: Problem, options: Options) -> np.ndarray:
    """What spend drawn from a commitment is worth: its price after the discount. (options,) [currency]"""
    rate = np.array([(1 - c.discount) / c.load_factor for c in problem.commitments] or [0.0])
    return np.where(options.commitment >= 0, options.spend * rate[options.commitment], 0.0)


class _Plan:
    def __init__(
        self,
        flexible: Flexible,
        picks: Sequence[int],
        bought: Sequence[Sequence[int]],
        level: Sequence[float],
    ) -> None:
        self.flexible, self.picks = flexible, list(picks)
        self.search = Search(flexible.placer, picks, bought, level, flexible.most, math.inf)
        self.state: State = self.search.fresh()
        self.tasks: list[dict[int, Task]] = [{} for _ in picks]

    def keys(self, number: int, dice: random.Random) -> list[float]:
        """The order of a try: by latest finish, by latest start, the widest first, then shuffled."""
        tasks, ends = self.search.tasks, self.flexible.ends
        due = [min(float(end), 1e9) for end in ends]
        if number == 0:
            return due
        if number == 1:
            return [d - task.hours for d, task in zip(due, tasks, strict=True)]
        wide = [-task.rigs * task.held for task in tasks]
        if number == 2:
            return wide
        spread = 1.0 + max(-value for value in wide) if wide else 1.0
        return [value + dice.uniform(0, 0.5 * spread) for value in wide]

    def task(self, j: int, place: int) -> Task:
        if place not in self.tasks[j]:
            self.tasks[j][place] = self.search.task(j, place)
        return self.tasks[j][place]

    def build(self, keys: Sequence[float]) -> bool:
        """Put all jobs in; False where one cannot end in time by any option."""
        import heapq

        placer = self.flexible.placer
        left = [len(set(job.predecessors)) for job in self.flexible.problem.jobs]
        ready = [(keys[j], j) for j, count in enumerate(left) if count == 0]
        heapq.heapify(ready)
        while ready:
            _, j = heapq.heappop(ready)
            first = [self.picks[j]] if self.picks[j] in self.flexible.price[j] else []
            if not self._put(j, [*first, *self.flexible.by_price[j]], float(self.flexible.ends[j])):
                return False
            for follower in placer.after[j]:
                left[follower] -= 1
                if left[follower] == 0:
                    heapq.heappush(ready, (keys[follower], follower))
        return True

    def improve(self) -> None:
        """Each job once, the dearest first: out, and in again by the cheapest option that fits."""
        price = self.flexible.price
        order = sorted(range(len(self.picks)), key=lambda j: -price[j].get(self.picks[j], 0.0))
        for j in order:
            before, start = self.picks[j], self.state.starts[j]
            cheaper = [
                place
                for place in self.flexible.by_price[j]
                if price[j][place] < price[j].get(before, math.inf)
            ]
            if not cheaper:
                continue
            latest = float(self.flexible.ends[j])
            for follower in self.flexible.placer.after[j]:
                latest = min(latest, self.state.starts[follower])
            self.search.release(self.state, j)
            if not self._put(j, cheaper, latest):
                self.picks[j] = before
                self.search.tasks[j] = self.task(j, before)
                self.search.hold(self.state, j, start)

    def _put(self, j: int, places: Sequence[int], latest: float) -> bool:
        for place in places:
            task = self.task(j, place)
            self.search.tasks[j] = task
            start = self.search.first_start(self.state, j, self.state.ends)
            if start + task.hours <= min(latest, task.latest + task.hours) + SAME_HOURS / 2:
                self.picks[j] = place
                self.search.hold(self.state, j, start)
                return True
        return False
