"""The payments of one plan as exact decimals, whichever kind of plan file they come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

from planner import money
from planner.schedule.plan import Payment

from .months import Month, between, month_of, rounded_together

CENT = Decimal("0.01")
Line = Payment
"""One payment, of a schedule's ledger or made from a cost line of one run."""


@dataclass(frozen=True, slots=True)
class Asset:
    """What was bought and is depreciated. cost: all that was capitalised. proceeds: of the sale. [currency]

    in_service: from when it depreciates. sold: None where it is kept. count: of equal machines.
    life_months: and life_source, who says that it lives so long.
    """

    id: str
    hardware: str
    count: int
    in_service: datetime
    sold: datetime | None
    cost: Decimal
    proceeds: Decimal
    life_months: int
    life_source: str


@dataclass(frozen=True)
class Book:
    """One plan. lines: in the order they fall due. step: to which parts of an amount are rounded. [currency]

    plan: the point or option as the file holds it, without its ledger. document: the file, without plans.
    """

    id: str
    name: str
    plan_name: str
    number: int
    is_schedule: bool
    currency: str
    zone: ZoneInfo
    as_of: datetime
    snapshot: str
    starts: datetime
    ends: datetime
    discount_rate: Decimal
    lines: Sequence[Line]
    assets: Sequence[Asset]
    plan: Mapping[str, Any]
    document: Mapping[str, Any]
    step: Decimal = money.PRICE_STEP
    rounding: str = "exact"
    notes: tuple[str, ...] = field(default=())

    @cached_property
    def total(self) -> Decimal:
        return money.total(line.amount for line in self.lines)

    @cached_property
    def months(self) -> Sequence[Month]:
        """From the first payment or the plan's start to the last payment, none left out."""
        if not self.lines:
            return ()
        due = [month_of(line.due, self.zone) for line in self.lines]
        service = [month_of(line.service_start, self.zone) for line in self.lines]
        return list(between(min(min(due), min(service)), max(max(due), max(service))))

    @property
    def as_of_day(self) -> date:
        return self.as_of.date()


def sums_by_month(amounts: Iterable[tuple[Month, Decimal]]) -> dict[Month, Decimal]:
    """What falls into each month, added up."""
    found: dict[Month, Decimal] = {}
    for month, amount in amounts:
        found[month] = found.get(month, money.ZERO) + amount
    return found


def rounded_to_cents(book: Book) -> Book:
    """The same plan with every payment in whole cents, so that they add up to its rounded total."""
    amounts = rounded_together([line.amount for line in book.lines], CENT)
    listed = [line.list_amount for line in book.lines]
    lines = [
        replace(line, amount=amount, list_amount=None if each is None else money.quantity(each, CENT))
        for line, amount, each in zip(book.lines, amounts, listed, strict=True)
    ]
    assets = [
        replace(asset, cost=capital(lines, asset.id), proceeds=-sales(lines, asset.id))
        for asset in book.assets
    ]
    return replace(book, lines=lines, assets=assets, step=CENT, rounding="cents")


def living(book: Book, life_months: int | None) -> Book:
    """The same plan with assets of that life; None: each its own."""
    if life_months is None:
        return book
    assets = [replace(asset, life_months=life_months, life_source="given") for asset in book.assets]
    return replace(book, assets=assets)


def capital(lines: Iterable[Line], asset: str) -> Decimal:
    return money.total(
        line.amount for line in lines if line.expenditure == "capital" and asset_of(line) == asset
    )


def sales(lines: Iterable[Line], asset: str) -> Decimal:
    """What disposals of an asset add up to: negative where money comes in."""
    return money.total(
        line.amount for line in lines if line.expenditure == "disposal" and asset_of(line) == asset
    )


def asset_of(line: Line) -> str:
    """The asset a capital payment or a sale belongs to."""
    return line.asset or line.hardware or line.description
