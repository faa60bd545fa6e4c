"""A store of every earlier schema is brought to the newest with all of its rows."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine

from planner.pricing import migrations, snapshot
from planner.pricing.prepare import insert
from planner.pricing.schema import HEAD, VERSION_TABLE
from planner.pricing.store import PriceStore


def _store_of_schema(revision: str, path: Path) -> None:
    """A store as an earlier planner left it."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.set_main_option("path_separator", "os")
    config.attributes["version_table"] = VERSION_TABLE
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        insert(connection, snapshot.offers())
    engine.dispose()


def test_a_store_of_schema_0001_is_upgraded_with_every_row(tmp_path: Path) -> None:
    path = tmp_path / "prices.sqlite"
    _store_of_schema("0001", path)
    with PriceStore.open(str(path)) as store:
        assert len(store.history()) == len(snapshot.offers())
        assert store.fetches() == ()
        assert {offer.observation_id for offer in store.history()} == {
            offer.observation_id for offer in snapshot.offers()
        }
    with closing(sqlite3.connect(path)) as plain:
        assert plain.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone() == (HEAD,)
        indexes = {name for (name,) in plain.execute("SELECT name FROM sqlite_master WHERE type = 'index'")}
    assert {"observations_by_item", "observations_by_source", "fetches_by_source"} <= indexes
