"""Every chart by name: which a plan has, its title, what it says in words, and why one is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from planner.reports.plan_file import Document, is_schedule, name_of, number_of

from . import rows, what_if

Plan = Mapping[str, Any]
_ONE_RUN = "one run has no calendar; plan a schedule to see it"


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of a plan. spec: Vega-Lite, without its theme; None where `said` tells why there is none."""

    name: str
    title: str
    said: str
    spec: dict[str, Any] | None


def chart(name: str, document: Document, plan: Plan) -> Chart:
    """The chart of that name (a key of CHARTS) for one plan of the document."""
    title, make = CHARTS[name]
    made = make(document, plan)
    if isinstance(made, str):
        return Chart(name, title, made, None)
    spec, said = made
    return Chart(name, title, said, spec)


Made = tuple[dict[str, Any], str] | str


def _pareto(document: Document, plan: Plan) -> Made:
    from .pareto import pareto

    found = rows.pareto_rows(document, number_of(plan))
    said = f"Numbered plans are the front: none is both cheaper and faster. Ringed: {name_of(plan)}."
    return pareto(found, document["currency"]), said


def _gantt(document: Document, plan: Plan) -> Made:
    from .gantt import MOST_ROWS, gantt

    if not is_schedule(document):
        return _ONE_RUN
    found = rows.gantt_rows(document, plan, MOST_ROWS)
    return gantt(found), f"{len(found)} runs, times in {rows.zone(document)}. A diamond is a deadline."


def _cash(document: Document, plan: Plan) -> Made:
    from .cash import cash

    if not is_schedule(document):
        return _ONE_RUN
    bars, line = rows.cash_rows(document, plan)
    return cash(
        bars, line, document["currency"]
    ), "What falls due each month; below zero is money that comes in."


def _capacity(document: Document, plan: Plan) -> Made:
    from .capacity import capacity

    if not is_schedule(document):
        return _ONE_RUN
    owned = rows.owned_rows(document, plan)
    marks = " Marks: what the rigs bought could give." if owned else ""
    return capacity(rows.used_rows(document, plan), owned), f"GPU-hours that runs occupy.{marks}"


def _breakeven(document: Document, plan: Plan) -> Made:
    from .breakeven import breakeven

    schedule = is_schedule(document)
    found = what_if.schedule_breakeven(document) if schedule else what_if.run_breakeven(document)
    if isinstance(found, str):
        return found
    title = "month" if schedule else "runs"
    return breakeven(found[0], "" if schedule else title, document["currency"], schedule), found[1]


def _tornado(document: Document, plan: Plan) -> Made:
    from .tornado import tornado

    found = what_if.tornado_rows(document, plan)
    said = "The plan held still, one driver moved at a time: prices 20 % down and up, speed over its band."
    return tornado(found, float(plan["cost"]["p50"]), document["currency"]), said


def _memory(document: Document, plan: Plan) -> Made:
    from .memory import memory

    held = fullest(document, plan)
    if held is None:
        return "no run of this plan carries its memory"
    name, room = held
    found = rows.memory_rows(room)
    full = room["capacity_bytes"] / (1 << 30)
    held_gib = sum(row["gib"] for row in found)
    said = f"{name}: {held_gib:.1f} of {full:.1f} GiB at the peak ({room['peak_phase']}), P50."
    return memory(found, full, sum(row["gib"] for row in found)), said


def fullest(document: Document, plan: Plan) -> tuple[str, Mapping[str, Any]] | None:
    """The run whose card is fullest, and its memory; None where no run tells."""
    if not is_schedule(document):
        return f"{document['job']['workload']} on {plan['gpu']}", plan["memory"]
    known = [job for job in plan["jobs"] if job["detail"].get("memory", {}).get("breakdown")]
    if not known:
        return None
    job = max(known, key=lambda each: each["detail"]["memory"]["used_share"])
    return f"the fullest, {job['id']} on {job['gpu']}", job["detail"]["memory"]


def _price_ages(document: Document, plan: Plan) -> Made:
    from .price_ages import price_ages

    used = document["prices"] if is_schedule(document) else plan["prices"]
    if not used:
        return "this plan rests on no stored price"
    found = rows.price_rows(used)
    cut = f" The {len(found)} oldest of {len(used)}." if len(found) < len(used) else ""
    return price_ages(found), f"Oldest first, counted to {document['as_of'][:10]}.{cut}"


CHARTS: dict[str, tuple[str, Callable[[Document, Plan], Made]]] = {
    "pareto": ("Cost against time", _pareto),
    "gantt": ("When each run runs", _gantt),
    "cash": ("Cash by month", _cash),
    "capacity": ("Capacity use by month", _capacity),
    "breakeven": ("Owning beside renting", _breakeven),
    "tornado": ("What moves the cost", _tornado),
    "memory": ("Memory of a GPU", _memory),
    "price-ages": ("Age of the prices", _price_ages),
}
