"""What is promised: its price over the term, cut into what is used and what is not, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from planner import money

from .book import Book, Line
from .read_schedule import instant

_HOUR = Decimal(3600)


@dataclass(frozen=True, slots=True)
class Commitment:
    """level: [currency/h]. used_share, discount, break_even: [0, 1]. The rest: [currency]"""

    id: str
    provider: str
    kind: str
    level: Decimal
    discount: Decimal
    start: datetime
    end: datetime
    hours: Decimal
    purchased: Decimal
    used_share: Decimal
    used: Decimal
    unused: Decimal
    break_even: Decimal
    paid: Decimal
    held: bool


def commitments_of(book: Book) -> list[Commitment]:
    return [_commitment(said, book) for said in book.plan.get("commitments", ())]


def _commitment(said: Mapping[str, Any], book: Book) -> Commitment:
    start, end = instant(said["start"]), instant(said["end"])
    hours = money.plain(money.quantity(money.divided(Decimal(int((end - start).total_seconds())), _HOUR)))
    level, discount = Decimal(said["level_per_hour"]), Decimal(str(said["discount"]))
    share = Decimal(str(said["used_share"]))
    purchased = money.quantity(money.product(level, hours), book.step)
    used = money.quantity(purchased * share, book.step)
    return Commitment(
        id=said["id"], provider=said["provider"], kind=said["kind"], level=level, discount=discount,
        start=start, end=end, hours=hours, purchased=purchased, used_share=share, used=used,
        unused=purchased - used, break_even=1 - discount,
        paid=money.total(line.amount for line in book.lines if pays_for(line, said["id"])),
        held=bool(said["held"]),
    )  # fmt: skip


def pays_for(line: Line, commitment: str) -> bool:
    return line.category == "commitment" and line.description.split(" ")[-1] == commitment
