"""A store of every earlier schema is brought to the newest with all of its rows."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine

from planner.pricing import migrations, snapshot
from planner.pricing.offer import FIELDS
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
        columns = ("observation_id", "price_id", *FIELDS)
        connection.exec_driver_sql(
            f"INSERT INTO observations ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
            [offer.to_row() for offer in snapshot.offers()],
        )
    engine.dispose()


@pytest.mark.parametrize("revision", ["0001", "0002"])
def test_a_store_of_an_earlier_schema_is_upgraded_with_every_row(
    tmp_path: Path, loaded: PriceStore, revision: str
) -> None:
    path = tmp_path / "prices.sqlite"
    _store_of_schema(revision, path)
    with PriceStore.open(str(path)) as store:
        assert len(store.history()) == len(snapshot.offers())
        assert store.fetches() == ()
        assert store.latest() == loaded.latest()
        assert store.lost_rows() == 0
        assert {offer.observation_id for offer in store.history()} == {
            offer.observation_id for offer in snapshot.offers()
        }
    with closing(sqlite3.connect(path)) as plain:
        assert plain.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone() == (HEAD,)
        indexes = {name for (name,) in plain.execute("SELECT name FROM sqlite_master WHERE type = 'index'")}
    assert {"prices_by_item", "observations_by_source", "fetches_by_source"} <= indexes
