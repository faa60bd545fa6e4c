"""The front of a small schedule by trying everything: options, purchases by month and orders of jobs.

Written from the words of planner/optimizer/problem.py alone. Costs are looked at in ascending order, so a
plan whose jobs would be too slow even with nothing shared is not placed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from planner.optimizer.problem import Option, Problem

Plan = tuple[float, float]
TINY = 1e-9


def front(problem: Problem) -> list[Plan]:
    """(cost, time) of every plan that no other beats, cheapest first."""
    plans = sorted(_plans(problem), key=lambda plan: plan[0])
    found: list[Plan] = []
    fastest = math.inf
    for cost, picked, bought in plans:
        if _alone(problem, picked) >= fastest - 1e-6:
            continue
        time = best_time(problem, picked, bought, fastest)
        if time < fastest - 1e-6:
            if found and cost <= found[-1][0] + 1e-9 * max(1.0, cost):
                found.pop()
            found.append((cost, time))
            fastest = time
    return found


def _plans(problem: Problem) -> Iterator[tuple[float, tuple[Option, ...], tuple[tuple[int, ...], ...]]]:
    purchases = list(_purchases(problem))
    months = range(len(problem.month_hours))
    for picked in itertools.product(*(job.options for job in problem.jobs)):
        runs = sum(option.cost for option in picked)
        for number, c in enumerate(problem.commitments):
            drawn = [0.0 for _ in months]
            for job, option in zip(problem.jobs, picked, strict=True):
                if option.commitment == number:
                    assert len(job.months) == 1, "the oracle knows only fixed months"
                    drawn[job.months[0]] += option.list_spend
            level = max(d / h for d, h in zip(drawn, problem.month_hours, strict=True))
            level *= (1 - c.discount) / c.load_factor
            if c.step and level > c.held:
                level = math.ceil(level / c.step - TINY) * c.step
            level = max(level, c.held)
            runs += math.inf if level > c.most + TINY else (level - c.held) * c.term_hours
        for paid, bought in purchases:
            cost = runs + paid
            if cost <= (math.inf if problem.budget is None else problem.budget * (1 + TINY)) < math.inf or (
                problem.budget is None and math.isfinite(cost)
            ):
                yield cost, picked, bought


def _purchases(problem: Problem) -> Iterator[tuple[float, tuple[tuple[int, ...], ...]]]:
    ranges = []
    for kind in problem.rigs:
        each = [range(1 if cost is None else kind.most + 1) for cost in kind.net_cost]
        ranges.append([c for c in itertools.product(*each) if sum(c) <= max(0, kind.most - kind.at_hand)])
    for bought in itertools.product(*ranges):
        if problem.watts is not None and any(map(sum, bought)):
            watts = sum(k.watts * (k.at_hand + sum(c)) for k, c in zip(problem.rigs, bought, strict=True))
            if watts > problem.watts:
                continue
        paid = sum(
            n * (cost or 0.0)
            for k, c in zip(problem.rigs, bought, strict=True)
            for n, cost in zip(c, k.net_cost, strict=True)
        )
        yield paid, bought


def _time(problem: Problem, ends: list[float]) -> float:
    late = [end - job.origin for end, job in zip(ends, problem.jobs, strict=True)]
    if problem.objective == "largest":
        return max(late)
    return sum(job.weight * max(0.0, x) for job, x in zip(problem.jobs, late, strict=True))


def _alone(problem: Problem, picked: tuple[Option, ...]) -> float:
    ends: list[float] = []
    for job, option in zip(problem.jobs, picked, strict=True):  # predecessors come first in these schedules
        ends.append(max([job.release, *(ends[i] for i in job.predecessors)]) + option.hours)
    return _time(problem, ends)


def best_time(
    problem: Problem, picked: tuple[Option, ...], bought: tuple[tuple[int, ...], ...], fastest: float
) -> float:
    """Least `time` over all orders in which jobs are put in as early as can be; inf where none is a plan."""
    opens = [0.0, *itertools.accumulate(problem.month_hours)]
    best = math.inf

    def there(rig: int, moment: float) -> int:
        kind = problem.rigs[rig]
        return kind.at_hand + sum(n for month, n in enumerate(bought[rig]) if opens[month] <= moment + 1e-7)

    def held(j: int) -> float:
        own = picked[j].rig is not None
        return picked[j].hours / (problem.availability if own else 1.0)

    def fits(j: int, start: float, starts: dict[int, float]) -> bool:
        option, job = picked[j], problem.jobs[j]
        inside = start >= opens[job.months[0]] - 1e-7 and start + held(j) <= opens[job.months[-1] + 1] + 1e-7
        if (option.rig is not None or option.commitment is not None) and not inside:
            return False
        if job.deadline is not None and start + option.hours > job.deadline + 1e-7:
            return False
        everyone = {**starts, j: start}
        for moment in (s for s in everyone.values() if start - 1e-7 <= s < start + held(j) - 1e-7):
            for rig in range(len(problem.rigs)):
                using = [i for i in everyone if picked[i].rig == rig and _on(everyone[i], held(i), moment)]
                if sum(picked[i].rigs for i in using) > there(rig, moment):
                    return False
            own = [i for i in everyone if picked[i].rig is not None and _on(everyone[i], held(i), moment)]
            if problem.one_queue and len(own) > 1:
                return False
            for pool, quota in enumerate(problem.pools):
                mine = [i for i in everyone if picked[i].pool == pool]
                using = [i for i in mine if _on(everyone[i], picked[i].hours, moment)]
                if sum(picked[i].gpus for i in using) > quota.gpus:
                    return False
        return True

    def go(starts: dict[int, float]) -> None:
        nonlocal best
        if len(starts) == len(picked):
            ends = [starts[j] + picked[j].hours for j in range(len(picked))]
            best = min(best, _time(problem, ends))
            return
        for j, job in enumerate(problem.jobs):
            if j in starts or any(i not in starts for i in job.predecessors):
                continue
            ready = max([job.release, *(starts[i] + picked[i].hours for i in job.predecessors)])
            moments = {ready, *(o for o in opens[:-1] if o > ready)}
            moments |= {s + held(i) for i, s in starts.items() if s + held(i) > ready}
            moments |= {s + picked[i].hours for i, s in starts.items() if s + picked[i].hours > ready}
            start = next((m for m in sorted(moments) if fits(j, m, starts)), None)
            if start is None:
                continue
            late = start + picked[j].hours - job.origin
            if problem.objective == "largest" and late >= min(best, fastest) - 1e-6:
                continue
            go({**starts, j: start})

    go({})
    return best


def _on(start: float, hours: float, moment: float) -> bool:
    return start <= moment + 1e-7 and moment < start + hours - 1e-7
