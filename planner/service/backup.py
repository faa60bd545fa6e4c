"""A copy of everything a SQLite service keeps, made while it runs, and put back whole."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from planner.errors import UsageError
from planner.pricing.address import sqlite_file


def back_up(file: Path) -> dict[str, str]:
    """Copy the store into `file` as of one moment. Raises UsageError."""
    store = _store()
    if file.exists():
        raise UsageError(f"{file} is there already; name a new file", "file")
    if not file.parent.is_dir():
        raise UsageError(f"{file.parent} is no folder", "file")
    with tempfile.TemporaryDirectory(dir=file.parent) as made:
        half = Path(made) / "copy.sqlite"
        with closing(sqlite3.connect(store)) as source, closing(sqlite3.connect(half)) as target:
            source.backup(target)
            # One file that can be carried away: no -wal beside it.
            target.execute("PRAGMA journal_mode = DELETE")
        _check(half)
        os.link(half, file)
    return {"store": str(store), "backup": str(file)}


def put_back(file: Path) -> dict[str, str]:
    """Put a backup in the store's place; what was there is kept beside it. Raises UsageError."""
    store = _store(must_exist=False)
    if not file.is_file():
        raise UsageError(f"{file} is no file", "file")
    _check(file)
    store.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=store.parent) as made:
        half = Path(made) / "copy.sqlite"
        shutil.copyfile(file, half)
        aside = ""
        if store.exists():
            aside = f"{store}.before-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
            for tail in ("", "-wal", "-shm"):
                if Path(f"{store}{tail}").exists():
                    os.replace(f"{store}{tail}", f"{aside}{tail}")
        os.replace(half, store)
    return {"store": str(store), "restored_from": str(file), **({"kept_aside": aside} if aside else {})}


def _store(must_exist: bool = True) -> Path:
    store = sqlite_file()
    if store is None:
        raise UsageError("the store is no SQLite file; of PostgreSQL use pg_dump and pg_restore", "store_url")
    if must_exist and not store.is_file():
        raise UsageError(f"{store} is not there yet: nothing to back up", "store_url")
    return store


def _check(file: Path) -> None:
    """Raises UsageError for a file that is damaged or holds no prices."""
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as opened:
            sound = opened.execute("PRAGMA integrity_check").fetchone()[0]
            tables = {row[0] for row in opened.execute("SELECT name FROM sqlite_master")}
    except sqlite3.DatabaseError as error:
        raise UsageError(f"{file} is no backup: {error}", "file") from error
    if sound != "ok" or "observations" not in tables:
        raise UsageError(f"{file} is no sound backup of a planner ({sound})", "file")
