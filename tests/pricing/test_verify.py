"""planner.pricing.verify: a store or file that breaks an invariant is found out."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from made_up_sources import MovableClock, context, saying
from priced import JUNE, offer

from planner.pricing import snapshot
from planner.pricing.csv_files import write_offers
from planner.pricing.refresh import refresh
from planner.pricing.store import PriceStore
from planner.pricing.verify import verify_file, verify_store


def test_the_packaged_prices_hold_every_invariant(loaded: PriceStore) -> None:
    found = verify_store(loaded)
    assert (found.rows, found.errors) == (len(snapshot.offers()), 0)


def test_a_file_that_breaks_an_invariant_is_found_out(tmp_path: Path) -> None:
    path = tmp_path / "offers.csv"
    write_offers(path, [offer(), replace(offer(), unit="kwh")])
    found = verify_file(path)
    assert found.errors == 1
    assert (found.findings[0].rule, found.findings[0].item) == ("unit", "p4d.24xlarge")


def test_p3_an_amount_changed_behind_our_back_is_found_out(tmp_path: Path) -> None:
    path = tmp_path / "prices.sqlite"
    with PriceStore.open(str(path)) as store:
        assert verify_store(store).errors == 0
    with closing(sqlite3.connect(path)) as plain, plain:
        changed = "UPDATE observations SET amount = '2.1957642' WHERE item = ? AND amount = '21.957642'"
        assert plain.execute(changed, ["p4d.24xlarge"]).rowcount > 0
    with PriceStore.open(str(path)) as store:
        rules = {found.rule for found in verify_store(store).findings if found.severity == "error"}
    assert "hash" in rules


@pytest.mark.parametrize("column", ["observed_at", "currency", "unit", "gpu_count"])
def test_p3_a_row_that_reads_no_more_is_an_error_not_a_crash(tmp_path: Path, column: str) -> None:
    path = tmp_path / "prices.sqlite"
    PriceStore.open(str(path)).close()
    with closing(sqlite3.connect(path)) as plain, plain:
        plain.execute(f"UPDATE observations SET {column} = '-' WHERE item = 'p5.48xlarge'")
    with PriceStore.open(str(path)) as store:
        found = verify_store(store)
    assert found.errors >= 1
    assert {each.item for each in found.findings if each.severity == "error"} == {"p5.48xlarge"}


def test_a_price_whose_raw_answer_was_deleted_can_no_longer_be_traced(tmp_path: Path) -> None:
    with PriceStore.open(str(tmp_path / "prices.sqlite")) as store:
        said = offer(item="made", amount=Decimal(20), observed_at=JUNE)
        refresh(store, [saying("made", said)], context(MovableClock()))
        assert verify_store(store).findings == ()
        (stored,) = store.latest(item="made")
        assert store.raw_answers is not None
        store.raw_answers.path(str(stored.raw_sha256)).unlink()
        (found,) = verify_store(store).findings
    assert (found.rule, found.severity, found.item) == ("raw-answer", "warning", "made")
