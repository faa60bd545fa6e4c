"""From options and starts to a Choice: the fewest rigs, the lowest levels and the cost they come to."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .flat import SAME_HOURS, month_starts
from .problem import Choice, Commitment, Problem
from .profile_of_use import spread


def choice_of(
    problem: Problem,
    picks: Sequence[int],
    starts: Sequence[float],
    time: float,
    bought: Sequence[Sequence[int]] | None = None,
    bound: float | None = None,
    proven: bool = False,
) -> Choice | None:
    """The cheapest Choice for these runs; None where budget, month budgets, power or a level forbid it.

    bought: kept as it is where months have budgets, since buying in another month moves cash; otherwise the
    rigs that the runs need, each bought in its cheapest month. bound: None is the cost itself.
    """
    needed = purchases(problem, picks, starts)
    if needed is None:
        return None
    if problem.month_budget is not None and bought is not None:
        needed = tuple(tuple(counts) for counts in bought)
    levels = level_needed(problem, picks, starts)
    if levels is None or not power_kept(problem, needed):
        return None
    cost = cost_of(problem, picks, needed, levels)
    if problem.budget is not None and cost > problem.budget * (1 + 1e-9):
        return None
    if problem.month_budget is not None and not _cash_kept(problem, picks, starts, needed, levels):
        return None
    return Choice(
        option=tuple(picks),
        start=tuple(float(start) for start in starts),
        bought=needed,
        level=levels,
        cost=cost,
        time=time,
        bound=cost if bound is None else min(bound, cost),
        proven=proven,
    )


def cost_of(
    problem: Problem, picks: Sequence[int], bought: Sequence[Sequence[int]], levels: Sequence[float]
) -> float:
    """Σ option cost + Σ bought × net_cost + Σ (level − held) × term_hours. [currency]"""
    runs = [job.options[pick].cost for job, pick in zip(problem.jobs, picks, strict=True)]
    rigs = [
        count * (kind.net_cost[month] or 0.0)
        for kind, counts in zip(problem.rigs, bought, strict=True)
        for month, count in enumerate(counts)
        if count
    ]
    fees = [(level - c.held) * c.term_hours for c, level in zip(problem.commitments, levels, strict=True)]
    return math.fsum((*runs, *rigs, *fees))


def purchases(
    problem: Problem, picks: Sequence[int], starts: Sequence[float]
) -> tuple[tuple[int, ...], ...] | None:
    """Rigs to buy by type and month of first use, so that every run has its rigs; None: cannot be had.

    The n-th rig must work from the first moment n are held; it is bought in the cheapest month up to then.
    """
    opens = month_starts(problem)
    found = []
    for rig, kind in enumerate(problem.rigs):
        runs = []
        for job, pick, start in zip(problem.jobs, picks, starts, strict=True):
            option = job.options[pick]
            if option.rig == rig and option.hours > 0:
                runs.append((start, start + option.hours / problem.availability, option.rigs))
        counts = [0] * len(problem.month_hours)
        covered = kind.at_hand
        for start, _, _ in sorted(runs):
            used = sum(n for s, e, n in runs if s <= start + SAME_HOURS and e > start + 2 * SAME_HOURS)
            if used <= covered:
                continue
            months = [
                month
                for month, cost in enumerate(kind.net_cost)
                if cost is not None and opens[month] <= start + SAME_HOURS
            ]
            if not months or used > max(kind.most, kind.at_hand):
                return None
            best = min(months, key=lambda month: (kind.net_cost[month] or 0.0, -month))
            counts[best] += used - covered
            covered = used
        found.append(tuple(counts))
    return tuple(found)


def level_needed(problem: Problem, picks: Sequence[int], starts: Sequence[float]) -> tuple[float, ...] | None:
    """Lowest level of each commitment that covers what is drawn in every month; None above its `most`."""
    opens = month_starts(problem)
    levels = []
    for number, commitment in enumerate(problem.commitments):
        drawn = [0.0] * len(problem.month_hours)
        for job, pick, start in zip(problem.jobs, picks, starts, strict=True):
            option = job.options[pick]
            if option.commitment == number:
                for month, part in spread(opens, start, option.hours, option.list_spend):
                    drawn[month] += part
        share = (1 - commitment.discount) / commitment.load_factor
        level = max(
            (spend * share / hours for spend, hours in zip(drawn, problem.month_hours, strict=True)),
            default=0.0,
        )
        lifted = lifted_level(commitment, level)
        if lifted is None:
            return None
        levels.append(lifted)
    return tuple(levels)


def lifted_level(commitment: Commitment, level: float) -> float | None:
    """The lowest allowed level of at least `level`; None where there is none. [currency/h]"""
    if level <= commitment.held * (1 + 1e-9):
        return commitment.held
    if commitment.step > 0:
        level = commitment.step * math.ceil(level / commitment.step - 1e-9)
    return level if level <= commitment.most * (1 + 1e-9) else None


def power_kept(problem: Problem, bought: Sequence[Sequence[int]]) -> bool:
    """Whether all rigs together keep the power limit; what is at hand alone always may stand."""
    if problem.watts is None or not any(sum(counts) for counts in bought):
        return True
    rigs = zip(problem.rigs, bought, strict=True)
    return sum(kind.watts * (kind.at_hand + sum(counts)) for kind, counts in rigs) <= problem.watts * (
        1 + 1e-9
    )


def _cash_kept(
    problem: Problem,
    picks: Sequence[int],
    starts: Sequence[float],
    bought: Sequence[Sequence[int]],
    levels: Sequence[float],
) -> bool:
    opens = month_starts(problem)
    cash = [0.0] * len(problem.month_hours)
    for job, pick, start in zip(problem.jobs, picks, starts, strict=True):
        for month, part in spread(opens, start, job.options[pick].hours, job.options[pick].cost):
            cash[month] += part
    for kind, counts in zip(problem.rigs, bought, strict=True):
        for month, count in enumerate(counts):
            cash[month] += count * (kind.net_cost[month] or 0.0)
    for c, level in zip(problem.commitments, levels, strict=True):
        for month, hours in enumerate(problem.month_hours):
            cash[month] += (level - c.held) * c.term_hours * hours / problem.horizon_hours
    limits = problem.month_budget or ()
    return all(
        most is None or paid <= most + 1e-7 * max(1.0, most) for paid, most in zip(cash, limits, strict=True)
    )
