"""A schedule as numbers: runs, options, rigs, commitments and quotas of one Problem.

Money becomes float here; the exact sums are made afterwards from the lines of what was chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from planner.errors import UsageError
from planner.optimizer.problem import Commitment, Job, Option, Pool, Problem

from .dates import Calendar
from .file import Quota, ScheduleFile
from .options import Choosable, Work, converted
from .rigs import Rigs
from .runs import Run


@dataclass(frozen=True, slots=True)
class Source:
    """Where an option of the Problem comes from. commitment: index of the promised spend it draws on."""

    choosable: Choosable
    commitment: int | None


@dataclass(frozen=True, slots=True)
class Built:
    """The Problem, and for each run the sources of its options, in the same order."""

    problem: Problem
    sources: tuple[tuple[Source, ...], ...]


def build(
    file: ScheduleFile, calendar: Calendar, runs: Sequence[Run], works: Sequence[Work], rigs: Rigs
) -> Built:
    """Raises UsageError where two quotas cover one offer."""
    by_work: dict[int, tuple[tuple[Option, ...], tuple[Source, ...]]] = {}
    jobs, sources = [], []
    for run, work in zip(runs, works, strict=True):
        if id(work) not in by_work:
            by_work[id(work)] = _options(work, file, rigs)
        options, source = by_work[id(work)]
        jobs.append(_job(run, options, file, calendar))
        sources.append(source)
    return Built(_problem(file, calendar, jobs, rigs), tuple(sources))


def _problem(file: ScheduleFile, calendar: Calendar, jobs: Sequence[Job], rigs: Rigs) -> Problem:
    budget = converted(file.budget, file, "budget")
    monthly = converted(file.monthly_budget, file, "monthly_budget")
    fixed = rigs.fixed_by_month
    return Problem(
        month_hours=calendar.month_hours,
        jobs=tuple(jobs),
        rigs=rigs.types,
        commitments=tuple(_commitments(file, calendar)),
        pools=tuple(Pool(_pool_name(quota), quota.gpus) for quota in file.cloud.quotas),
        availability=float(file.hardware.availability),
        budget=None if budget is None else float(budget - sum(fixed, Decimal(0))),
        month_budget=None if monthly is None else tuple(float(monthly - each) for each in fixed),
        watts=None if file.hardware.power_limit is None else float(file.hardware.power_limit),
        objective="largest",
    )


def _job(run: Run, options: tuple[Option, ...], file: ScheduleFile, calendar: Calendar) -> Job:
    """Every run ends within the schedule's months; for lateness its deadline only measures."""
    end = calendar.edge_hours[-1]
    late = file.objective == "lateness"
    asked = end if run.deadline is None or late else run.deadline
    origin = {"finish": 0.0, "turnaround": run.release, "lateness": run.deadline or end}[file.objective]
    return Job(
        id=run.id,
        release=run.release,
        deadline=asked,
        origin=origin,
        months=calendar.window(run.release, asked),
        predecessors=run.predecessors,
        options=options,
        weight=float(run.job.priority),
    )


def _options(work: Work, file: ScheduleFile, rigs: Rigs) -> tuple[tuple[Option, ...], tuple[Source, ...]]:
    found: list[tuple[Option, Source]] = []
    for each in work.choosable:
        rig = rigs.index.get(each.row.run.variant.machine.id) if each.owned else None
        if each.owned and rig is None:
            continue
        found.append((_option(each, rig, file.cloud.quotas), Source(each, None)))
        if each.row.model.id != "on_demand":
            continue
        for number, commitment in enumerate(file.cloud.commitments):
            if commitment.provider == each.row.run.variant.machine.provider:
                found.append((_committed(each, number, file.cloud.quotas), Source(each, number)))
    kept = _cheapest(found)
    return tuple(option for option, _ in kept), tuple(source for _, source in kept)


def _option(each: Choosable, rig: int | None, quotas: Sequence[Quota]) -> Option:
    variant = each.row.run.variant
    return Option(
        id=each.id,
        hours=float(each.row.hours),
        cost=float(each.cost),
        rig=rig,
        rigs=variant.count if rig is not None else 0,
        gpus=variant.gpu_count,
        pool=None if rig is not None else _pool(each, quotas),
        energy_kwh=None if each.energy_kwh is None else float(each.energy_kwh),
    )


def _committed(each: Choosable, number: int, quotas: Sequence[Quota]) -> Option:
    """The same hours drawn from a promised spend: nothing is paid for them directly."""
    return Option(
        id=f"{each.id}@commitment-{number + 1}",
        hours=float(each.row.hours),
        cost=0.0,
        gpus=each.row.run.variant.gpu_count,
        pool=_pool(each, quotas),
        commitment=number,
        list_spend=float(each.cost),
    )


def _cheapest(found: Sequence[tuple[Option, Source]]) -> list[tuple[Option, Source]]:
    """Of rented options in one pool and under one commitment, those that none beats in hours and money.

    Exact: they differ in nothing else that a plan is limited by, but for GPUs where a pool counts them.
    """
    groups: dict[object, list[tuple[Option, Source]]] = {}
    for each in found:
        option = each[0]
        gpus = option.gpus if option.pool is not None else 0
        groups.setdefault((option.rig, option.rigs, option.commitment, option.pool, gpus), []).append(each)
    kept: list[tuple[Option, Source]] = []
    for group in groups.values():
        best = float("inf")
        for option, source in sorted(group, key=lambda g: (g[0].hours, g[0].cost + g[0].list_spend, g[0].id)):
            if option.cost + option.list_spend < best:
                best = option.cost + option.list_spend
                kept.append((option, source))
    return kept


def _pool(each: Choosable, quotas: Sequence[Quota]) -> int | None:
    machine, region = each.row.run.variant.machine, each.row.sale.region
    found = [
        number
        for number, quota in enumerate(quotas)
        if quota.provider in (None, machine.provider)
        and quota.gpu in (None, machine.gpu.id)
        and quota.region in (None, region)
    ]
    if len(found) > 1:
        both = " and ".join(f"cloud.quotas[{number}]" for number in found[:2])
        raise UsageError(f"{both} both cover {each.id}: make them exclude each other", "cloud")
    return found[0] if found else None


def _pool_name(quota: Quota) -> str:
    return " ".join(filter(None, (quota.provider, quota.gpu, quota.region))) or "all rented GPUs"


def _commitments(file: ScheduleFile, calendar: Calendar) -> list[Commitment]:
    found = []
    for number, each in enumerate(file.cloud.commitments):
        place = f"cloud.commitments[{number}]"
        most = converted(each.most, file, f"{place}.most")
        held = converted(each.held, file, f"{place}.held") or Decimal(0)
        step = converted(each.step, file, f"{place}.step") or Decimal(0)
        found.append(
            Commitment(
                id=each.id,
                discount=float(each.discount),
                term_hours=calendar.edge_hours[-1],
                step=float(step),
                held=float(held),
                most=float("inf") if most is None else float(most),
            )
        )
    return found


def rig_counts(file: ScheduleFile) -> Mapping[str, int]:
    """How many of each rig there may be at most."""
    counts: dict[str, int] = {}
    for rig in file.hardware.at_hand:
        counts[rig.rig] = counts.get(rig.rig, 0) + rig.count
    for buy in file.hardware.may_buy:
        counts[buy.rig] = counts.get(buy.rig, 0) + buy.most
    return counts
