"""When each job starts, hour by hour, once it is known how each is run and what is owned.

A list schedule: jobs are put in one after another, each at the first moment at which its predecessors have
ended, its rigs and its GPUs of quota are free for all its hours, and its months can still pay. Some order of
the jobs gives a best schedule for any objective that never gains from a later finish, so trying all orders of
few jobs is exact; many jobs are tried in some good orders, and jobs that end late are moved forward.

Not exact where money or a commitment's cover is counted by the month: there an earlier start is not always
better. The bound of a plan does not rest on the placement.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .flat import SAME_HOURS, month_starts, option_window, order_of_jobs
from .problem import Problem
from .profile_of_use import Months, Profile

# Orders of so many jobs that share something are all tried (7! = 5,040 at worst, far fewer after pruning).
EXACT_JOBS = 7
_SHUFFLES = 12
_PROMOTIONS = 40


@dataclass(frozen=True, slots=True)
class Placed:
    """start: of each job [h]. time: the objective [h]. late: hours by which each job misses its window.

    exact: whether no other placement of the same options has a smaller `time`.
    """

    start: tuple[float, ...]
    time: float
    late: tuple[float, ...]
    exact: bool

    @property
    def kept(self) -> bool:
        """Whether every job keeps its deadline and its months."""
        return max(self.late, default=0.0) <= SAME_HOURS


@dataclass(frozen=True, slots=True)
class Task:
    hours: float
    earliest: float
    latest: float  # start
    queue: int | None  # which profile holds its rigs
    rigs: float
    held: float  # hours
    pool: int | None
    gpus: int
    cost: float
    commitment: int | None
    spend: float


class Placer:
    """Places jobs of one problem. Its tables are made once; `place` may be called for many plans."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.order = order_of_jobs(problem)
        self.starts = month_starts(problem)
        self.after: list[list[int]] = [[] for _ in problem.jobs]
        for j, job in enumerate(problem.jobs):
            for before in set(job.predecessors):
                self.after[before].append(j)

    def place(
        self,
        picks: Sequence[int],
        bought: Sequence[Sequence[int]],
        level: Sequence[float],
        most: float = math.inf,
        below: float = math.inf,
        exact_jobs: int = EXACT_JOBS,
    ) -> Placed:
        """picks: place of each job's option. bought, level: as in Choice. most: the `time` wanted; where the
        jobs are many the search ends once it is reached. below: only a smaller `time` is of use; where the
        jobs are few the search gives up what cannot get there, and Placed.start is then nan or inf."""
        return Search(self, picks, bought, level, most, below).run(exact_jobs)


class State:
    """What is free, and when jobs end, part of the way through."""

    __slots__ = ("cash", "cover", "ends", "pools", "queues", "starts")

    def __init__(
        self, queues: list[Profile], pools: list[Profile], cover: list[Months], cash: Months | None, jobs: int
    ) -> None:
        self.queues, self.pools, self.cover, self.cash = queues, pools, cover, cash
        self.starts: list[float] = [math.nan] * jobs
        self.ends: list[float] = [math.nan] * jobs

    def copy(self) -> State:
        other = State(
            [queue.copy() for queue in self.queues],
            [pool.copy() for pool in self.pools],
            [months.copy() for months in self.cover],
            None if self.cash is None else self.cash.copy(),
            0,
        )
        other.starts, other.ends = self.starts[:], self.ends[:]
        return other


class Search:
    def __init__(
        self,
        placer: Placer,
        picks: Sequence[int],
        bought: Sequence[Sequence[int]],
        level: Sequence[float],
        most: float,
        below: float,
    ) -> None:
        self.placer, self.problem = placer, placer.problem
        self.bought, self.level, self.most, self.below = bought, level, most, below
        self.tasks = [self.task(j, pick) for j, pick in enumerate(picks)]
        self.contested = [j for j, task in enumerate(self.tasks) if self._shares(task)]

    def task(self, j: int, pick: int) -> Task:
        problem, job = self.problem, self.problem.jobs[j]
        option = job.options[pick]
        earliest, latest = option_window(problem, self.placer.starts, job, option)
        own = option.rig is not None
        return Task(
            hours=option.hours,
            earliest=earliest,
            latest=latest - option.hours,
            queue=None if option.rig is None else option.rig,
            rigs=float(option.rigs) if own else 0.0,
            held=option.hours / problem.availability if own else 0.0,
            pool=option.pool,
            gpus=option.gpus,
            cost=option.cost,
            commitment=option.commitment,
            spend=option.list_spend,
        )

    def _shares(self, task: Task) -> bool:
        return (
            task.queue is not None
            or task.pool is not None
            or task.commitment is not None
            or self.problem.month_budget is not None
        )

    def fresh(self) -> State:
        problem, starts = self.problem, self.placer.starts
        queues: list[Profile] = []
        for rig, kind in enumerate(problem.rigs):
            number, steps = float(kind.at_hand), [(0.0, float(kind.at_hand))]
            for month, more in enumerate(self.bought[rig]):
                if more:
                    number += more
                    steps.append((starts[month], number))
            queues.append(Profile(steps))
        if problem.one_queue:  # a second thing to hold: the one place in the queue
            queues.append(Profile([(0.0, 1.0)]))
        cover = [
            Months(
                starts,
                [hours * c.load_factor * level / (1 - c.discount) for hours in problem.month_hours],
            )
            for c, level in zip(problem.commitments, self.level, strict=True)
        ]
        pools = [Profile([(0.0, float(pool.gpus))]) for pool in problem.pools]
        return State(queues, pools, cover, self._cash(), len(problem.jobs))

    def _cash(self) -> Months | None:
        problem = self.problem
        if problem.month_budget is None:
            return None
        left = [math.inf if most is None else most for most in problem.month_budget]
        for rig, counts in enumerate(self.bought):
            for month, count in enumerate(counts):
                if count:
                    left[month] -= count * (problem.rigs[rig].net_cost[month] or 0.0)
        for c, level in zip(problem.commitments, self.level, strict=True):
            for month, hours in enumerate(problem.month_hours):
                left[month] -= (level - c.held) * c.term_hours * hours / problem.horizon_hours
        return Months(self.placer.starts, left)

    def put(self, state: State, j: int) -> bool:
        """Start job j as early as can be; False where it never can."""
        start = self.first_start(state, j, state.ends)
        if math.isinf(start):
            return False
        self.hold(state, j, start)
        return True

    def first_start(self, state: State, j: int, ends: Sequence[float]) -> float:
        """The first moment at which everything that job j needs is free; inf if never. [h]"""
        task, job = self.tasks[j], self.problem.jobs[j]
        start = max([task.earliest, *(ends[i] for i in job.predecessors)])
        while math.isfinite(start):
            later = start
            if task.queue is not None:
                later = state.queues[task.queue].earliest(later, task.held, task.rigs)
                if self.problem.one_queue:
                    later = state.queues[-1].earliest(later, task.held, 1.0)
            if task.pool is not None:
                later = state.pools[task.pool].earliest(later, task.hours, task.gpus)
            if math.isinf(later):
                return math.inf
            if task.commitment is not None:
                later = state.cover[task.commitment].earliest(later, task.hours, task.spend)
            if state.cash is not None:
                later = state.cash.earliest(later, task.hours, task.cost)
            if later <= start:
                return start
            start = later
        return math.inf

    def relaxed_ends(self, state: State) -> list[float]:
        """When jobs would end at the best if those not placed yet did not stand in each other's way. [h]"""
        ends = state.ends[:]
        for j in self.placer.order:
            if math.isnan(ends[j]):
                ends[j] = self.first_start(state, j, ends) + self.tasks[j].hours
        return ends

    def release(self, state: State, j: int) -> None:
        """Give back what job j holds."""
        task, start = self.tasks[j], state.starts[j]
        if task.queue is not None:
            state.queues[task.queue].take(start, start + task.held, -task.rigs)
            if self.problem.one_queue:
                state.queues[-1].take(start, start + task.held, -1.0)
        if task.pool is not None:
            state.pools[task.pool].take(start, start + task.hours, -task.gpus)
        if task.commitment is not None:
            state.cover[task.commitment].take(start, task.hours, -task.spend)
        if state.cash is not None:
            state.cash.take(start, task.hours, -task.cost)

    def hold(self, state: State, j: int, start: float) -> None:
        """Start job j then."""
        task = self.tasks[j]
        if task.queue is not None:
            state.queues[task.queue].take(start, start + task.held, task.rigs)
            if self.problem.one_queue:
                state.queues[-1].take(start, start + task.held, 1.0)
        if task.pool is not None:
            state.pools[task.pool].take(start, start + task.hours, task.gpus)
        if task.commitment is not None:
            state.cover[task.commitment].take(start, task.hours, task.spend)
        if state.cash is not None:
            state.cash.take(start, task.hours, task.cost)
        state.starts[j], state.ends[j] = start, start + task.hours

    def list_schedule(self, keys: Sequence[float]) -> State | None:
        """Jobs whose predecessors are placed are put in by ascending key."""
        import heapq

        state = self.fresh()
        left = [len(set(job.predecessors)) for job in self.problem.jobs]
        ready = [(keys[j], j) for j, count in enumerate(left) if count == 0]
        heapq.heapify(ready)
        while ready:
            _, j = heapq.heappop(ready)
            if not self.put(state, j):
                return None
            for follower in self.placer.after[j]:
                left[follower] -= 1
                if left[follower] == 0:
                    heapq.heappush(ready, (keys[follower], follower))
        return state

    def lateness(self, ends: Sequence[float]) -> list[float]:
        """Hours by which each job misses its deadline or months."""
        return [max(0.0, end - (t.latest + t.hours)) for end, t in zip(ends, self.tasks, strict=True)]

    def time(self, ends: Sequence[float]) -> float:
        return objective(self.problem, ends)

    def worth_of(self, ends: Sequence[float]) -> tuple[float, float]:
        """What a schedule is judged by: hours late in all, then the objective."""
        late = sum(self.lateness(ends))
        return (late if late > SAME_HOURS else 0.0, self.time(ends))

    def run(self, exact_jobs: int) -> Placed:
        # Inside a single month a run draws the same wherever it starts, so only earlier is better.
        regular = self.problem.month_budget is None and all(
            task.commitment is None or len(job.months) == 1
            for task, job in zip(self.tasks, self.problem.jobs, strict=True)
        )
        if len(self.contested) <= exact_jobs:
            state = _AllOrders(self).best()
            exact = regular
        else:
            state, exact = self._good_orders(), False
        if state is None:
            never = tuple(math.inf for _ in self.tasks)
            return Placed(never, math.inf, never, exact)
        return Placed(tuple(state.starts), self.time(state.ends), tuple(self.lateness(state.ends)), exact)

    def _good_orders(self) -> State | None:
        """The best of several rules, shuffles of the best rule, and moving late jobs forward."""
        due = self._due()
        slack = [d - t.hours for d, t in zip(due, self.tasks, strict=True)]
        wide = [-t.rigs * t.held for t in self.tasks]
        rules: list[list[float]] = [due, slack, wide]
        best: State | None = None
        best_keys, best_worth = due, (math.inf, math.inf)

        def tried(keys: list[float]) -> bool:
            nonlocal best, best_keys, best_worth
            state = self.list_schedule(keys)
            if state is None:
                return False
            worth = self.worth_of(state.ends)
            if worth < best_worth:
                best, best_keys, best_worth = state, keys, worth
            return best_worth[0] == 0.0 and best_worth[1] <= self.most + SAME_HOURS

        if any(tried(keys) for keys in rules):
            return best
        if best is not None and self._promote(best_keys, best, tried):
            return best
        dice = random.Random(0)
        spread = max(1.0, max(t.hours for t in self.tasks))
        for _ in range(_SHUFFLES):
            if tried([key + dice.uniform(-spread, spread) for key in best_keys]):
                break
        return best

    def _promote(self, keys: list[float], state: State, tried: Callable[[list[float]], bool]) -> bool:
        """Move what ends too late, and what it waits for, ahead of what stands in its way."""
        keys = list(keys)
        for _ in range(_PROMOTIONS):
            late = [self._over(j, end) for j, end in enumerate(state.ends)]
            worst = max(range(len(late)), key=late.__getitem__)
            if late[worst] <= SAME_HOURS:
                return False
            step = max(1.0, late[worst])
            for j in self._ancestry(worst):
                keys[j] -= step
            if tried(keys[:]):
                return True
            again = self.list_schedule(keys)
            if again is None:
                return False
            state = again
        return False

    def _over(self, j: int, end: float) -> float:
        """Hours by which a job ends after what it should. [h]"""
        task = self.tasks[j]
        wanted = task.latest + task.hours
        if self.problem.objective == "largest":
            wanted = min(wanted, self.problem.jobs[j].origin + self.most)
        return end - wanted if math.isfinite(wanted) else 0.0

    def _ancestry(self, j: int) -> list[int]:
        found, todo = {j}, [j]
        while todo:
            for before in self.problem.jobs[todo.pop()].predecessors:
                if before not in found:
                    found.add(before)
                    todo.append(before)
        return sorted(found)

    def _due(self) -> list[float]:
        """Latest finish of each job by the hours chosen, along its followers. [h]"""
        due = []
        for task, job in zip(self.tasks, self.problem.jobs, strict=True):
            allowed = self.most if self.problem.objective == "largest" else math.inf
            due.append(min(task.latest + task.hours, job.origin + allowed, 1e9))
        for j in reversed(self.placer.order):
            for i in self.problem.jobs[j].predecessors:
                due[i] = min(due[i], due[j] - self.tasks[j].hours)
        return due


class _AllOrders:
    """Depth first over the orders of jobs that share something; the others start as soon as they can."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.shared = set(search.contested)
        self.worth = (0.0, search.below) if math.isfinite(search.below) else (math.inf, math.inf)
        self.floor = search.worth_of(search.relaxed_ends(search.fresh()))
        self.found: State | None = None

    def best(self) -> State | None:
        search = self.search
        left = [len(set(job.predecessors)) for job in search.problem.jobs]
        self._go(search.fresh(), left, {j for j, count in enumerate(left) if count == 0})
        return self.found

    def _go(self, state: State, left: list[int], ready: set[int]) -> None:
        search = self.search
        while alone := [j for j in ready if j not in self.shared]:
            for j in alone:
                search.put(state, j)
                self._after(j, left, ready)
        if not ready:
            worth = search.worth_of(state.ends)
            if worth < self.worth:
                self.worth, self.found = worth, state
            return
        if self._hopeless(state):
            return
        if self.worth <= self.floor:
            return
        for j in sorted(ready):
            branch, counts, open_jobs = state.copy(), left[:], set(ready)
            if search.put(branch, j):
                self._after(j, counts, open_jobs)
                self._go(branch, counts, open_jobs)
            if self.worth <= self.floor:
                return

    def _after(self, j: int, left: list[int], ready: set[int]) -> None:
        ready.discard(j)
        for follower in self.search.placer.after[j]:
            left[follower] -= 1
            if left[follower] == 0:
                ready.add(follower)

    def _hopeless(self, state: State) -> bool:
        """Whether nothing better can follow, even if what is left shared nothing."""
        if self.worth == (math.inf, math.inf):
            return False
        return self.search.worth_of(self.search.relaxed_ends(state)) >= self.worth


def objective(problem: Problem, ends: Sequence[float]) -> float:
    """The `time` of jobs that end then. [h]"""
    late = [end - job.origin for end, job in zip(ends, problem.jobs, strict=True)]
    if problem.objective == "largest":
        return max(late, default=0.0)
    return sum(job.weight * max(0.0, hours) for job, hours in zip(problem.jobs, late, strict=True))
