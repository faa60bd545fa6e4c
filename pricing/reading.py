"""Read prices at the least cost: a SQLite store that is up to date needs no SQLAlchemy to be read.

Importing SQLAlchemy takes 0.15 s of CPU, a quarter of a warm plan (measured 2026-12-06). So a file that
exists, is of this schema and holds this version's packaged prices is read through Python's own sqlite3, with
the very SQL of the store. Everything else, trouble of any kind too, is left to PriceStore, which makes,
migrates and explains.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from . import snapshot
from .address import sqlite_file
from .errors import BadOffer
from .offer import Offer
from .schema import HEAD, VERSION_TABLE
from .stored_prices import StoredPrices

if TYPE_CHECKING:
    from .store import PriceStore

_BUSY_SECONDS = 30


def open_for_reading(url: str | None = None) -> PriceStore | SqliteFile:
    """The store at `url`, else at PLANNER_STORE_URL, else the user's own; made where there is none.

    Raises StoreUnusable.
    """
    file = sqlite_file(url)
    connection = None if file is None else _up_to_date(file)
    return _store(url) if connection is None else SqliteFile(connection, url)


class SqliteFile(StoredPrices):
    """One store file, read in one transaction: every answer is of one moment."""

    warnings: tuple[str, ...] = ()

    def __init__(self, connection: sqlite3.Connection, url: str | None) -> None:
        self._connection = connection
        self._url = url

    def _offers(self, query: str, values: Mapping[str, str]) -> tuple[Offer, ...]:
        try:
            return tuple(map(Offer.from_record, self._connection.execute(query, values)))
        except (sqlite3.Error, BadOffer):
            # The file cannot be read after all: PriceStore says what is wrong with it.
            with _store(self._url) as store:
                return store._offers(query, values)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()


def _up_to_date(file: Path) -> sqlite3.Connection | None:
    """A reading transaction on the file; None where it must be made, migrated, loaded or explained first."""
    try:
        if not file.is_file():
            return None
        address = f"{file.absolute().as_uri()}?mode=ro"
        connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=_BUSY_SECONDS)
    except (OSError, sqlite3.Error):
        return None
    try:
        connection.execute("BEGIN")
        version = connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()
        query = "SELECT 1 FROM loads WHERE content_sha256 = ?"
        loaded = connection.execute(query, (snapshot.content_sha256(),)).fetchone()
    except sqlite3.Error:
        connection.close()
        return None
    if version == (HEAD,) and loaded is not None:
        return connection
    connection.close()
    return None


def _store(url: str | None) -> PriceStore:
    from .store import PriceStore

    return PriceStore.open(url)
