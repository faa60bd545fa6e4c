"""What one refresh brought from one source: the store's log book, append-only like the prices."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, text

from .offer import format_time, parse_time

Status = Literal["ok", "shrunk", "failed", "unavailable"]
_COLUMNS = (
    "fetch_id", "source", "scope", "status", "fetched_at", "message", "payload_sha256", "families",
    "offers", "added", "waiting", "quarantined",
)  # fmt: skip
_INSERT = text(
    f"INSERT INTO fetches ({', '.join(_COLUMNS)}) VALUES ({', '.join(':' + name for name in _COLUMNS)}) "
    "ON CONFLICT (fetch_id) DO NOTHING"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """One source's part of one refresh.

    scope: what was asked for (regions, types), as text; only fetches of equal scope are compared.
    status: "ok" stored; "shrunk" set aside until it is confirmed; "failed"; "unavailable" for want of
        credentials or a package.
    families: the kinds of hardware or goods that came, so that one that is missing next time is noticed.
    offers: how many came; added, waiting, quarantined: rows stored, by what was thought of them.
    """

    source: str
    scope: str
    status: Status
    fetched_at: datetime
    message: str | None = None
    payload_sha256: str | None = None
    families: tuple[str, ...] = ()
    offers: int = 0
    added: int = 0
    waiting: int = 0
    quarantined: int = 0

    @property
    def fetch_id(self) -> str:
        """One source at one instant is one fetch."""
        key = f"{self.source}\n{self.scope}\n{format_time(self.fetched_at)}"
        return hashlib.sha256(key.encode()).hexdigest()[:32]


def insert_fetches(connection: Connection, records: Iterable[Fetch]) -> None:
    """Write down what was fetched, inside the caller's transaction."""
    rows = [
        {
            "fetch_id": each.fetch_id,
            "source": each.source,
            "scope": each.scope,
            "status": each.status,
            "fetched_at": format_time(each.fetched_at),
            "message": each.message,
            "payload_sha256": each.payload_sha256,
            "families": json.dumps(each.families, ensure_ascii=False),
            "offers": each.offers,
            "added": each.added,
            "waiting": each.waiting,
            "quarantined": each.quarantined,
        }
        for each in records
    ]
    if rows:
        connection.execute(_INSERT, rows)


def read_fetches(connection: Connection, sources: Sequence[str]) -> tuple[Fetch, ...]:
    """What is written down about the sources, oldest first; () for all of them."""
    query = f"SELECT {', '.join(_COLUMNS[1:])} FROM fetches"
    slots = {f"source_{number}": name for number, name in enumerate(sources)}
    if slots:
        query += f" WHERE source IN ({', '.join(':' + slot for slot in slots)})"
    rows = connection.execute(text(f"{query} ORDER BY fetched_at, fetch_id"), slots).all()
    return tuple(_fetch(row) for row in rows)


def _fetch(row: Any) -> Fetch:
    values = dict(zip(_COLUMNS[1:], row, strict=True))
    values["fetched_at"] = parse_time("fetched_at", values["fetched_at"])
    values["families"] = tuple(json.loads(values["families"] or "[]"))
    return Fetch(**values)
