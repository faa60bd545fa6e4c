"""When a rig pays off, as rows and as a page."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from planner.reports import figures
from planner.reports.lists import listing, sentence
from planner.reports.look import Look
from planner.reports.tabular import Cell

_KEYS = (
    "provider", "hardware", "count", "purchase_model", "region", "throughput_ratio", "throughput_ratio_low",
    "throughput_ratio_high", "utilization", "utilization_low", "utilization_high", "hours_per_year",
    "runs_per_year", "payback_runs", "never",
)  # fmt: skip


def breakeven_rows(document: Mapping[str, Any]) -> list[dict[str, Cell]]:
    """One row for each way of renting; money as numbers."""
    return [
        {
            "rig": document["rig"]["id"],
            **{key: each[key] for key in _KEYS},
            "cost_per_run": Decimal(each["cost_per_run"]),
            "price_per_gpu_hour": Decimal(each["price_per_gpu_hour"]),
        }
        for each in document["against"]
    ]


def header(document: Mapping[str, Any]) -> list[str]:
    """What is owned, and for what."""
    rig, job, currency = document["rig"], document["job"], document["currency"]
    price, resale = (figures.money(Decimal(rig[key])) for key in ("price", "resale_at_end_of_life"))
    standing, added = figures.money(Decimal(rig["fixed_per_year"])), f"{Decimal(rig['added_per_hour']):.4f}"
    hours = figures.hours(rig["rig_hours_per_run"])
    return [
        f"{rig['id']} for {job['workload']}: {price} {currency} new, {resale} back after "
        f"{rig['life_years']:g} years",
        f"standing: {standing} {currency} a year; working: {added} {currency}/h more; {hours} h of the rig "
        f"for each run, {_at_once(rig)}",
    ]


def _at_once(rig: Mapping[str, Any]) -> str:
    if rig["gpu_count"] == 1:
        return "one card"
    return "one run on each card" if rig["runs_at_once"] > 1 else "all its cards on one run"


def breakeven_page(document: Mapping[str, Any], look: Look) -> str:
    """The same for a reader."""
    rows = [_row(each) for each in document["against"]]
    headings = {
        "rented": "RENTED INSTEAD",
        "price": f"{document['currency']}/GPU-H",
        "ratio": "GPU-H FOR ONE OF OURS",
        "run": "A RUN",
        "utilization": "PAYS FROM",
        "band": "80 % BAND",
        "hours": "HOURS/Y",
        "runs": "RUNS/Y",
        "payback": "PAYBACK RUNS",
    }
    page = "".join(sentence(line, look) for line in header(document))
    page += "\n" + listing(rows, headings, look, drop=("price", "band", "run", "ratio"))
    page += "".join(
        "\n" + sentence(f"{_name(e)}: {e['never']}", look) for e in document["against"] if e["never"]
    )
    return page + "".join(["\n", *(sentence(f"Assumed: {note}", look) for note in document["assumptions"])])


def _name(each: Mapping[str, Any]) -> str:
    times = f"{each['count']} × " if each["count"] > 1 else ""
    return f"{times}{each['hardware']} {each['purchase_model'].replace('_', ' ')}"


def _row(each: Mapping[str, Any]) -> dict[str, Any]:
    low, high = each["utilization_low"], each["utilization_high"]
    ends = (_share(low), "never" if high is None else _share(high))
    return {
        "rented": _name(each),
        "price": figures.money(Decimal(each["price_per_gpu_hour"])),
        "ratio": f"{each['throughput_ratio']:.2f}",
        "run": figures.money(Decimal(each["cost_per_run"])),
        "utilization": "never" if each["never"] else _share(each["utilization"]),
        "band": None if low is None else "–".join(ends),
        "hours": None if each["never"] else f"{each['hours_per_year']:,.0f}",
        "runs": None if each["never"] else f"{each['runs_per_year']:,.0f}",
        "payback": None if each["payback_runs"] is None else f"{each['payback_runs']:,}",
    }


def _share(share: float | None) -> str:
    return "never" if share is None else f"{share:.0%}".replace("%", " %")
