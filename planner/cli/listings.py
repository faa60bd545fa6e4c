"""A Listing or a record of the public API as an Answer: one way for every command that lists or shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from planner.cli.output import Answer
from planner.reports.lists import listing, shown
from planner.reports.records import plain_values, record_page, record_rows
from planner.reports.tabular import Cell

if TYPE_CHECKING:
    from planner.listings import Listing


def listed(
    found: Listing,
    columns: Mapping[str, str],
    title: str,
    drop: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Answer:
    """columns: key -> heading of what the table shows; the other formats hold every key."""
    document = plain_values(found.to_json())
    items = document[found.kind]
    rows = [{key: _cell(key, value) for key, value in item.items()} for item in items]
    return Answer(
        document=document,
        items=items,
        rows=lambda: rows,
        brief=lambda: [{key: row.get(key) for key in columns} for row in rows],
        table=lambda look: listing(rows, columns, look, notes, drop),
        title=title,
        notes=notes,
    )


def record(kind: str, found: Any) -> Answer:
    """A record of a catalogue, every figure with its source."""
    document = {"schema_version": "1.0", "kind": kind, **plain_values(found)}
    body = {key: value for key, value in document.items() if key not in ("schema_version", "kind")}
    return Answer(
        document=document,
        items=[document],
        rows=lambda: record_rows(body),
        table=lambda look: record_page(body, look),
        title=f"{kind} {body.get('id', '')}",
    )


def _cell(key: str, value: Any) -> Cell:
    """Money travels as text in JSON; in a table it is a number again."""
    if isinstance(value, str) and key.startswith(("amount", "price")):
        try:
            return Decimal(value)
        except InvalidOperation:
            return value
    return value if isinstance(value, str | int | float | bool | Decimal) else shown(value)
