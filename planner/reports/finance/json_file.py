"""The tables as one JSON file: every amount and number as text in full, so that nothing is rounded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from .csv_files import fixed, moment
from .table import Kind, Table

_CHUNK_ROWS = 2000
_WRITE: dict[Kind, Callable[[Any], Any]] = {
    "text": str,
    "money": fixed,
    "number": fixed,
    "integer": int,
    "date": lambda value: value.isoformat(),
    "moment": moment,
    "flag": bool,
}


def encoded(tables: Sequence[Table], about: Mapping[str, Any]) -> Iterator[bytes]:
    """The file in pieces. about: what the report is of. A row is a list in the order of its columns; null is
    unknown. UTF-8."""
    head = json.dumps({**about, "tables": []}, ensure_ascii=False)
    yield head.removesuffix("]}").encode()
    for number, table in enumerate(tables):
        names = [{"name": column.name, "kind": column.kind} for column in table.columns]
        told = {"name": table.name, "title": table.title, "note": table.note, "columns": names, "rows": []}
        text = json.dumps(told, ensure_ascii=False).removesuffix("]}")
        yield f"{',' if number else ''}\n{text}".encode()
        yield from _rows(table)
        yield b"]}"
    yield b"\n]}\n"


def _rows(table: Table) -> Iterator[bytes]:
    writers = [_WRITE[column.kind] for column in table.columns]
    first, waiting = True, list[str]()
    for row in table.rows():
        cells = [None if cell is None else write(cell) for write, cell in zip(writers, row, strict=True)]
        waiting.append(json.dumps(cells, ensure_ascii=False, separators=(",", ":")))
        if len(waiting) == _CHUNK_ROWS:
            yield _joined(waiting, first)
            first, waiting = False, []
    if waiting:
        yield _joined(waiting, first)


def _joined(rows: Iterable[str], first: bool) -> bytes:
    return (("\n" if first else ",\n") + ",\n".join(rows)).encode()
