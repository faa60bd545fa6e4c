"""Bring a store to the newest schema and give it the packaged prices, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import islice

from sqlalchemy import Connection, text

from . import snapshot
from .connect import Place
from .errors import StoreUnusable
from .migrating import version_of
from .offer import FIELDS, Offer, format_time
from .queries import Filters
from .schema import HEAD, VERSION_TABLE

_COLUMNS = ("observation_id", "price_id", *FIELDS)
# What a price is known by: the columns of `prices`.
_PRICE = ("price_id", *Filters.__annotations__)
_PRICE_INDEXES = tuple(_COLUMNS.index(name) for name in _PRICE)
# Enough that the cost of a statement does not show, few enough that a million rows need no gigabyte.
_ROWS_A_STATEMENT = 10_000
# Any constant: two processes that make the same PostgreSQL store take turns by it.
_ADVISORY_LOCK = 7281106330901


def schema_version(connection: Connection) -> str | None:
    """The revision the store is at; None when there is no price store yet."""
    return version_of(connection, VERSION_TABLE)


def is_loaded(connection: Connection, content_sha256: str) -> bool:
    """Whether the packaged snapshot with this hash has been appended."""
    query = text("SELECT 1 FROM loads WHERE content_sha256 = :content")
    return connection.execute(query, {"content": content_sha256}).scalar() is not None


def insert(connection: Connection, offers: Iterable[Offer]) -> int:
    """Append observations; returns how many were not there yet."""
    added = 0
    rest = iter(offers)
    # The driver's own placeholders: named ones cost a dictionary a row, a fifth of the whole.
    slot = "?" if connection.dialect.name == "sqlite" else "%s"
    statement = (
        f"INSERT INTO observations ({', '.join(_COLUMNS)}) VALUES ({', '.join([slot] * len(_COLUMNS))}) "
        "ON CONFLICT (observation_id) DO NOTHING"
    )
    price = (
        f"INSERT INTO prices ({', '.join(_PRICE)}) VALUES ({', '.join([slot] * len(_PRICE))}) "
        "ON CONFLICT (price_id) DO NOTHING"
    )
    while batch := [offer.to_row() for offer in islice(rest, _ROWS_A_STATEMENT)]:
        prices = {row[1]: tuple(map(row.__getitem__, _PRICE_INDEXES)) for row in batch}
        connection.exec_driver_sql(price, list(prices.values()))
        # The drivers add up the rows that were not there. Counting the table costs seconds when it is long.
        added += connection.exec_driver_sql(statement, batch).rowcount
    return added


def prepare(connection: Connection, where: Place) -> None:
    """Inside a writing transaction: migrate, then append the packaged prices if they are new.

    Another process may have done it while this one waited for its turn, so everything is asked again.
    Raises StoreUnusable for a file of another program and for a store of a newer planner.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _ADVISORY_LOCK})
    version = schema_version(connection)
    if version is None:
        _refuse_a_foreign_file(connection, where)
    if version != HEAD:
        from . import migrations

        if version is not None and not migrations.knows(version):
            raise StoreUnusable(
                f"{where.shown} was made by a newer planner (schema {version}, this one knows {HEAD}). "
                "Update with: pip install -U training-planner"
            )
        migrations.upgrade(connection)
    content = snapshot.content_sha256()
    if is_loaded(connection, content):
        return
    added = insert(connection, snapshot.offers())
    connection.execute(
        text("INSERT INTO loads VALUES (:content, :now, :added)"),
        {"content": content, "now": format_time(datetime.now(UTC)), "added": added},
    )


def _refuse_a_foreign_file(connection: Connection, where: Place) -> None:
    if connection.dialect.name != "sqlite":
        return
    table = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'table' LIMIT 1")).scalar()
    if table is not None:
        raise StoreUnusable(
            f'{where.shown} is the database of another program (it has a table "{table}"); '
            "it was left as it is. Name a new file for the prices."
        )
