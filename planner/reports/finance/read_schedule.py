"""A point of a schedule plan as a Book."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from planner import money
from planner.errors import UsageError
from planner.reports.plan_file import Document, name_of, number_of

from .book import Asset, Book, Line, asset_of, capital, sales

T = TypeVar("T")
# Enough of a SHA-256 to tell plans apart in a spreadsheet's cell.
_ID_CHARACTERS = 16
# Servers are booked over 3 to 6 years (notes of public companies); what the plan does not tell gets 4.
UNKNOWN_LIFE_MONTHS = 48
UNKNOWN_LIFE = "assumption: servers are booked over 3 to 6 years; --life-months says otherwise"


def schedule_book(
    document: Document, plan: Mapping[str, Any], zone: ZoneInfo, *, emptied: bool = False
) -> Book:
    """emptied: take the document's ledger apart while reading, so that 100,000 payments are held once.

    Raises UsageError where the ledger does not read or does not add up to the plan's cost.
    """
    lines = sorted(_lines(plan["ledger"], emptied), key=lambda line: line.due)
    _check_sum(lines, Decimal(plan["cost"]["p50"]))
    return Book(
        id=plan_id(document, plan, lines),
        name=document["name"],
        plan_name=name_of(plan),
        number=number_of(plan),
        is_schedule=True,
        currency=document["currency"],
        zone=zone,
        as_of=instant(document["as_of"]),
        snapshot=document["snapshot"],
        starts=instant(document["starts"]),
        ends=instant(document["ends"]),
        discount_rate=Decimal(str(document["discount_rate"])),
        lines=lines,
        assets=_assets(plan, lines),
        plan={key: value for key, value in plan.items() if key != "ledger"},
        document=document,
    )


def plan_id(document: Document, plan: Mapping[str, Any], lines: list[Line]) -> str:
    """Of the plan's figures: the same for the same plan, whatever file it lies in."""
    mark = hashlib.sha256()
    for part in (document["kind"], document["snapshot"], document["as_of"], str(number_of(plan))):
        mark.update(f"{part}\n".encode())
    for line in lines:
        mark.update(f"{line.due.isoformat()} {line.description} {line.amount}\n".encode())
    return f"plan:{mark.hexdigest()[:_ID_CHARACTERS]}"


@cache
def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _lines(ledger: list[dict[str, Any]], emptied: bool) -> list[Line]:
    same = _shared()
    found = []
    for number, entry in enumerate(ledger, 1):
        try:
            found.append(_line(entry, same))
        except (KeyError, TypeError, ValueError, InvalidOperation) as error:
            raise UsageError(
                f"payment {number} of this plan does not read ({type(error).__name__}: {error}); "
                "make the plan again with: planner optimize … --format json -o plan.json"
            ) from error
        if emptied:
            entry.clear()
    return found


def _shared() -> Callable[[T], T]:
    """Equal values as one object: most payments differ in their amount and moment alone."""
    known: dict[Any, Any] = {}
    return lambda value: known.setdefault(value, value)


def _line(entry: Mapping[str, Any], same: Callable[[Any], Any]) -> Line:
    tags = same(tuple(sorted(entry["tags"].items())))
    return Line(
        due=instant(entry["due"]),
        service_start=instant(entry["service_start"]),
        service_end=instant(entry["service_end"]),
        category=same(entry["category"]),
        expenditure=same(entry["expenditure"]),
        description=same(entry["description"]),
        job=same(entry["job"]),
        project=same(entry["project"]),
        team=same(entry["team"]),
        tags=_tags(tags),
        provider=same(entry["provider"]),
        region=same(entry["region"]),
        hardware=same(entry["hardware"]),
        sku=same(entry["sku"]),
        purchase_model=same(entry["purchase_model"]),
        quantity=Decimal(entry["quantity"]),
        unit=same(entry["unit"]),
        unit_price=same(Decimal(entry["unit_price"])),
        amount=Decimal(entry["amount"]),
        list_amount=_decimal(entry["list_amount"]),
        asset=same(entry["asset"]),
        energy_kwh=_decimal(entry["energy_kwh"]),
        co2_kg=_decimal(entry["co2_kg"]),
        price_ids=same(tuple(entry["price_ids"])),
        source=same(entry["source"]),
    )


@cache
def _tags(pairs: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return dict(pairs)


def _decimal(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


def _check_sum(lines: list[Line], stated: Decimal) -> None:
    found = money.total(line.amount for line in lines)
    if found != stated:
        raise UsageError(
            f"the payments of this plan add up to {found}, and it says that it costs {stated}; "
            "the file was changed: make it again with planner optimize … --format json"
        )


def _assets(plan: Mapping[str, Any], lines: list[Line]) -> list[Asset]:
    said = {purchase["asset"]: purchase for purchase in plan["purchases"]}
    ids = dict.fromkeys(asset_of(line) for line in lines if line.expenditure == "capital")
    return [_asset(id, said.get(id), lines) for id in ids]


def _asset(id: str, said: Mapping[str, Any] | None, lines: list[Line]) -> Asset:
    own = [line for line in lines if asset_of(line) == id]
    sold = [line.due for line in own if line.expenditure == "disposal"]
    bought = [line for line in own if line.expenditure == "capital"]
    return Asset(
        id=id,
        hardware=bought[0].hardware,
        count=said["count"] if said else 1,
        in_service=instant(said["usable"]) if said else max(line.due for line in bought),
        sold=max(sold) if sold else None,
        cost=capital(own, id),
        proceeds=-sales(own, id),
        life_months=said["life_months"] if said else UNKNOWN_LIFE_MONTHS,
        life_source="the plan" if said else UNKNOWN_LIFE,
    )
