"""Where the price store is looked for, before any database library is imported."""

from __future__ import annotations

import os
from pathlib import Path

ENVIRONMENT = "PLANNER_STORE_URL"
_SQLITE = "sqlite:///"


def default_address() -> str:
    """The SQLite file in the user's data directory."""
    from platformdirs import user_data_path

    return str(user_data_path("training-planner") / "prices.sqlite")


def address_in_force(url: str | None = None) -> str:
    """`url`, else PLANNER_STORE_URL, else the default."""
    return url or os.environ.get(ENVIRONMENT) or default_address()


def sqlite_file(url: str | None = None) -> Path | None:
    """The SQLite file that `url`, else PLANNER_STORE_URL, else the default names; None for anything else."""
    named = address_in_force(url)
    if "://" not in named:
        return Path(named).expanduser()
    path = named.removeprefix(_SQLITE)
    return Path(path).expanduser() if path != named and path not in ("", ":memory:") else None
