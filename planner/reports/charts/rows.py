"""The rows that charts draw, made of a plan. Floats only here: to place ink, not to add money up."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from planner.reports.plan_file import Document, is_schedule, name_of, number_of

from .cash import KINDS

Plan = Mapping[str, Any]
Row = dict[str, Any]
_MOST_DOTS = 300


def zone(document: Document) -> ZoneInfo:
    return ZoneInfo(document.get("time_zone") or "UTC")


def local(text: str, at: ZoneInfo) -> datetime:
    """A moment of a document on that zone's clock."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(at)


def pareto_rows(document: Document, chosen: int) -> list[Row]:
    schedule = is_schedule(document)
    plans = list(document["front"] if schedule else document["options"])
    if not schedule:
        front = [plan for plan in plans if plan["pareto"] or number_of(plan) == chosen]
        plans = front + [plan for plan in plans if plan not in front][:_MOST_DOTS]
    return _labelled([_dot(plan, schedule, chosen) for plan in plans])


def _labelled(dots: list[Row]) -> list[Row]:
    """The dots with the number that is written beside each: none where another's would stand under it."""
    front = sorted((dot for dot in dots if dot["front"]), key=lambda dot: (not dot["chosen"], dot["cost"]))
    widths = {axis: _log_width([dot[axis] for dot in front]) for axis in ("hours", "cost")}
    placed: list[Row] = []
    for dot in front:
        apart = all(
            abs(math.log(dot["hours"] / other["hours"])) > 0.025 * widths["hours"]
            or abs(math.log(dot["cost"] / other["cost"])) > 0.06 * widths["cost"]
            for other in placed
        )
        if apart:
            placed.append(dot)
    shown = {dot["plan"] for dot in placed}
    return [{**dot, "label": dot["plan"] if dot["plan"] in shown else ""} for dot in dots]


def _log_width(values: Sequence[float]) -> float:
    return math.log(max(values) / min(values)) if values else 0.0


def _dot(plan: Plan, schedule: bool, chosen: int) -> Row:
    cost, hours = plan["cost"], plan["time_hours"]
    return {
        "plan": str(number_of(plan)),
        "name": name_of(plan),
        "kind": plan["kind"] if schedule else plan["purchase_model"].replace("_", " "),
        "cost": float(cost["p50"]),
        "cost_low": float(cost["p10"]),
        "cost_high": float(cost["p90"]),
        "hours": hours["p50"],
        "hours_low": hours["p10"],
        "hours_high": hours["p90"],
        "front": schedule or plan["pareto"],
        "chosen": number_of(plan) == chosen,
    }


def gantt_rows(document: Document, plan: Plan, most: int) -> list[Row]:
    """One row a run while there are at most `most` runs, else one row a place."""
    at = zone(document)
    jobs = sorted(plan["jobs"], key=lambda job: (job["provider"] != "own", job["hardware"], job["start"]))
    by_place = len(jobs) > most
    return [
        {
            "job": job["id"],
            "row": place(job) if by_place else job["id"],
            "place": place(job),
            "kind": "owned" if job["provider"] == "own" else "rented",
            "workload": job["workload"],
            "start": f"{local(job['start'], at):%Y-%m-%dT%H:%M:%S}",
            "end": f"{local(job['end'], at):%Y-%m-%dT%H:%M:%S}",
            "deadline": f"{local(job['deadline'], at):%Y-%m-%dT%H:%M:%S}" if job["deadline"] else None,
            "deadline_text": f"{local(job['deadline'], at):%Y-%m-%d %H:%M}" if job["deadline"] else "none",
            "hours": job["time_hours"]["p50"],
            "cost_text": f"{Decimal(job['cost']['p50']):,.2f} {document['currency']}",
        }
        for job in jobs
    ]


def place(job: Plan) -> str:
    owner = "own" if job["provider"] == "own" else job["provider"]
    times = f"{job['count']} × " if job["count"] > 1 else ""
    return f"{owner} {times}{job['hardware']}"


def months(document: Document) -> list[str]:
    """Every month of the schedule as YYYY-MM, in its own time zone."""
    at = zone(document)
    month, last = local(document["starts"], at), local(document["ends"], at) - timedelta(seconds=1)
    found = []
    while (month.year, month.month) <= (last.year, last.month):
        found.append(f"{month:%Y-%m}")
        month = (month.replace(day=1) + timedelta(days=32)).replace(day=1)
    return found


def cash_by_month(document: Document, plan: Plan) -> dict[tuple[str, str], Decimal]:
    """(month, expenditure) → what falls due then, exactly. [currency]"""
    at = zone(document)
    sums: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for payment in plan["ledger"]:
        sums[f"{local(payment['due'], at):%Y-%m}", payment["expenditure"]] += Decimal(payment["amount"])
    return dict(sorted(sums.items()))


def cash_rows(document: Document, plan: Plan) -> tuple[list[Row], list[Row]]:
    sums = cash_by_month(document, plan)
    rows = [
        {"month": month, "expenditure": kind, "amount": float(amount), "rank": KINDS.index(kind)}
        for (month, kind), amount in sums.items()
    ]
    return rows, [
        {"month": month, "net": float(net), "so_far": float(so_far)}
        for month, net, so_far in totals(document, plan)
    ]


def totals(document: Document, plan: Plan) -> Iterator[tuple[str, Decimal, Decimal]]:
    """(month, net, sum so far) of every month, exactly. [currency]"""
    sums = cash_by_month(document, plan)
    so_far = Decimal(0)
    for month in sorted({*months(document), *(month for month, _ in sums)}):
        net = sum((amount for (of, _), amount in sums.items() if of == month), Decimal(0))
        so_far += net
        yield month, net, so_far


def _hours_by_month(start: datetime, end: datetime) -> Iterator[tuple[str, float]]:
    while start < end:
        month_end = (start.replace(day=1, hour=0, minute=0, second=0) + timedelta(days=32)).replace(day=1)
        until = min(end, month_end)
        yield f"{start:%Y-%m}", (until.timestamp() - start.timestamp()) / 3600
        start = until


def used_rows(document: Document, plan: Plan) -> list[Row]:
    """GPU-hours that runs occupy, by month and place. [GPU-h]"""
    at, sums = zone(document), defaultdict[tuple[str, str], float](float)
    for job in plan["jobs"]:
        for month, hours in _hours_by_month(local(job["start"], at), local(job["end"], at)):
            sums[month, place({**job, "count": 1})] += hours * job["gpu_count"]
    return [{"month": m, "place": p, "gpu_hours": hours} for (m, p), hours in sorted(sums.items())]


def owned_rows(document: Document, plan: Plan) -> list[Row]:
    """GPU-hours that the rigs bought could give, by month; not those at hand. [GPU-h]"""
    at, sums = zone(document), defaultdict[str, float](float)
    gpus = {job["hardware"]: job["gpu_count"] / job["count"] for job in plan["jobs"]}
    for bought in plan["purchases"]:
        start, end = local(bought["usable"], at), local(bought["sold"] or document["ends"], at)
        for month, hours in _hours_by_month(start, end):
            sums[month] += hours * bought["count"] * gpus.get(bought["rig"], 0)
    return [{"month": month, "gpu_hours": hours} for month, hours in sorted(sums.items()) if hours]


def memory_rows(memory: Mapping[str, Any]) -> list[Row]:
    """The parts of a GPU's memory, largest first, each beginning where the last one ended. [GiB]"""
    rows, so_far = [], 0.0
    for part, count in sorted(memory["breakdown"].items(), key=lambda pair: -pair[1]):
        gib = count / (1 << 30)
        if gib < 0.005:
            continue
        rows.append(
            {
                "part": part.replace("_", " "),
                "gib": gib,
                "from": so_far,
                "to": so_far + gib,
                "text": f"{gib:.2f}",
            }
        )
        so_far += gib
    return rows


def price_rows(prices: Sequence[Mapping[str, Any]]) -> list[Row]:
    oldest = sorted(prices, key=lambda used: (-used["age_days"], used["id"]))[:40]
    return [
        {
            "item": " ".join(
                part for part in (used["provider"], used["item"], used["region"], used["contract"]) if part
            ),
            "age_days": used["age_days"],
            "zero": 0,
            "quality": used["quality"],
            "source": used["source"],
            "observed": used["observed_at"][:10],
            "price": f"{used['amount']} {used['currency']} per {used['unit']}",
        }
        for used in oldest
    ]
