"""A schedule's front as one screen of text: what each plan costs, when it ends, what it buys and rents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from planner.reports import figures
from planner.reports.lists import fitting, sentence, table
from planner.reports.look import Look
from planner.reports.tabular import Cell

DROPPED = ("upfront", "chance", "range", "gap")
"""Columns that make room, first to go first."""

_RIGHT = frozenset({"cost", "range", "upfront", "time", "chance", "gap"})
_TIME = {"finish": "ENDS AFTER", "turnaround": "LONGEST", "lateness": "LATEST"}
_SAID = {
    "finish": "hours from the schedule's start to the last run's end",
    "turnaround": "the longest that any run takes from its release",
    "lateness": "how late the latest run is; below 0: early",
}
_SHOWN_ASSUMPTIONS = 3


def schedule_table(document: Mapping[str, Any], look: Look) -> str:
    """A schedule document as text."""
    rows = [_cells(point, document) for point in document["front"]]
    headings = {
        "plan": "PLAN",
        "kind": "KIND",
        "cost": f"COST {document['currency']}",
        "range": "80 % RANGE",
        "upfront": "UPFRONT",
        "time": _TIME[document["objective"]],
        "ends": "LAST ENDS",
        "chance": "ON TIME",
        "gap": "GAP",
        "buys": "BUYS",
        "rents": "RENTS",
    }
    filled = [key for key in headings if any(row[key] for row in rows)]
    widths = {key: max(len(headings[key]), *(len(row[key]) for row in rows)) for key in filled}
    keys = fitting(filled, widths.__getitem__, look, DROPPED)
    body = table(
        [headings[key] for key in keys],
        [[row[key] for key in keys] for row in rows],
        {place for place, key in enumerate(keys) if key in _RIGHT},
        look,
        ["bold" if point["point"] == document["chosen"] else "" for point in document["front"]],
    )
    above = "".join(sentence(line, look) for line in header(document))
    below = "".join(sentence(line, look) for line in footer(document))
    return f"{above}\n{body}\n{below}"


def header(document: Mapping[str, Any]) -> tuple[str, ...]:
    """What was planned, and on which prices."""
    jobs = len(document["front"][0]["jobs"])
    limits = "".join(f" · {key.replace('_', ' ')} {value}" for key, value in document["limits"].items())
    first = _local(document["starts"], document)
    last = _local(document["ends"], document) - timedelta(days=1)
    oldest = document["oldest_price"]
    aged = "" if oldest is None else f", oldest of {oldest[:10]}"
    return (
        f"{document['name']} · {jobs} runs · {first:%Y-%m} to {last:%Y-%m}{limits}",
        f"Prices as of {document['as_of'][:10]}: {len(document['prices'])} used{aged} · "
        f"{document['currency']} excl. tax unless the file says so",
    )


def footer(document: Mapping[str, Any]) -> tuple[str, ...]:
    """What the columns mean, which plan would be booked, and what to do next."""
    chosen = document["chosen"]
    told = [f"{_TIME[document['objective']]}: {_SAID[document['objective']]}."]
    if chosen is None:
        told.append("No plan keeps every limit at the certainty asked for.")
    else:
        told.append(f"Plan {chosen} is the cheapest that keeps every limit: reports book it.")
    loose = [point["point"] for point in document["front"] if not point["proven"]]
    if loose:
        named = ", ".join(map(str, loose))
        told.append(f"Not proven optimal: {named}; GAP is how much cheaper a plan as fast could be.")
    texts = [each["text"] for each in document["assumptions"]]
    shown = "; ".join(texts[:_SHOWN_ASSUMPTIONS])
    more = len(texts) - _SHOWN_ASSUMPTIONS
    told.append(f"Assumed: {shown}{f'; and {more} more (--format json)' if more > 0 else ''}.")
    told.append("Next: -o plan.json, then planner report finance plan.json -o books/")
    return tuple(told)


def schedule_rows(document: Mapping[str, Any]) -> list[dict[str, Cell]]:
    """One row a point, figures in full, for CSV."""
    currency = document["currency"]
    return [
        {
            "plan": point["point"],
            "kind": point["kind"],
            "currency": currency,
            "cost_p10": point["cost"]["p10"],
            "cost_p50": point["cost"]["p50"],
            "cost_p90": point["cost"]["p90"],
            "present_value": point["present_value"],
            "cash_upfront": point["cash_upfront"],
            "time_hours_p10": point["time_hours"]["p10"],
            "time_hours_p50": point["time_hours"]["p50"],
            "time_hours_p90": point["time_hours"]["p90"],
            "finish": point["finish"],
            "late_hours": point["late_hours"],
            "energy_kwh": point["energy_kwh"],
            "co2_kg": point["co2_kg"],
            "chance_on_time": point["risk"]["on_time"],
            "chance_in_budget": point["risk"]["in_budget"],
            "cost_cvar95": point["risk"]["cost_cvar95"],
            "gap": point["gap"],
            "proven": point["proven"],
            "meets_limits": point["meets_limits"],
            "buys": buys(point),
            "rents": rents(point),
        }
        for point in document["front"]
    ]


def buys(point: Mapping[str, Any]) -> str:
    """2 × rig-4x-rtx-4090 2027-01"""
    told = [f"{each['count']} × {each['rig']} {each['usable'][:7]}" for each in point["purchases"]]
    told += [
        f"{figures.money(Decimal(each['level_per_hour']))}/h {each['id']}" for each in point["commitments"]
    ]
    return ", ".join(told)


def rents(point: Mapping[str, Any]) -> str:
    """Share of the runs that are rented, and where most."""
    jobs = point["jobs"]
    rented = [job for job in jobs if job["provider"] != "own"]
    if not rented:
        return "none"
    (where, _), *_ = Counter(job["provider"] for job in rented).most_common(1)
    return f"{len(rented)} of {len(jobs)} runs, most {where}"


def _local(moment: str, document: Mapping[str, Any]) -> datetime:
    """An instant of the document in the schedule's own time zone."""
    return datetime.fromisoformat(moment).astimezone(ZoneInfo(document["time_zone"]))


def _cells(point: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, str]:
    cost = {key: Decimal(value) for key, value in point["cost"].items()}
    on_time = point["risk"]["on_time"]
    upfront = Decimal(point["cash_upfront"])
    return {
        "plan": f"{'★' if point['point'] == document['chosen'] else ' '} {point['point']}",
        "kind": point["kind"],
        "cost": figures.money(cost["p50"]),
        "range": figures.money_range(cost["p10"], cost["p90"]),
        "upfront": figures.money(upfront) if upfront else "",
        "time": f"{figures.hours(point['time_hours']['p50'])} h",
        "ends": f"{_local(point['finish'], document):%Y-%m-%d}",
        "chance": "" if on_time is None else figures.share(on_time),
        "gap": f"{point['gap'] * 100:.1f} %" if point["gap"] >= 5e-4 else ("" if point["proven"] else "0 %"),
        "buys": buys(point),
        "rents": rents(point).partition(" runs")[0],
    }
