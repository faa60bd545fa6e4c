"""Which limits to relax, and to what, so that a schedule that cannot be kept can.

Limits are tried by kind: each kind alone taken away, and where that lets a plan through, the least that it
must give. Deadlines give by an elastic model: the least hours late in all, then as few late runs as can be.
The smallest set found is told; others of their own kind beside it. Where no kind is enough alone, all are
taken away and put back one after another.

Every relaxation rests on a plan that keeps the relaxed limits and has passed the independent check. Where
many runs share much, placing them is no proof, and a smaller relaxation might do.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .check_choice import cash_by_month, check_choice, peak_of_pool
from .flat import flatten, order_of_jobs
from .problem import Choice, Job, Problem
from .reduction import windows

Limit = Literal["deadline", "budget", "month budget", "quota", "power", "rigs", "months"]

_UNIT: dict[str, str] = {
    "deadline": "h",
    "budget": "in all",
    "month budget": "a month",
    "quota": "GPUs",
    "power": "W",
    "rigs": "rigs",
    "months": "h",
}
# More rigs of one type than any schedule of this house would buy.
_MANY_RIGS = 64
_NO_QUOTA = 10**9
_STEPS = 12
_HOURS = 1e-5

# A problem's rows: its front with at most so many points, () where no plan is possible.
Rows = Callable[[Problem, int], Sequence[Choice]]


@dataclass(frozen=True, slots=True)
class Relaxation:
    """One limit and the nearest value with which the schedule can be kept, the others of its set relaxed too.

    item: id of the job (deadline, months), pool (quota) or rig type (rigs), the month's number (month
        budget), "" for the whole schedule (budget, power). months: the schedule's end, for a job without a
        deadline of its own.
    asked, needed: in the limit's own unit: hours from the start of month 0, currency, GPUs, W, rigs.
    """

    limit: Limit
    item: str
    asked: float
    needed: float

    def __str__(self) -> str:
        name = f"{self.limit} of {self.item}" if self.item else self.limit
        return f"{name}: asked {self.asked:g}, needed {self.needed:g} {_UNIT[self.limit]}"


class ProblemInfeasible(Exception):
    """No plan keeps every limit.

    relaxations: the smallest set found of limits which, relaxed together, let a plan through; () where not
    even that helps, then `reasons` say why. alternatives: other such sets, each enough alone.
    """

    def __init__(
        self,
        relaxations: Sequence[Relaxation] = (),
        reasons: Sequence[str] = (),
        alternatives: Sequence[Sequence[Relaxation]] = (),
    ) -> None:
        self.relaxations = tuple(relaxations)
        self.alternatives = tuple(map(tuple, alternatives))
        self.reasons = tuple(reasons) or tuple(str(relaxation) for relaxation in self.relaxations)
        super().__init__("no plan keeps every limit: " + "; ".join(self.reasons))


def explained(problem: Problem, rows: Rows, seconds: float = 30.0) -> ProblemInfeasible:
    """What to relax in a problem without a plan. seconds: after which no further alternative is sought."""
    until = time.monotonic() + seconds
    kinds = [kind for kind in _KINDS if kind.there(problem)]
    sets: list[tuple[Relaxation, ...]] = []
    for kind in kinds:
        if sets and time.monotonic() > until:
            break
        found = _least(kind, problem, rows)
        if found:
            sets.append(found)
    if not sets:
        together = _together(kinds, problem, rows)
        sets = [together] if together else []
    if not sets:
        return ProblemInfeasible(reasons=_hopeless(problem))
    best, *others = sorted(sets, key=len)
    return ProblemInfeasible(best, alternatives=others)


def relaxed(problem: Problem, relaxations: Sequence[Relaxation]) -> Problem:
    """The problem with these limits at what is needed."""
    for each in relaxations:
        if each.limit in ("deadline", "months"):
            jobs = tuple(
                _until(job, each.needed, problem) if job.id == each.item else job for job in problem.jobs
            )
            problem = dataclasses.replace(problem, jobs=jobs)
        elif each.limit == "budget":
            problem = dataclasses.replace(problem, budget=each.needed)
        elif each.limit == "month budget":
            limits = list(problem.month_budget or ())
            limits[int(each.item)] = each.needed
            problem = dataclasses.replace(problem, month_budget=tuple(limits))
        elif each.limit == "quota":
            problem = dataclasses.replace(problem, pools=tuple(
                dataclasses.replace(pool, gpus=round(each.needed)) if pool.id == each.item else pool
                for pool in problem.pools
            ))  # fmt: skip
        elif each.limit == "power":
            problem = dataclasses.replace(problem, watts=each.needed)
        else:
            problem = dataclasses.replace(problem, rigs=tuple(
                dataclasses.replace(rig, most=round(each.needed)) if rig.id == each.item else rig
                for rig in problem.rigs
            ))  # fmt: skip
    return problem


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of limit. there: whether the problem has it. off: the problem without it. least: what of it
    must give, made as small as can be; () where that kind does not help.
    """

    there: Callable[[Problem], bool]
    off: Callable[[Problem], Problem]
    least: Callable[[Problem, Rows], tuple[Relaxation, ...]]


def _least(kind: _Kind, problem: Problem, rows: Rows) -> tuple[Relaxation, ...]:
    """The smallest set of that kind alone; () where the kind alone does not help."""
    return _verified(problem, kind.least(problem, rows), rows)


def _verified(problem: Problem, found: tuple[Relaxation, ...], rows: Rows) -> tuple[Relaxation, ...]:
    """What was found, if a plan keeps it. Raises InternalError where the check and the search disagree."""
    if not found:
        return ()
    wider = relaxed(problem, found)
    plans = rows(wider, 1)
    for plan in plans:
        check_choice(wider, plan)
    return found if plans else ()


def _together(kinds: Sequence[_Kind], problem: Problem, rows: Rows) -> tuple[Relaxation, ...]:
    """A set across kinds: all taken away, then put back where a plan remains; then each made least."""
    off = problem
    for kind in kinds:
        off = kind.off(off)
    if not rows(off, 1):
        return ()
    needed = list(kinds)
    for kind in reversed(kinds):
        trial = problem
        for other in needed:
            if other is not kind:
                trial = other.off(trial)
        if rows(trial, 1):
            needed.remove(kind)
    found: list[Relaxation] = []
    for number, kind in enumerate(needed):
        trial = relaxed(problem, found)
        for other in needed[number + 1 :]:
            trial = other.off(trial)
        found += kind.least(trial, rows)
    return _verified(problem, tuple(found), rows)


def _hopeless(problem: Problem) -> tuple[str, ...]:
    """Why nothing helps."""
    free = problem
    for kind in _KINDS:
        free = kind.off(free)
    able = set(flatten(free).job.tolist())
    without = [job.id for j, job in enumerate(problem.jobs) if j not in able]
    if without:
        return tuple(f"{name}: no option can run it whatever is relaxed" for name in without)
    return ("no plan was found even with every limit relaxed",)


def _no_deadlines(problem: Problem) -> Problem:
    jobs = tuple(_until(job, None, problem) for job in problem.jobs)
    return dataclasses.replace(problem, jobs=jobs)


def _until(job: Job, deadline: float | None, problem: Problem) -> Job:
    """The job with that deadline, and rigs and commitments in all months up to it."""
    months, opens = [], 0.0
    for month, hours in enumerate(problem.month_hours):
        if (deadline is None or opens < deadline) and month >= min(job.months, default=0):
            months.append(month)
        opens += hours
    return dataclasses.replace(job, deadline=deadline, months=tuple(months) or job.months)


def _late(problem: Problem, jobs: set[str]) -> Problem:
    """Elastic: these jobs' deadlines only count, the others hold; `time` is the sum of hours late."""
    made = []
    for job in problem.jobs:
        elastic = job.id in jobs
        made.append(
            dataclasses.replace(
                _until(job, None, problem) if elastic else job,
                origin=job.deadline or 0.0 if elastic else 0.0,
                weight=1.0 if elastic else 0.0,
            )
        )
    return dataclasses.replace(problem, jobs=tuple(made), objective="sum")


def _least_lateness(problem: Problem, rows: Rows) -> tuple[Relaxation, ...]:
    asked = {job.id: job.deadline for job in problem.jobs if job.deadline is not None}
    found = _lateness(problem, rows, set(asked))
    if not found:
        return ()
    # Fewer late runs, where some of them need not be: each kept on time in turn.
    certain = _late_alone(problem)
    for name in [each.item for each in found if each.item not in certain][:_STEPS]:
        names = {each.item for each in found} - {name}
        if names and len(found) > 1 and (fewer := _lateness(problem, rows, names)):
            found = fewer
    return found


def _late_alone(problem: Problem) -> set[str]:
    """Jobs that miss their deadline even where nothing is shared."""
    free = _no_deadlines(problem)
    options = flatten(free)
    start, _ = windows(free, options, order_of_jobs(free), float("inf"))
    ends = np.full(len(free.jobs), np.inf)
    np.minimum.at(ends, options.job, np.maximum(options.earliest, start[options.job]) + options.hours)
    return {
        job.id
        for job, end in zip(problem.jobs, ends.tolist(), strict=True)
        if job.deadline is not None and end > job.deadline + _HOURS
    }


def _lateness(problem: Problem, rows: Rows, elastic: set[str]) -> tuple[Relaxation, ...]:
    """The deadlines of these that must give for the least hours late in all."""
    plans = rows(_late(problem, elastic), 2)
    if not plans:
        return ()
    plan = plans[-1]
    end = problem.horizon_hours
    found = []
    for j, job in enumerate(problem.jobs):
        finish = plan.start[j] + job.options[plan.option[j]].hours
        if job.id in elastic and job.deadline is not None and finish > job.deadline + _HOURS:
            limit: Limit = "months" if job.deadline >= end - _HOURS else "deadline"
            found.append(Relaxation(limit, job.id, job.deadline, finish + _HOURS))
    return tuple(found)


def _no_budget(problem: Problem) -> Problem:
    return dataclasses.replace(problem, budget=None)


def _least_budget(problem: Problem, rows: Rows) -> tuple[Relaxation, ...]:
    plans = rows(_no_budget(problem), 1)
    if not plans or problem.budget is None:
        return ()
    return (Relaxation("budget", "", problem.budget, plans[0].cost),)


def _no_month_budget(problem: Problem) -> Problem:
    limits = problem.month_budget
    return dataclasses.replace(problem, month_budget=None if limits is None else (None,) * len(limits))


def _least_month_budget(problem: Problem, rows: Rows) -> tuple[Relaxation, ...]:
    """By the smallest common factor on all months; then what the plan pays in those that overrun."""
    limits = problem.month_budget or ()
    plans = rows(_no_month_budget(problem), 1)
    if not plans:
        return ()
    best = cash_by_month(problem, plans[0])
    over = max(cash - most for cash, most in zip(best, limits, strict=True) if most is not None)
    low, high = 0.0, max(0.0, over)
    for _ in range(_STEPS):
        more = (low + high) / 2
        trial = tuple(None if most is None else most + more for most in limits)
        found = rows(dataclasses.replace(problem, month_budget=trial), 1)
        if found:
            best, high = cash_by_month(problem, found[0]), more
        else:
            low = more
    return tuple(
        Relaxation("month budget", str(month), most, cash * (1 + 1e-9))
        for month, (cash, most) in enumerate(zip(best, limits, strict=True))
        if most is not None and cash > most + 1e-6 * max(1.0, most)
    )


def _no_quota(problem: Problem) -> Problem:
    pools = tuple(dataclasses.replace(pool, gpus=_NO_QUOTA) for pool in problem.pools)
    return dataclasses.replace(problem, pools=pools)


def _least_quota(problem: Problem, rows: Rows) -> tuple[Relaxation, ...]:
    pools = list(problem.pools)
    trial = _no_quota(problem)
    plans = rows(trial, 1)
    if not plans:
        return ()

    def tried(number: int, gpus: int) -> Sequence[Choice]:
        changed = list(trial.pools)
        changed[number] = dataclasses.replace(pools[number], gpus=gpus)
        return rows(dataclasses.replace(trial, pools=tuple(changed)), 1)

    for number, pool in enumerate(pools):
        high = max(pool.gpus, peak_of_pool(problem, plans[0], number))
        low = pool.gpus - 1
        while high - low > 1:
            middle = (low + high) // 2 if low >= pool.gpus else pool.gpus
            if found := tried(number, middle):
                plans, high = found, middle
            else:
                low = middle
        changed = list(trial.pools)
        changed[number] = dataclasses.replace(pool, gpus=high)
        trial = dataclasses.replace(trial, pools=tuple(changed))
    return tuple(
        Relaxation("quota", asked.id, asked.gpus, needed.gpus)
        for asked, needed in zip(pools, trial.pools, strict=True)
        if needed.gpus > asked.gpus
    )


def _no_power(problem: Problem) -> Problem:
    return dataclasses.replace(problem, watts=None)


def _least_power(problem: Problem, rows: Rows) -> tuple[Relaxation, ...]:
    """Plan after plan with less power, until none is left."""
    if problem.watts is None:
        return ()
    needed: float | None = None
    while plans := rows(dataclasses.replace(problem, watts=None if needed is None else needed - 1e-3), 1):
        watts = sum(
            kind.watts * (kind.at_hand + sum(counts))
            for kind, counts in zip(problem.rigs, plans[0].bought, strict=True)
        )
        if watts <= problem.watts or (needed is not None and watts >= needed):
            break
        needed = watts
    return () if needed is None else (Relaxation("power", "", problem.watts, needed),)


def _no_rig_limit(problem: Problem) -> Problem:
    rigs = tuple(dataclasses.replace(rig, most=max(rig.most, _MANY_RIGS)) for rig in problem.rigs)
    return dataclasses.replace(problem, rigs=rigs)


def _least_rigs(problem: Problem, rows: Rows) -> tuple[Relaxation, ...]:
    """For one type after another, the fewest that still leave a plan."""
    trial = _no_rig_limit(problem)
    if not rows(trial, 1):
        return ()
    for number, rig in enumerate(problem.rigs):
        low, high = rig.most - 1, max(rig.most, _MANY_RIGS)
        while high - low > 1:
            middle = (low + high) // 2 if low >= rig.most else rig.most
            changed = list(trial.rigs)
            changed[number] = dataclasses.replace(rig, most=middle)
            if rows(dataclasses.replace(trial, rigs=tuple(changed)), 1):
                high = middle
            else:
                low = middle
        changed = list(trial.rigs)
        changed[number] = dataclasses.replace(rig, most=high)
        trial = dataclasses.replace(trial, rigs=tuple(changed))
    return tuple(
        Relaxation("rigs", asked.id, asked.most, needed.most)
        for asked, needed in zip(problem.rigs, trial.rigs, strict=True)
        if needed.most > asked.most
    )


_KINDS = (
    _Kind(lambda p: p.budget is not None, _no_budget, _least_budget),
    _Kind(lambda p: any(job.deadline is not None for job in p.jobs), _no_deadlines, _least_lateness),
    _Kind(
        lambda p: any(most is not None for most in p.month_budget or ()),
        _no_month_budget,
        _least_month_budget,
    ),
    _Kind(lambda p: bool(p.pools), _no_quota, _least_quota),
    _Kind(lambda p: p.watts is not None, _no_power, _least_power),
    _Kind(lambda p: any(c is not None for r in p.rigs for c in r.net_cost), _no_rig_limit, _least_rigs),
)
