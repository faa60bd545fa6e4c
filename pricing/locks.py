"""One writer at a time: a refresh holds a lock that ends with its process, however that ends.

A lock that has to be cleaned up after a crash is worse than none. An advisory lock of the operating system
(SQLite) or of a PostgreSQL session is let go when its holder dies, so no lease and no heartbeat is needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from sqlalchemy import Engine, text

from .connect import Place
from .errors import StoreUnusable

# Any constant of ours; another than the one that guards the making of a store.
_REFRESH_LOCK = 7281106330902


class RefreshRunning(StoreUnusable):
    """Another refresh of the same store is at work; what it stores is as good as ours."""


@contextmanager
def only_refresher(engine: Engine, where: Place) -> Iterator[None]:
    """Hold the store's refresh lock. Raises RefreshRunning at once when another process holds it."""
    if where.path is not None:
        with _file_lock(where.path.with_name(where.path.name + ".refresh-lock"), where.shown):
            yield
    elif where.url.drivername == "sqlite":
        yield  # in memory: nobody else can see it
    else:
        with _session_lock(engine, where.shown):
            yield


@contextmanager
def _file_lock(path: Path, shown: str) -> Iterator[None]:
    try:
        file = path.open("a+", encoding="ascii")
    except OSError as error:
        raise StoreUnusable(f"{path} cannot be made ({error.strerror}), so {shown} stays as it is.") from None
    with file:
        if not _try_to_lock(file):
            file.seek(0)
            holder = file.read(20).strip()
            raise RefreshRunning(_running(shown, f", process {holder}" if holder.isdigit() else ""))
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        # The file stays: unlinking it would let two processes lock two files of one name.
        yield


def _try_to_lock(file: IO[str]) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows
        return _try_to_lock_on_windows(file)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _try_to_lock_on_windows(file: IO[str]) -> bool:
    import importlib

    msvcrt = importlib.import_module("msvcrt")
    # One byte far behind the text, so that others can still read who holds it.
    file.seek(2**20)
    try:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    except OSError:
        return False
    return True


@contextmanager
def _session_lock(engine: Engine, shown: str) -> Iterator[None]:
    with engine.connect() as connection:
        found = connection.execute(text("SELECT pg_try_advisory_lock(:lock)"), {"lock": _REFRESH_LOCK})
        if not found.scalar_one():
            raise RefreshRunning(_running(shown, ""))
        # An open transaction would keep old row versions alive for as long as the fetching takes.
        connection.commit()
        try:
            yield
        finally:
            connection.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": _REFRESH_LOCK})
            connection.commit()


def _running(shown: str, holder: str) -> str:
    return f"{shown} is being refreshed already{holder}; nothing was done. Its prices will be there shortly."
