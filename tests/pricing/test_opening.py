"""Opening a price store: first use, newer snapshots, two at once, killed half-way, and files of others."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from priced import offer

from planner.pricing import migrations, schema, snapshot
from planner.pricing.connect import place
from planner.pricing.errors import StoreUnusable
from planner.pricing.offer import FIELDS
from planner.pricing.store import PriceStore

_OPEN = "from planner.pricing.store import PriceStore; print(len(PriceStore.open().history()))"
# Dies inside the transaction, with some rows of the snapshot inserted and the rest not.
_DIE_HALF_WAY = """
import os, signal
from planner.pricing import prepare, snapshot
whole = snapshot.offers
def half():
    offers = whole()
    yield from offers[: len(offers) // 2]
    os.kill(os.getpid(), signal.SIGKILL)
insert = prepare.insert
def by_one(connection, offers):
    for offer in offers:
        insert(connection, [offer])
prepare.insert = by_one
snapshot.offers = half
from planner.pricing.store import PriceStore
PriceStore.open()
"""


def _python(code: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "prices.sqlite"
    monkeypatch.setenv("PLANNER_STORE_URL", f"sqlite:///{path}")
    return path


def test_first_use_makes_the_file_and_loads_every_packaged_price(address: Path) -> None:
    with PriceStore.open() as store:
        assert set(store.history()) == set(snapshot.offers())
        assert store.where == str(address)
        assert store.warnings == ()
    with sqlite3.connect(address) as raw:
        assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_store_that_is_up_to_date_opens_without_alembic(address: Path) -> None:
    PriceStore.open().close()
    child = _python(
        f"import sys; {_OPEN}; print([name for name in ('alembic', 'psycopg') if name in sys.modules])"
    )
    out, err = child.communicate()
    assert out.split("\n")[1] == "[]", err


def test_the_default_place_is_the_users_data_directory(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLANNER_STORE_URL")
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    with PriceStore.open() as store:
        assert store.warnings == ()
    assert Path(store.where).is_file()
    assert "training-planner" in store.where


def test_where_the_home_cannot_be_written_prices_are_kept_in_memory_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PLANNER_STORE_URL")
    monkeypatch.setattr("planner.pricing.store.default_address", lambda: "/proc/nowhere/prices.sqlite")
    with PriceStore.open() as store:
        assert store.latest(item="p4d.24xlarge")
    (warning,) = store.warnings
    assert "in memory for this run only" in warning
    assert "/proc/nowhere" in warning


def test_a_place_that_was_named_and_cannot_be_written_is_an_error_not_a_store_in_memory() -> None:
    with pytest.raises(StoreUnusable, match="/proc/nowhere cannot be made"):
        PriceStore.open("/proc/nowhere/prices.sqlite")


def test_a_store_that_can_only_be_read_is_read(address: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    PriceStore.open().close()
    monkeypatch.setattr("planner.pricing.connect.os.access", lambda *_: False)
    with PriceStore.open() as store:
        assert store.latest(item="p4d.24xlarge")
        with pytest.raises(StoreUnusable, match="can be read but not written"):
            store.append([offer()])
    assert not address.with_name("prices.sqlite-wal").exists()


# --- newer snapshots and schemas


def test_a_newer_packaged_snapshot_adds_its_rows_once(address: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with PriceStore.open() as store:
        before = store.history()
    monkeypatch.setattr(snapshot, "content_sha256", lambda: "newer")
    monkeypatch.setattr(snapshot, "offers", lambda: (*before, offer(item="new-thing")))
    for _ in range(2):
        with PriceStore.open() as store:
            assert set(store.history()) == {*before, offer(item="new-thing")}
    with sqlite3.connect(address) as raw:
        assert raw.execute("SELECT rows_added FROM loads ORDER BY rows_added").fetchall() == [
            (1,),
            (len(before),),
        ]


def test_a_store_of_a_newer_planner_is_refused_untouched(address: Path) -> None:
    PriceStore.open().close()
    with sqlite3.connect(address) as raw:
        raw.execute(f"UPDATE {schema.VERSION_TABLE} SET version_num = '9999'")
    with pytest.raises(StoreUnusable, match=r"made by a newer planner \(schema 9999"):
        PriceStore.open()
    with sqlite3.connect(address) as raw:
        assert raw.execute("SELECT count(*) FROM observations").fetchone() == (len(snapshot.offers()),)


def test_the_constant_head_is_the_newest_migration() -> None:
    assert migrations.heads() == (schema.HEAD,)


def test_the_table_has_the_fields_of_an_offer(address: Path) -> None:
    PriceStore.open().close()
    with sqlite3.connect(address) as raw:
        columns = {row[1] for row in raw.execute("PRAGMA table_info(observations)")}
    assert columns == {"observation_id", "price_id", *FIELDS}


# --- two at once, and killed half-way


def test_processes_that_start_at_once_on_no_store_both_get_a_whole_one(address: Path) -> None:
    children = [_python(_OPEN) for _ in range(2)]
    answers = [child.communicate() for child in children]
    assert [child.returncode for child in children] == [0, 0], answers
    assert [out.strip() for out, _ in answers] == [str(len(snapshot.offers()))] * 2
    with sqlite3.connect(address) as raw:
        assert raw.execute("SELECT count(*) FROM loads").fetchone() == (1,)


def test_a_first_use_killed_half_way_leaves_nothing_and_the_next_makes_it_whole(address: Path) -> None:
    child = _python(_DIE_HALF_WAY)
    _, err = child.communicate()
    assert child.returncode == -signal.SIGKILL, err
    with PriceStore.open() as store:
        assert set(store.history()) == set(snapshot.offers())


@pytest.mark.slow
def test_first_uses_killed_at_any_point_never_leave_a_torn_store(address: Path) -> None:
    """Kill after 0.2 to 1.2 s: before, during and after the transaction."""
    for step in range(20):
        for path in address.parent.glob("prices.sqlite*"):
            path.unlink()
        child = _python(_OPEN)
        try:
            child.wait(timeout=0.2 + step / 20)
        except subprocess.TimeoutExpired:
            child.kill()
        child.communicate()
        with PriceStore.open() as store:
            assert len(store.history()) == len(snapshot.offers())


# --- files that are no store


def test_a_damaged_file_is_named_and_left_as_it_is(address: Path) -> None:
    address.write_bytes(b"this is no database at all, and it is longer than a header of SQLite" * 40)
    before = address.read_bytes()
    with pytest.raises(StoreUnusable, match="damaged or no price store") as told:
        PriceStore.open()
    assert str(address) in str(told.value)
    assert "Move it away" in str(told.value)
    assert address.read_bytes() == before


def test_a_store_damaged_inside_is_named(address: Path) -> None:
    PriceStore.open().close()
    content = bytearray(address.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    address.write_bytes(content)
    with pytest.raises(StoreUnusable, match=r"damaged or no price store.*left as it is"):
        PriceStore.open().latest()


def test_the_database_of_another_program_is_refused_untouched(address: Path) -> None:
    with sqlite3.connect(address) as raw:
        raw.execute("CREATE TABLE holidays (day TEXT)")
    with pytest.raises(StoreUnusable, match=r'another program \(it has a table "holidays"'):
        PriceStore.open()
    with sqlite3.connect(address) as raw:
        assert raw.execute("SELECT name FROM sqlite_master").fetchall() == [("holidays",)]


def test_a_row_that_was_changed_by_hand_into_nonsense_is_not_believed(address: Path) -> None:
    PriceStore.open().close()
    with sqlite3.connect(address) as raw:
        raw.execute("UPDATE observations SET amount = '0' WHERE item = 'p4d.24xlarge'")
    with (
        PriceStore.open() as store,
        pytest.raises(StoreUnusable, match=r"holds a row that is no offer \(amount 0 of p4d"),
    ):
        store.latest(item="p4d.24xlarge")


def test_a_directory_and_an_unknown_kind_of_store_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="is a directory"):
        PriceStore.open(str(tmp_path))
    with pytest.raises(StoreUnusable, match='"mysql" is no kind of store'):
        PriceStore.open("mysql://localhost/prices")
    with pytest.raises(StoreUnusable, match="is no address of a store"):
        PriceStore.open("://")


def test_a_password_is_never_shown() -> None:
    shown = place("postgresql://planner:secret@127.0.0.1/prices").shown
    assert "secret" not in shown
    assert "127.0.0.1/prices" in shown


def test_a_path_may_hold_signs_that_mean_something_in_an_address(tmp_path: Path) -> None:
    path = tmp_path / "a b?c#d%20e" / "prices.sqlite"
    with PriceStore.open(str(path)) as store:
        assert store.latest(item="p4d.24xlarge")
    assert path.is_file()
