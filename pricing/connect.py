"""Where the price store lives and how to talk to it: SQLite by default, PostgreSQL for a team.

SQLite writers begin with BEGIN IMMEDIATE. A transaction that reads first and then wants to write cannot
be upgraded when another has written meanwhile: it fails at once, whatever the time-out (measured: 139 of
160 such transactions failed with a plain BEGIN, none with IMMEDIATE).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, StaticPool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from .address import ENVIRONMENT
from .errors import StoreUnusable

MEMORY = "sqlite://"

_BUSY_SECONDS = 30
# Rows come in the order of their hashes, so a long append touches all of its indexes at once: with
# SQLite's own 2 MiB a million offers took 1.6 times as long.
_CACHE_KIB = 64 * 1024
_NAME_ANOTHER = f"Name another place: {ENVIRONMENT}=sqlite:////path/prices.sqlite"


class NotWritable(StoreUnusable):
    """The place of the store cannot be written or made."""


@dataclass(frozen=True, slots=True)
class Place:
    """A store's address. path: of a SQLite file, else None. shown: without the password."""

    url: URL
    shown: str
    path: Path | None
    read_only: bool


def place(address: str) -> Place:
    """Read a path, sqlite:///PATH or postgresql://… address. Raises StoreUnusable."""
    if "://" not in address:
        return _file(Path(address))
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):
        raise StoreUnusable(f'"{address}" is no address of a store. {_NAME_ANOTHER}') from None
    kind = url.drivername.partition("+")[0]
    if kind == "sqlite":
        if url.database in (None, "", ":memory:"):
            return Place(make_url(MEMORY), "memory", None, read_only=False)
        return _file(Path(str(url.database)))
    if kind in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
        return Place(url, url.render_as_string(hide_password=True), None, read_only=False)
    raise StoreUnusable(f'"{kind}" is no kind of store; SQLite and PostgreSQL are. {_NAME_ANOTHER}')


def _file(path: Path) -> Place:
    path = path.expanduser()
    try:
        exists = path.exists()
        if not exists:
            path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotWritable(f"{path.parent} cannot be made ({error.strerror}). {_NAME_ANOTHER}") from error
    if exists and path.is_dir():
        raise StoreUnusable(f"{path} is a directory; a file is meant. {_NAME_ANOTHER}")
    writable = os.access(path.parent, os.W_OK) and (not exists or os.access(path, os.W_OK))
    if not exists and not writable:
        raise NotWritable(f"{path.parent} cannot be written. {_NAME_ANOTHER}")
    return Place(URL.create("sqlite", database=str(path)), str(path), path, read_only=not writable)


def connect(where: Place) -> Engine:
    """An engine for the place; nothing is opened yet. Raises StoreUnusable without the driver."""
    if where.url.drivername != "sqlite":
        try:
            return create_engine(where.url, connect_args={"connect_timeout": 10})
        except ModuleNotFoundError:
            raise StoreUnusable(
                f"{where.shown} needs the PostgreSQL driver: pip install 'training-planner[postgres]'"
            ) from None
    if where.path is None:
        engine = create_engine(MEMORY, poolclass=StaticPool)
    elif where.read_only:
        # A WAL store in a directory that cannot be written opens only as immutable, unless a writer is at it.
        busy = where.path.with_name(where.path.name + "-wal").exists()
        query = {"uri": "true"} | ({"mode": "ro"} if busy else {"immutable": "1"})
        engine = create_engine(URL.create("sqlite", database=where.path.absolute().as_uri(), query=query))
    else:
        engine = create_engine(where.url)
    event.listen(engine, "connect", _take_over_transactions)
    event.listen(engine, "begin", _begin)
    return engine


def _take_over_transactions(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_SECONDS * 1000}")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A transaction that may write: committed at the end, rolled back on an error."""
    with engine.execution_options(writes=True).begin() as connection:
        yield connection


def use_write_ahead_log(engine: Engine) -> None:
    """Let readers and one writer work side by side. Best effort: whoever holds the file now has the say."""
    from sqlite3 import OperationalError

    raw = engine.raw_connection()
    try:
        raw.cursor().execute("PRAGMA journal_mode = WAL")
    except OperationalError as error:
        if "locked" not in str(error):
            raise
    finally:
        raw.close()


@contextmanager
def explained(where: Place) -> Iterator[None]:
    """Turn what the database says into what happened, where, and what to do next."""
    try:
        yield
    except DBAPIError as error:
        said = " ".join(str(error.orig).split())
        raise _explain(where, said) from error
    except SQLAlchemyError as error:
        raise StoreUnusable(f"{where.shown}: {' '.join(str(error).split())[:200]}") from error


def _explain(where: Place, said: str) -> StoreUnusable:
    if "not a database" in said or "malformed" in said or "corrupt" in said:
        return StoreUnusable(
            f"{where.shown} is damaged or no price store ({said}); it was left as it is. "
            "Move it away to have a new one made from the packaged prices, or put back a copy."
        )
    if "locked" in said or "busy" in said:
        return StoreUnusable(
            f"{where.shown} has been locked by another process for {_BUSY_SECONDS} s. Wait for it, or end it."
        )
    if "unable to open" in said or "readonly" in said or "read-only" in said:
        return NotWritable(f"{where.shown} cannot be opened for writing ({said}). {_NAME_ANOTHER}")
    if "full" in said:
        return StoreUnusable(f"{where.shown}: no space is left on its disk ({said}). Nothing was changed.")
    if where.path is None and where.url.drivername != "sqlite":
        return StoreUnusable(
            f"{where.shown}: {said[:200]}. Check that the server runs and that {ENVIRONMENT} is right."
        )
    return StoreUnusable(f"{where.shown}: {said[:200]}. {_NAME_ANOTHER}")
