"""A report as columns of known kind and rows that are made when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Literal

# What a cell of a column is; None in any of them is unknown and stays empty.
Kind = Literal["text", "money", "number", "integer", "date", "moment", "flag"]
Value = str | Decimal | int | date | datetime | bool | None
Row = Sequence[Value]


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Table:
    """name: of its file. title: of its sheet, up to 31 characters. note: a sentence on how to read it.

    wide: one row a payment or more; left out of the workbook, where it would be slow to open.
    interchange: a format others define: written as plain CSV whatever dialect is asked for.
    """

    name: str
    title: str
    note: str
    columns: Sequence[Column]
    rows: Callable[[], Iterable[Row]]
    wide: bool = False
    interchange: bool = False


def columns(**kinds: Kind) -> tuple[Column, ...]:
    return tuple(Column(name, kind) for name, kind in kinds.items())
