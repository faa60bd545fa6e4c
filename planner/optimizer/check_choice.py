"""A second opinion on every choice, that shares no code with the solvers or the placement.

Everything is computed again from the problem: the cost from its lines, and what is held at every instant at
which something starts. A disagreement is a fault of ours, so no plan is shown.

What a plan must keep: one option a job; release, deadline and predecessors; a run on own rigs (with the care
of its rigs behind it: hours / availability in all) or on a commitment inside the job's months; rigs and quota
at every instant; one own run at a time where there is one queue; spend drawn from a commitment in each month
within its cover; purchases only in months that have a price and up to `most`; power of all rigs wherever some
are bought; budget; month budgets, with each run's cost spread evenly over its hours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..errors import InternalError
from .problem import Choice, Option, Problem

# Sums of up to some thousand floats; money and hours are compared to this share of their size.
_SHARE = 1e-7
_HOURS = 1e-5


def check_choice(problem: Problem, choice: Choice) -> None:
    """Raises InternalError, naming what is broken, where a choice is not a plan of the problem."""
    if len(choice.option) != len(problem.jobs) or len(choice.start) != len(problem.jobs):
        raise InternalError("a choice must name an option and a start for each job")
    picked = []
    for job, place in zip(problem.jobs, choice.option, strict=True):
        if not 0 <= place < len(job.options):
            raise InternalError(f"{job.id}: there is no option {place}")
        picked.append(job.options[place])
    _check_dates(problem, choice, picked)
    _check_purchases(problem, choice)
    _check_rigs(problem, choice, picked)
    _check_quotas(problem, choice)
    _check_commitments(problem, choice, picked)
    _check_money(problem, choice, picked)
    if not choice.bound <= choice.cost * (1 + _SHARE) + _SHARE:
        raise InternalError(f"a bound of {choice.bound} above the cost {choice.cost}")


def _check_dates(problem: Problem, choice: Choice, picked: list[Option]) -> None:
    missed: list[float] = []
    for job, option, start in zip(problem.jobs, picked, choice.start, strict=True):
        end = start + option.hours
        if not math.isfinite(start) or start < job.release - _HOURS:
            raise InternalError(f"{job.id}: starts at {start} h, before its release")
        if job.deadline is not None and end > job.deadline + _HOURS:
            raise InternalError(f"{job.id}: ends at {end} h, after its deadline {job.deadline} h")
        for before in job.predecessors:
            done = choice.start[before] + picked[before].hours
            if start < done - _HOURS:
                raise InternalError(f"{job.id}: starts before {problem.jobs[before].id} ends")
        if option.rig is not None or option.commitment is not None:
            last = start + (option.hours / problem.availability if option.rig is not None else option.hours)
            if not job.months:
                raise InternalError(f"{job.id}: has no months for rigs or commitments")
            opens = math.fsum(problem.month_hours[: job.months[0]])
            closes = math.fsum(problem.month_hours[: job.months[-1] + 1])
            if start < opens - _HOURS or last > closes + _HOURS:
                raise InternalError(f"{job.id}: runs outside its months")
        missed.append(end - job.origin)
    if problem.objective == "largest":
        time = max(missed, default=0.0)
    else:
        time = math.fsum(
            job.weight * max(0.0, hours) for job, hours in zip(problem.jobs, missed, strict=True)
        )
    if abs(time - choice.time) > _HOURS + _SHARE * abs(time):
        raise InternalError(f"the time is {time} h, not {choice.time} h")


def _check_purchases(problem: Problem, choice: Choice) -> None:
    if len(choice.bought) != len(problem.rigs):
        raise InternalError("a choice must say for each rig type what is bought")
    watts = 0.0
    for kind, counts in zip(problem.rigs, choice.bought, strict=True):
        for month, count in enumerate(counts):
            if count < 0 or (count > 0 and kind.net_cost[month] is None):
                raise InternalError(f"{kind.id}: {count} bought in month {month}, where none can be had")
        if sum(counts) > max(0, kind.most - kind.at_hand):
            raise InternalError(f"{kind.id}: {sum(counts)} bought beside {kind.at_hand}, most {kind.most}")
        watts += kind.watts * (kind.at_hand + sum(counts))
    if not any(sum(counts) for counts in choice.bought):
        return
    if problem.watts is not None and watts > problem.watts * (1 + _SHARE):
        raise InternalError(f"the rigs take {watts} W, more than {problem.watts} W")


def _check_rigs(problem: Problem, choice: Choice, picked: list[Option]) -> None:
    held = [
        (start, start + option.hours / problem.availability, option.rig, option.rigs)
        for start, option in zip(choice.start, picked, strict=True)
        if option.rig is not None
    ]
    for rig, kind in enumerate(problem.rigs):
        runs = [(start, end, rigs) for start, end, which, rigs in held if which == rig]
        for moment, used in _peaks(runs):
            there = kind.at_hand
            for month, count in enumerate(choice.bought[rig]):
                if math.fsum(problem.month_hours[:month]) <= moment + _HOURS:
                    there += count
            if used > there:
                raise InternalError(f"{kind.id}: {used} in use at {moment} h, {there} there")
    if problem.one_queue:
        for moment, used in _peaks((start, end, 1) for start, end, _, _ in held):
            if used > 1:
                raise InternalError(f"{used} jobs on own rigs at {moment} h, where one queue was asked for")


def peak_of_pool(problem: Problem, choice: Choice, pool: int) -> int:
    """Most GPUs that runs hold of a quota at one instant."""
    picked = [job.options[place] for job, place in zip(problem.jobs, choice.option, strict=True)]
    runs = [
        (start, start + option.hours, option.gpus)
        for start, option in zip(choice.start, picked, strict=True)
        if option.pool == pool
    ]
    return max((used for _, used in _peaks(runs)), default=0)


def _check_quotas(problem: Problem, choice: Choice) -> None:
    for number, pool in enumerate(problem.pools):
        used = peak_of_pool(problem, choice, number)
        if used > pool.gpus:
            raise InternalError(f"{pool.id}: {used} GPUs at once, quota {pool.gpus}")


def _peaks(runs: Iterable[tuple[float, float, int]]) -> list[tuple[float, int]]:
    """(moment, how many are held) at every start; only there can the number be largest."""
    held = [run for run in runs if run[1] - run[0] > _HOURS]
    return [
        (moment, sum(n for start, end, n in held if start <= moment + _HOURS and end > moment + _HOURS))
        for moment, _, _ in held
    ]


def _by_month(problem: Problem, start: float, hours: float, amount: float) -> list[float]:
    """What a run takes in each month, evenly over its hours."""
    parts, opens = [], 0.0
    for length in problem.month_hours:
        closes = opens + length
        if hours > _HOURS:
            parts.append(amount * max(0.0, min(start + hours, closes) - max(start, opens)) / hours)
        else:
            parts.append(amount if opens <= start + _HOURS < closes else 0.0)
        opens = closes
    return parts


def _check_commitments(problem: Problem, choice: Choice, picked: list[Option]) -> None:
    if len(choice.level) != len(problem.commitments):
        raise InternalError("a choice must say the level of each commitment")
    for number, (commitment, level) in enumerate(zip(problem.commitments, choice.level, strict=True)):
        if not commitment.held - _SHARE <= level <= max(commitment.most, commitment.held) * (1 + _SHARE):
            raise InternalError(f"{commitment.id}: level {level} an hour is not allowed")
        if commitment.step > 0 and level > commitment.held * (1 + _SHARE):
            steps = level / commitment.step
            if abs(steps - round(steps)) > 1e-6 * max(1.0, steps):
                raise InternalError(f"{commitment.id}: level {level} is no multiple of {commitment.step}")
        drawn = [0.0] * len(problem.month_hours)
        for start, option in zip(choice.start, picked, strict=True):
            if option.commitment == number:
                for month, part in enumerate(_by_month(problem, start, option.hours, option.list_spend)):
                    drawn[month] += part
        for month, (spend, hours) in enumerate(zip(drawn, problem.month_hours, strict=True)):
            cover = hours * commitment.load_factor * level / (1 - commitment.discount)
            if spend > cover * (1 + 1e-6) + 1e-6:
                raise InternalError(f"{commitment.id}: month {month} draws {spend}, covered {cover}")


def cash_by_month(problem: Problem, choice: Choice) -> list[float]:
    """Cash that leaves in each month: runs evenly over their hours, purchases, commitment fees. [currency]"""
    cash = [0.0] * len(problem.month_hours)
    for job, place, start in zip(problem.jobs, choice.option, choice.start, strict=True):
        option = job.options[place]
        for month, part in enumerate(_by_month(problem, start, option.hours, option.cost)):
            cash[month] += part
    for kind, counts in zip(problem.rigs, choice.bought, strict=True):
        for month, count in enumerate(counts):
            cash[month] += count * (kind.net_cost[month] or 0.0)
    for commitment, level in zip(problem.commitments, choice.level, strict=True):
        fee = (level - commitment.held) * commitment.term_hours
        for month, hours in enumerate(problem.month_hours):
            cash[month] += fee * hours / math.fsum(problem.month_hours)
    return cash


def _check_money(problem: Problem, choice: Choice, picked: list[Option]) -> None:
    lines = [option.cost for option in picked]
    for kind, counts in zip(problem.rigs, choice.bought, strict=True):
        lines += [count * (kind.net_cost[month] or 0.0) for month, count in enumerate(counts) if count]
    for commitment, level in zip(problem.commitments, choice.level, strict=True):
        lines.append((level - commitment.held) * commitment.term_hours)
    cost = math.fsum(lines)
    if abs(cost - choice.cost) > _SHARE * max(1.0, abs(cost)):
        raise InternalError(f"the cost is {cost}, not {choice.cost}")
    if problem.budget is not None and cost > problem.budget * (1 + _SHARE):
        raise InternalError(f"costs {cost}, more than the budget {problem.budget}")
    if problem.month_budget is None:
        return
    cash = cash_by_month(problem, choice)
    for month, most in enumerate(problem.month_budget):
        if most is not None and cash[month] > most + 1e-6 * max(1.0, most):
            raise InternalError(f"month {month} pays {cash[month]}, more than its budget {most}")
