"""What the service remembers, in the database of the prices: SQLite for one server, PostgreSQL for several.

Each public method is one transaction. Moments are UTC text as the price store has them; documents are JSON.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Engine, text

from planner.pricing.address import address_in_force
from planner.pricing.connect import Place, connect, explained, place, writing
from planner.pricing.errors import StoreUnusable
from planner.pricing.migrating import version_of
from planner.pricing.offer import format_time
from planner.service import migrations

# Any constant of ours: servers that start together take turns to make the tables.
_ADVISORY_LOCK = 7281106330903


def now() -> str:
    """This moment as stored."""
    return format_time(datetime.now(UTC))


def new_id() -> str:
    """Nobody guesses it, and it is no number that says how many there are."""
    return secrets.token_hex(8)


@dataclass(frozen=True, slots=True)
class State:
    """The open database. where: its place, to be shown without its password."""

    engine: Engine
    where: Place

    @classmethod
    def open(cls, url: str | None = None) -> State:
        """Make or migrate what is missing: the prices first, then our tables. Raises StoreUnusable."""
        from planner.pricing.store import PriceStore

        address = address_in_force(url)
        with PriceStore.open(address):
            pass
        where = place(address)
        state = cls(connect(where), where)
        with state.reads() as connection:
            ready = version_of(connection, migrations.VERSION_TABLE) == migrations.HEAD
        if not ready:
            state._make_ready()
        return state

    def _make_ready(self) -> None:
        """Another server may have done it while this one waited for its turn, so it is asked again."""
        with self.writes() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _ADVISORY_LOCK})
            version = version_of(connection, migrations.VERSION_TABLE)
            if version is not None and not migrations.knows(version):
                raise StoreUnusable(
                    f"{self.where.shown} was used by a newer service (schema {version}, this one knows "
                    f"{migrations.HEAD}). Update with: pip install -U training-planner"
                )
            if version != migrations.HEAD:
                migrations.upgrade(connection)

    @contextmanager
    def writes(self) -> Iterator[Connection]:
        """A transaction that may write. Raises StoreUnusable in words."""
        with explained(self.where), writing(self.engine) as connection:
            yield connection

    @contextmanager
    def reads(self) -> Iterator[Connection]:
        with explained(self.where), self.engine.begin() as connection:
            yield connection

    def rows(self, query: str, **given: Any) -> list[dict[str, Any]]:
        """All rows of a query of ours; values are always bound."""
        with self.reads() as connection:
            return [dict(row) for row in connection.execute(text(query), given).mappings()]

    def is_well(self) -> bool:
        """Whether the database answers."""
        return self.rows("SELECT 1 AS one") == [{"one": 1}]

    def close(self) -> None:
        self.engine.dispose()

    # --- plans

    def keep_plan(self, document: Mapping[str, Any], owner: str) -> str:
        """Keep a plan document; returns its id."""
        with self.writes() as connection:
            return insert_plan(connection, document, owner)

    def plans(self, owner: str | None, limit: int = 200) -> list[dict[str, Any]]:
        """Kept plans, newest first, without their documents. owner: None for everybody's."""
        return self.rows(
            "SELECT id, kind, name, owner, created_at FROM service_plans "
            "WHERE :everyone = 1 OR owner = :owner ORDER BY created_at DESC, id LIMIT :limit",
            everyone=int(owner is None),
            owner=owner or "",
            limit=limit,
        )

    def plan(self, id: str, owner: str | None) -> dict[str, Any] | None:
        """One kept plan with its document; None where this owner has none of that id."""
        found = self.rows("SELECT * FROM service_plans WHERE id = :id", id=id)
        if not found or owner not in (None, found[0]["owner"]):
            return None
        return {**found[0], "document": json.loads(found[0]["document"])}

    def forget_plan(self, id: str, owner: str | None) -> bool:
        with self.writes() as connection:
            done = connection.execute(
                text("DELETE FROM service_plans WHERE id = :id AND (:everyone = 1 OR owner = :owner)"),
                {"id": id, "everyone": int(owner is None), "owner": owner or ""},
            )
        return bool(done.rowcount)

    # --- who did what

    def log(self, who: str, what: str, **detail: Any) -> None:
        """Add a line to the audit log."""
        with self.writes() as connection:
            connection.execute(
                text(
                    "INSERT INTO service_audit (id, at, who, what, detail) VALUES (:id, :at, :who, :what, :d)"
                ),
                {
                    "id": new_id(),
                    "at": now(),
                    "who": who,
                    "what": what,
                    "d": json.dumps(detail, sort_keys=True),
                },
            )

    def audit(self, limit: int = 200) -> list[dict[str, Any]]:
        """The newest lines first."""
        found = self.rows(
            "SELECT at, who, what, detail FROM service_audit ORDER BY at DESC, id LIMIT :limit", limit=limit
        )
        return [{**row, "detail": json.loads(row["detail"])} for row in found]


def insert_plan(connection: Connection, document: Mapping[str, Any], owner: str) -> str:
    """Inside a transaction: keep a plan; returns its id."""
    id = new_id()
    name = document.get("name") or document.get("job", {}).get("workload") or ""
    connection.execute(
        text(
            "INSERT INTO service_plans (id, kind, name, owner, created_at, document) "
            "VALUES (:id, :kind, :name, :owner, :at, :document)"
        ),
        {
            "id": id,
            "kind": document["kind"],
            "name": name,
            "owner": owner,
            "at": now(),
            "document": json.dumps(document, separators=(",", ":")),
        },
    )
    return id
