"""How far a kept plan goes towards each limit, read off the plan itself."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner import money

from .lines import group_of

if TYPE_CHECKING:
    from planner.schedule.dates import Calendar
    from planner.schedule.file import Quota

Plan = Mapping[str, Any]


def nearest_deadline(plan: Plan, group: str) -> str:
    """How long before its deadline the run of that job ends that comes nearest to it."""
    left = {
        job["id"]: datetime.fromisoformat(job["deadline"]) - datetime.fromisoformat(job["end"])
        for job in plan["jobs"]
        if job["deadline"] is not None and group_of(job["id"]) == group
    }
    if not left:
        return ""
    nearest = min(left, key=left.__getitem__)
    hours = left[nearest].total_seconds() / 3600
    return f"{nearest} ends {abs(hours):.1f} h {'before' if hours >= 0 else 'after'} it"


def most_gpus(plan: Plan, quota: Quota) -> int:
    """The most GPUs that the quota counts at one instant."""
    held = [
        job
        for job in plan["jobs"]
        if job["purchase_model"] != "own"
        and quota.provider in (None, job["provider"])
        and quota.gpu in (None, job["gpu"])
        and quota.region in (None, job["region"])
    ]
    instants = [job["start"] for job in held]
    return max(
        (sum(job["gpu_count"] for job in held if job["start"] <= at < job["end"]) for at in instants),
        default=0,
    )


def bought(plan: Plan, rig: str) -> int:
    """Rigs of that type the plan buys."""
    return sum(int(each["count"]) for each in plan["purchases"] if each["rig"] == rig)


def dearest_month(plan: Plan, calendar: Calendar) -> Decimal:
    """The largest cash of one month. [currency]"""
    months: dict[int, list[Decimal]] = {}
    for pay in plan["ledger"]:
        month = calendar.month_of(calendar.hours(datetime.fromisoformat(pay["due"])))
        months.setdefault(month, []).append(Decimal(pay["amount"]))
    return max((money.total(amounts) for amounts in months.values()), default=money.ZERO)
