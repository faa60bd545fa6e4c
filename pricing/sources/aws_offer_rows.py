"""What the two readers of EC2 offer files give: rows, one after another, and the date of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from .aws_rows import Product, Term

Keep = Callable[[Product], bool]


@dataclass(frozen=True, slots=True)
class Listed:
    """A product and the terms that the file lists for it at this place (it may come again with others)."""

    product: Product
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class OfferFile:
    """published: the file's own date in UTC; None when it has none. rows: to be read once."""

    published: datetime | None
    rows: Iterator[Listed]
