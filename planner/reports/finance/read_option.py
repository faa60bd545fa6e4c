"""An option of a plan for one run as a Book: its cost lines dated, and cut where months begin."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from planner import money
from planner.reports.plan_file import Document, name_of, number_of
from planner.schedule.plan import Category, Expenditure

from .book import Asset, Book, Line, capital, sales
from .months import month_of, pieces, split, start_of
from .read_schedule import UNKNOWN_LIFE, UNKNOWN_LIFE_MONTHS, instant, plan_id

_CATEGORIES: dict[str, Category] = {
    "compute": "compute",
    "committed hours": "commitment",
    "upfront fee": "commitment",
    "power": "energy",
    "idle power": "energy",
    "upkeep": "maintenance",
    "own rate": "hosting",
    "resale": "resale",
}
_EXPENDITURES: dict[str, Expenditure] = {"resale": "disposal", "upfront fee": "prepaid"}
# A quantity of a piece of a line. [unit]
_STEP = money.QUANTITY_STEP
_TERM_MONTHS = re.compile(r"(\d+) months")
_TERM_HOURS = re.compile(r"the whole term, (\d+) h")


def option_book(document: Document, plan: Mapping[str, Any], zone: ZoneInfo, start: datetime) -> Book:
    """start: when the run begins."""
    hours = Decimal(str(plan["time_hours"]["p50"]))
    end = start + timedelta(seconds=round(hours * 3600))
    lines = sorted(
        (line for entry in plan["cost_lines"] for line in _lines(entry, document, plan, zone, start, end)),
        key=lambda line: line.due,
    )
    rate = document.get("discount_rate")
    notes = [f"the run is taken to begin at {start:%Y-%m-%dT%H:%M:%SZ}: --start says otherwise"]
    if rate is None:
        notes.append("the plan states no discount rate: 0 is taken; --discount-rate says otherwise")
    return Book(
        id=plan_id(document, plan, lines),
        name=document["job"]["title"],
        plan_name=name_of(plan),
        number=number_of(plan),
        is_schedule=False,
        currency=document["currency"],
        zone=zone,
        as_of=instant(document["as_of"]),
        snapshot=document["snapshot"],
        starts=start_of(month_of(start, zone), zone),
        ends=start_of(month_of(max(end, start), zone).plus(1), zone),
        discount_rate=money.ZERO if rate is None else Decimal(str(rate)),
        lines=lines,
        assets=_assets(plan, lines, start),
        plan={key: value for key, value in plan.items() if key not in ("memory", "throughput")},
        document=document,
        notes=tuple(notes),
    )


def _lines(
    entry: Mapping[str, Any],
    document: Document,
    plan: Mapping[str, Any],
    zone: ZoneInfo,
    start: datetime,
    end: datetime,
) -> Iterator[Line]:
    """The payments of one cost line: a part for each month, each quantity × unit price exactly."""
    item = str(entry["item"])
    bought = item.startswith("purchase ") and item != "purchase share"
    expenditure: Expenditure = "capital" if bought else _EXPENDITURES.get(item, "operating")
    service_start, service_end = _service(item, entry, plan, start, end)
    whole = Decimal(entry["quantity"])
    once = expenditure != "operating"
    cut = [(None, service_start, service_end)] if once else pieces(service_start, service_end, zone)
    seconds = [Decimal(int((to - since).total_seconds())) for _, since, to in cut]
    for (_, since, to), quantity in zip(cut, split(whole, seconds, _STEP), strict=True):
        yield _line(entry, item, document, plan, quantity, expenditure, since, to, once)


def _service(
    item: str, entry: Mapping[str, Any], plan: Mapping[str, Any], start: datetime, end: datetime
) -> tuple[datetime, datetime]:
    """What the line pays for: the run, the term of a promise, or an instant."""
    formula = str(entry["formula"])
    if item.startswith("purchase ") and item != "purchase share":
        return start, start
    months = _TERM_MONTHS.search(formula)
    if item == "resale":
        at = _months_later(start, int(months.group(1))) if months else end
        return at, at
    if item == "upfront fee" and months:
        return start, _months_later(start, int(months.group(1)))
    hours = _TERM_HOURS.search(formula)
    if item == "committed hours" and hours:
        return start, start + timedelta(hours=int(hours.group(1)))
    return start, end


def _months_later(at: datetime, months: int) -> datetime:
    """The same day so many months on, or the last day of a month that has no such day."""
    year, number = divmod(at.year * 12 + at.month - 1 + months, 12)
    for day in (at.day, 30, 29, 28):
        try:
            return at.replace(year=year, month=number + 1, day=day)
        except ValueError:
            continue
    raise AssertionError("every month has 28 days")


def _line(
    entry: Mapping[str, Any],
    item: str,
    document: Document,
    plan: Mapping[str, Any],
    quantity: Decimal,
    expenditure: Expenditure,
    since: datetime,
    to: datetime,
    once: bool,
) -> Line:
    unit_price = Decimal(entry["unit_price"])
    energy = quantity if entry["unit"] == "kWh" else None
    asset = plan["hardware"] if expenditure in ("capital", "disposal") else ""
    return Line(
        due=since if once else max(since, to - timedelta(seconds=1)),
        service_start=since,
        service_end=to,
        category="purchase" if expenditure == "capital" else _CATEGORIES.get(item, "other"),
        expenditure=expenditure,
        description=f"{document['job']['workload']}: {item}",
        job=document["job"]["workload"],
        project="",
        team="",
        tags={},
        provider=plan["provider"],
        region=plan["region"],
        hardware=plan["hardware"],
        sku="",
        purchase_model=plan["purchase_model"],
        quantity=quantity,
        unit=entry["unit"],
        unit_price=unit_price,
        amount=money.product(quantity, unit_price),
        list_amount=money.product(quantity, unit_price) if plan["purchase_model"] == "on_demand" else None,
        asset=asset,
        energy_kwh=energy,
        co2_kg=None,
        price_ids=tuple(used["id"] for used in plan["prices"]) if entry["observed_at"] else (),
        source=entry["source"],
    )


def _life(rig: str) -> tuple[int, str]:
    """[months], and who says so."""
    from planner.models.errors import ModelsError
    from planner.models.hardware import catalogue

    try:
        return round(float(catalogue.rig(rig).life_years) * 12), "hardware catalogue"
    except ModelsError:
        return UNKNOWN_LIFE_MONTHS, UNKNOWN_LIFE


def _assets(plan: Mapping[str, Any], lines: list[Line], start: datetime) -> list[Asset]:
    cost = capital(lines, plan["hardware"])
    if not any(line.expenditure == "capital" for line in lines):
        return []
    sold = [line.due for line in lines if line.expenditure == "disposal"]
    return [
        Asset(
            plan["hardware"], plan["hardware"], plan["count"], start, max(sold, default=None),
            cost, -sales(lines, plan["hardware"]), *_life(plan["hardware"]),
        )
    ]  # fmt: skip
