"""What is promised: its price over the term, cut into what is used and what is not, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from planner import money

from .book import Book, Line
from .read_schedule import instant

_HOUR = Decimal(3600)


@dataclass(frozen=True, slots=True)
class Commitment:
    """level: [currency/h]. used_share, discount, break_even: [0, 1]. The rest: [currency]

    discount, break_even: None where no price on demand is known to compare with. uses: the one run that
    draws on it, start and end; None: its use is spread evenly. described: of its payments; "" where every
    commitment payment of the plan is its own.
    """

    id: str
    provider: str
    kind: str
    level: Decimal
    discount: Decimal | None
    start: datetime
    end: datetime
    hours: Decimal
    purchased: Decimal
    used_share: Decimal
    used: Decimal
    unused: Decimal
    paid: Decimal
    held: bool
    described: str = ""
    uses: tuple[datetime, datetime] | None = None

    @property
    def break_even(self) -> Decimal | None:
        """Used less than this, paying as you go would have cost less: x* = 1 - d. [0, 1]"""
        return None if self.discount is None else 1 - self.discount

    def is_paid_by(self, line: Line) -> bool:
        return line.category == "commitment" and self.described in ("", line.description)

    def share_used(self, start: datetime, end: datetime) -> Decimal:
        """Of the time from start to end. [0, 1]"""
        if self.uses is None:
            return self.used_share
        both = min(end, self.uses[1]) - max(start, self.uses[0])
        if both <= timedelta() or end <= start:
            return money.ZERO
        return money.divided(Decimal(int(both.total_seconds())), Decimal(int((end - start).total_seconds())))

    def at_list(self, paid: Decimal, step: Decimal) -> Decimal:
        """What a used part of it would cost on demand; the part itself where that is not known."""
        if not self.discount or self.discount >= 1:
            return paid
        return money.quantity(money.divided(paid, 1 - self.discount), step)


def commitments_of(book: Book) -> list[Commitment]:
    if book.is_schedule:
        return [_promised(said, book) for said in book.plan.get("commitments", ())]
    return _of_option(book)


def _promised(said: Mapping[str, Any], book: Book) -> Commitment:
    start, end = instant(said["start"]), instant(said["end"])
    hours = _hours(start, end)
    level, share = Decimal(said["level_per_hour"]), Decimal(str(said["used_share"]))
    purchased = money.quantity(money.product(level, hours), book.step)
    used = money.quantity(purchased * share, book.step)
    described = f"promised spend {said['id']}"
    return Commitment(
        id=said["id"], provider=said["provider"], kind=said["kind"], level=level,
        discount=Decimal(str(said["discount"])), start=start, end=end, hours=hours, purchased=purchased,
        used_share=share, used=used, unused=purchased - used,
        paid=money.total(
            line.amount for line in book.lines
            if line.category == "commitment" and line.description == described
        ),
        held=bool(said["held"]), described=described,
    )  # fmt: skip


def _of_option(book: Book) -> list[Commitment]:
    """The term that one run is bought under: all of it is paid, and the run uses its own hours."""
    lines = [line for line in book.lines if line.category == "commitment"]
    if not lines:
        return []
    start, end = min(line.service_start for line in lines), max(line.service_end for line in lines)
    seconds = int((end - start).total_seconds())
    ran = min(int(Decimal(str(book.plan["time_hours"]["p50"])) * _HOUR), seconds)
    paid, share = money.total(line.amount for line in lines), money.divided(Decimal(ran), Decimal(seconds))
    used = money.quantity(paid * share, book.step)
    return [
        Commitment(
            id=f"{book.plan['provider']}:{book.plan['hardware']}", provider=book.plan["provider"],
            kind=book.plan["purchase_model"], level=money.price(money.divided(paid, _hours(start, end))),
            discount=None, start=start, end=end, hours=_hours(start, end), purchased=paid,
            used_share=money.quantity(share), used=used, unused=paid - used, paid=paid, held=False,
            uses=(start, start + timedelta(seconds=ran)),
        )
    ]  # fmt: skip


def _hours(start: datetime, end: datetime) -> Decimal:
    return money.plain(money.quantity(money.divided(Decimal(int((end - start).total_seconds())), _HOUR)))
