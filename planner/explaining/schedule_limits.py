"""What each limit of a schedule's plan is worth: one limit moved at a time, the cheapest plan sought again.

The plan at hand is the cheapest of all that are as fast as it is, so every search keeps its time: a run must
end by its deadline and within the plan's time counted from its origin. A saving is the difference of two
plans that were found; how much more it could be is known from the bounds of both searches, and said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner import money
from planner.errors import UsageError
from planner.optimizer.problem import Choice, Problem

from . import use
from .lines import group_of
from .records import Verdict, Worth

if TYPE_CHECKING:
    from planner.schedule.assemble import Parts

DAY = 24.0
SECONDS = 6.0
# Below this share of the plan's cost two plans cost the same.
_SAME = 1e-6
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """base: cost of the cheapest plan found with nothing moved [currency]; gap: of it. same_prices: whether
    the store still says what the plan was made from."""

    worths: tuple[Worth, ...]
    base: Decimal
    gap: float
    same_prices: bool


def limits_of(
    document: Mapping[str, Any],
    plan: Mapping[str, Any],
    seconds: float = SECONDS,
    progress: Progress | None = None,
) -> Limits:
    """The worth of every limit of one point. seconds: most wall time of each search.

    Raises UsageError where the schedule cannot be made again, NothingStored, NoPrice.
    """
    from planner.planning import snapshot_of
    from planner.schedule.api import parts_of
    from planner.schedule.reading import checked

    values = {**document["schedule"], "as_of": document["as_of"]}
    parts, market = parts_of(checked(values, document["name"]))
    search = _Search(parts, plan, seconds, snapshot_of(market) == document["snapshot"])
    moves = list(_moves(search))
    found = []
    for number, move in enumerate(moves, 1):
        found.append(search.solved(move.made()))
        if progress is not None:
            progress("limits solved again", number, len(moves))
    search.learn(choice for move, choice in zip(moves, found, strict=True) if move.limit != "electricity")
    worths = tuple(search.worth(move, choice) for move, choice in zip(moves, found, strict=True))
    return Limits(worths, search.total, search.gap, search.same_prices)


@dataclass(frozen=True, slots=True)
class _Move:
    """One limit moved. made: the problem with it, made when it is solved."""

    limit: str
    item: str
    asked: str
    step: Decimal
    unit: str
    how: str
    used: str
    made: Callable[[], Problem]
    kept: Decimal | None = None


class _Search:
    """The plan's problem, its cheapest plan, and the same with one thing moved."""

    def __init__(self, parts: Parts, plan: Mapping[str, Any], seconds: float, same_prices: bool) -> None:
        self.parts = parts
        self.plan = plan
        self.same_prices = same_prices
        self.seconds = seconds
        self.most_hours = None if plan["point"] == 1 else float(plan["time_hours"]["p50"]) + 1e-4
        self.problem = self._within(parts.built.problem, self.most_hours)
        self._fixed = float(sum(parts.rigs.fixed_by_month, Decimal(0)))
        found = self.solved(self.problem)
        if found is None:
            raise UsageError("with the prices now stored no such plan exists; plan again: planner optimize …")
        self.bound = found.bound
        # The plan at hand is one more plan that was found, where its cost counts as the search counts.
        comparable = same_prices and not parts.file.costs.discount_rate
        self.cost = min(found.cost, float(plan["cost"]["p50"]) - self._fixed) if comparable else found.cost

    def learn(self, found: Iterable[Choice | None]) -> None:
        """A plan found with a limit moved that keeps it as it was is a better plan of the old problem."""
        from planner.errors import InternalError
        from planner.optimizer.check_choice import check_choice

        for choice in found:
            if choice is None or choice.cost >= self.cost:
                continue
            try:
                check_choice(self.problem, choice)
            except InternalError:
                continue
            self.cost = choice.cost

    @property
    def total(self) -> Decimal:
        """The least cost found with nothing moved, what is fixed included. [currency]"""
        return money.quantity(self.cost + self._fixed)

    @property
    def gap(self) -> float:
        """Share of that cost that is not proven to be needed. [0, 1]"""
        return max(0.0, (self.cost - self.bound) / self.cost) if self.cost > 0 else 0.0

    def worth(self, move: _Move, found: Choice | None) -> Worth:
        """What the move saves, by the plan found with it."""
        near = _SAME * max(1.0, abs(self.cost))
        saving, most, verdict = 0.0, None, "unknown"
        if found is not None:
            cost = min(found.cost, self.cost + float(move.kept or 0))
            saving, most = self.cost - cost, self.cost - found.bound
            verdict = self._verdict(saving, most, cost, near)
        return Worth(
            limit=move.limit,
            item=move.item,
            asked=move.asked,
            step=move.step,
            unit=move.unit,
            saving=money.quantity(0.0 if abs(saving) <= near else saving),
            at_most=None if most is None else money.quantity(max(most, saving, 0.0)),
            verdict=verdict,  # type: ignore[arg-type]
            how=move.how,
            used=move.used,
            kept=move.kept,
        )

    def _verdict(self, saving: float, most: float, cost: float, near: float) -> Verdict:
        if most < -near or cost < self.bound - near:
            return "binds"
        if abs(saving) > near:
            return "found"
        return "none" if most <= near else "unknown"

    def with_deadlines(self, groups: set[str] | None, later: float) -> Problem:
        """Deadlines of these jobs (None: of all) so many hours later, never past the schedule's end."""
        calendar, end = self.parts.calendar, self.parts.calendar.edge_hours[-1]
        jobs = []
        for run, job in zip(self.parts.runs, self.parts.built.problem.jobs, strict=True):
            moved = run.deadline is not None and (groups is None or group_of(run.id) in groups)
            deadline = min(end, (job.deadline or end) + later) if moved else job.deadline
            jobs.append(replace(job, deadline=deadline, months=calendar.window(job.release, deadline)))
        return self._within(replace(self.parts.built.problem, jobs=tuple(jobs)), self.most_hours)

    def with_time(self, later: float) -> Problem:
        assert self.most_hours is not None
        return self._within(self.parts.built.problem, self.most_hours + later)

    def _within(self, problem: Problem, most_hours: float | None) -> Problem:
        if most_hours is None:
            return problem
        calendar, jobs = self.parts.calendar, []
        for job in problem.jobs:
            deadline = min(job.deadline or calendar.edge_hours[-1], job.origin + most_hours)
            jobs.append(replace(job, deadline=deadline, months=calendar.window(job.release, deadline)))
        return replace(problem, jobs=tuple(jobs))

    def solved(self, problem: Problem) -> Choice | None:
        """The cheapest plan found in the time given; None where no plan keeps every limit."""
        from planner.optimizer.relax import ProblemInfeasible
        from planner.optimizer.schedule_front import front

        try:
            return front(problem, points=1, seconds=self.seconds)[0]
        except ProblemInfeasible:
            return None


def _moves(search: _Search) -> Iterator[_Move]:
    yield from _deadlines(search)
    yield from _capacity(search)
    yield from _money(search)
    yield _electricity(search)


def _deadlines(search: _Search) -> Iterator[_Move]:
    file = search.parts.file
    groups = [job.id for job in file.jobs if job.deadline is not None]
    if file.objective != "lateness":
        for group in groups:
            yield _Move(
                "deadline", group, "as in the schedule", Decimal(int(DAY)), "h",
                f"deadlines of {group} {DAY:g} h later", use.nearest_deadline(search.plan, group),
                lambda group=group: search.with_deadlines({group}, DAY),  # type: ignore[misc]
            )  # fmt: skip
    if search.most_hours is not None:
        yield _Move(
            "time", f"{file.objective} of this point", f"{search.most_hours:.1f} h", Decimal(int(DAY)), "h",
            f"the whole plan may take {DAY:g} h longer", "all of it", lambda: search.with_time(DAY),
        )  # fmt: skip


def _capacity(search: _Search) -> Iterator[_Move]:
    problem, plan = search.problem, search.plan
    for place, pool in enumerate(problem.pools):
        sizes = {o.gpus for job in problem.jobs for o in job.options if o.pool == place}
        if not sizes:
            continue
        step = min((size - pool.gpus for size in sizes if size > pool.gpus), default=min(sizes))
        pools = _changed(problem.pools, place, replace(pool, gpus=pool.gpus + step))
        peak = use.most_gpus(plan, search.parts.file.cloud.quotas[place])
        yield _Move(
            "quota", pool.id, f"{pool.gpus} GPUs", Decimal(step), "GPU",
            f"{step} more, as one more machine asks for", f"{peak} at once at most",
            lambda pools=pools: replace(problem, pools=pools),  # type: ignore[misc]
        )  # fmt: skip
    for place, rig in enumerate(problem.rigs):
        if rig.most > rig.at_hand:
            rigs = _changed(problem.rigs, place, replace(rig, most=rig.most + 1))
            have = rig.at_hand + use.bought(plan, rig.id)
            yield _Move(
                "rigs", rig.id, f"{rig.most} at most", Decimal(1), "rig", "one more may be bought", f"{have}",
                lambda rigs=rigs: replace(problem, rigs=rigs),  # type: ignore[misc]
            )  # fmt: skip
    if problem.watts is not None and problem.rigs:
        step = max(1, round(max(rig.watts for rig in problem.rigs)))
        watts = problem.watts + step
        drawn = sum((rig.at_hand + use.bought(plan, rig.id)) * rig.watts for rig in problem.rigs)
        yield _Move(
            "power", "", f"{problem.watts:g} W", Decimal(step), "W", "room for one more of the largest rig",
            f"{drawn:g} W", lambda: replace(problem, watts=watts),
        )  # fmt: skip


def _money(search: _Search) -> Iterator[_Move]:
    """Months a hundredth higher. The budget of all is no row: least cost is what is sought anyway."""
    months, monthly = search.problem.month_budget, search.parts.file.monthly_budget
    if months is None or monthly is None:
        return
    step = money.quantity(monthly[0] / 100)
    raised = tuple(None if month is None else month + float(step) for month in months)
    yield _Move(
        "monthly budget", "", f"{monthly[0]:f} {monthly[1]}", step, monthly[1], "a hundredth more each month",
        f"{use.dearest_month(search.plan, search.parts.calendar):.2f} in the dearest month",
        lambda: replace(search.problem, month_budget=raised),
    )  # fmt: skip


def _electricity(search: _Search) -> _Move:
    cent = Decimal("0.01")
    kwh = Decimal(search.plan["energy_kwh"] or 0)

    def dearer() -> Problem:
        jobs = tuple(
            replace(
                job,
                options=tuple(
                    replace(option, cost=option.cost + float(cent) * (option.energy_kwh or 0.0))
                    for option in job.options
                ),
            )
            for job in search.problem.jobs
        )
        return replace(search.problem, jobs=jobs)

    unit = f"0.01 {search.parts.file.currency}/kWh"
    return _Move(
        "electricity", "", "as in the schedule", Decimal(1), unit, "a hundredth dearer", f"{kwh:.0f} kWh",
        dearer, kept=money.quantity(kwh * cent),
    )  # fmt: skip


def _changed(all: Sequence[Any], place: int, new: Any) -> tuple[Any, ...]:
    return tuple(new if number == place else each for number, each in enumerate(all))
