"""The same store in PostgreSQL, in a database made and dropped by these tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from made_up_sources import MovableClock, context, saying
from priced import offer

from planner.pricing import snapshot
from planner.pricing.errors import StoreUnusable
from planner.pricing.locks import RefreshRunning
from planner.pricing.refresh import refresh
from planner.pricing.store import PriceStore

psycopg = pytest.importorskip("psycopg", reason="needs the extra [postgres]")

_SERVER = "host=127.0.0.1 port=5432 dbname=test connect_timeout=2"


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """The address of a new, empty database."""
    name = f"planner_prices_{os.getpid()}"
    try:
        server = psycopg.connect(_SERVER, autocommit=True)
    except psycopg.OperationalError as error:
        pytest.skip(f"no PostgreSQL answers at 127.0.0.1:5432 ({str(error).splitlines()[0]})")
    with server:
        server.execute(f"CREATE DATABASE {name}")
        try:
            yield f"postgresql://127.0.0.1:5432/{name}"
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_several_that_start_at_once_make_one_whole_store(database: str) -> None:
    def count() -> int:
        with PriceStore.open(database) as store:
            return len(store.history())

    with ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(count) for _ in range(3)]
    assert [answer.result() for answer in answers] == [len(snapshot.offers())] * 3


def test_both_databases_answer_the_same_in_the_same_order(database: str, loaded: PriceStore) -> None:
    with PriceStore.open(database) as store:
        for as_of in (None, date(2025, 5, 31)):
            assert store.latest(as_of) == loaded.latest(as_of)
        assert store.history() == loaded.history()
        assert store.append(loaded.history()) == 0


def test_a_server_that_does_not_answer_is_named_without_a_password() -> None:
    with pytest.raises(StoreUnusable, match="Check that the server runs") as told:
        PriceStore.open("postgresql://planner:secret@127.0.0.1:9/prices")
    assert "127.0.0.1:9" in str(told.value)
    assert "secret" not in str(told.value)


def test_a_refresh_stores_the_same_in_both_databases(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planner.pricing.store.default_address", lambda: str(tmp_path / "prices.sqlite"))
    seen = []
    for address in (database, str(tmp_path / "prices.sqlite")):
        clock = MovableClock()
        with PriceStore.open(address) as store:
            for amount in ("20.00", "12.00", "12.00", "12.00"):
                said = offer(provider="made", amount=Decimal(amount))
                report = refresh(store, [saying("made", said)], context(clock))
                clock.forward(hours=1)
            moved = [(move.what, move.offer.amount) for move in report.moves]
            seen.append(
                (moved, store.fetches(), store.history(provider="made"), store.latest(provider="made"))
            )
    assert seen[0] == seen[1]
    assert [each.amount for each in seen[0][3]] == [Decimal("12.00")]


def test_a_second_refresher_of_one_postgresql_store_says_so(database: str) -> None:
    with PriceStore.open(database) as first, PriceStore.open(database) as second:
        with first.only_refresher(), pytest.raises(RefreshRunning, match="nothing was done"):
            refresh(second, [], context(MovableClock()))
        assert refresh(second, [], context(MovableClock())).exit_code == 0
