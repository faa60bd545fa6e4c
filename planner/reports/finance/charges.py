"""A plan's payments and expenses as charges in the sense of FOCUS: what is billed, what is consumed, when.

Payments give BilledCost, accrual entries give EffectiveCost, so the charges add up to both views exactly.
Source: FOCUS 1.2, columns BilledCost, EffectiveCost, ChargeCategory, CommitmentDiscountStatus.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from planner import money

from .accrual import DEPRECIATION, Accrual, AssetMonth
from .book import Asset, Line
from .commitments import Commitment, commitments_of
from .months import Month, month_of, pieces, split_by_month, start_of

_INSTANT = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Charge:
    """One row. month: of the bill. start, end: what it is for. billed, effective, listed: [currency]

    item: the line item, or depreciation or disposal. contracted: at the agreed price, before a promise's
    discount. quantity, unit_price: None where billed or effective is not their product.
    """

    category: str
    item: str
    description: str
    month: Month
    start: datetime
    end: datetime
    billed: Decimal
    effective: Decimal
    listed: Decimal
    contracted: Decimal
    line: Line | None
    asset: Asset | None = None
    commitment: Commitment | None = None
    status: str = ""
    quantity: Decimal | None = None
    unit: str = ""
    unit_price: Decimal | None = None
    list_unit_price: Decimal | None = None


def charges_of(accrual: Accrual) -> Iterator[Charge]:
    """Every charge: those of the payments as they fall due, then what assets lose and leave."""
    promises = commitments_of(accrual.book)
    for line in accrual.book.lines:
        yield from _of_line(line, accrual, next((each for each in promises if each.is_paid_by(line)), None))
    for row in accrual.schedule:
        yield from _of_asset(row, accrual)


def _of_line(line: Line, accrual: Accrual, promise: Commitment | None) -> Iterator[Charge]:
    zone = accrual.book.zone
    due = month_of(line.due, zone)
    entries = [(entry.month, entry.amount) for entry in accrual.of_line(line)]
    if promise is not None:
        yield _billed(line, due, "Purchase", promise)
        yield from _use_of(promise, line, entries, accrual)
    elif line.expenditure == "disposal" or (line.amount < 0 and _at_once(entries, due)):
        yield _consumed(line, due, "Credit")
    elif not entries:
        yield _billed(line, due, "Purchase")
    elif line.category == "tax" and _at_once(entries, due):
        yield _consumed(line, due, "Tax")
    elif line.expenditure == "capital":
        yield _consumed(line, due, "Purchase")
    elif _at_once(entries, due):
        yield _consumed(line, due, "Usage")
    else:
        later = "Adjustment" if line.amount < 0 else "Usage"
        yield _billed(line, due, "Adjustment" if line.amount < 0 else "Purchase")
        yield from _spread(line, entries, later, accrual)


def _at_once(entries: list[tuple[Month, Decimal]], due: Month) -> bool:
    """Whether all is consumed in the month in which it is billed."""
    return len(entries) == 1 and entries[0][0] == due


def _listed(line: Line) -> Decimal:
    return line.amount if line.list_amount is None else line.list_amount


def _span(line: Line) -> tuple[datetime, datetime]:
    return line.service_start, max(line.service_end, line.service_start + _INSTANT)


def _consumed(line: Line, month: Month, category: str) -> Charge:
    """Billed and consumed in one month."""
    start, end = _span(line)
    exact = category == "Usage" and money.product(line.quantity, line.unit_price) == line.amount
    listed = None
    if exact and line.quantity and line.list_amount is not None:
        listed = money.plain(money.divided(line.list_amount, line.quantity))
    return Charge(
        category, line.category, line.description, month, start, end, line.amount, line.amount,
        _listed(line), line.amount, line,
        quantity=line.quantity if category == "Usage" else None,
        unit=line.unit if category == "Usage" else "",
        unit_price=line.unit_price if exact else None,
        list_unit_price=line.unit_price if exact and line.list_amount is None else listed,
    )  # fmt: skip


def _billed(line: Line, month: Month, category: str, promise: Commitment | None = None) -> Charge:
    """Paid ahead of what it is for, or after."""
    start, end = _span(line)
    return Charge(
        category, line.category, line.description, month, start, end, line.amount, money.ZERO,
        _listed(line), line.amount, line, commitment=promise,
    )  # fmt: skip


def _spread(
    line: Line, entries: list[tuple[Month, Decimal]], category: str, accrual: Accrual
) -> Iterator[Charge]:
    """What was paid at another time, by the months it is consumed in."""
    zone = accrual.book.zone
    cut = pieces(line.service_start, line.service_end, zone)
    # The discount is spread, not the list price, so that no month's list price falls below its cost.
    saved = split_by_month(
        _listed(line) - line.amount, line.service_start, line.service_end, zone, accrual.book.step
    )
    for (month, amount), (_, start, end), (_, more) in zip(entries, cut, saved, strict=True):
        yield Charge(
            category, line.category, line.description, month, start, max(end, start + _INSTANT),
            money.ZERO, amount, amount + more, amount, line,
        )  # fmt: skip


def _use_of(
    promise: Commitment, line: Line, entries: list[tuple[Month, Decimal]], accrual: Accrual
) -> Iterator[Charge]:
    """A promise's months, each cut into what is used and what is not."""
    step = accrual.book.step
    cut = pieces(line.service_start, line.service_end, accrual.book.zone)
    for (month, amount), (_, start, end) in zip(entries, cut, strict=True):
        used = money.quantity(amount * promise.share_used(start, end), step)
        for status, part in (("Used", used), ("Unused", amount - used)):
            if not part:
                continue
            covers = promise.at_list(part, step) if status == "Used" else part
            yield Charge(
                "Usage", line.category, line.description, month, start, end, money.ZERO, part, covers,
                covers, line, commitment=promise, status=status,
            )  # fmt: skip


def _of_asset(row: AssetMonth, accrual: Accrual) -> Iterator[Charge]:
    zone, asset = accrual.book.zone, row.asset
    start, end = start_of(row.month, zone), start_of(row.month.plus(1), zone)
    for what, amount, category in (
        (DEPRECIATION, row.depreciation, "Usage"), ("book value sold", row.disposal, "Adjustment"),
    ):  # fmt: skip
        if amount:
            count = Decimal(asset.count) if category == "Usage" else None
            yield Charge(
                category, DEPRECIATION, f"{asset.id}: {what}", row.month, start, end, money.ZERO, amount,
                amount, amount, None, asset, quantity=count, unit="rig-month" if count else "",
            )  # fmt: skip
