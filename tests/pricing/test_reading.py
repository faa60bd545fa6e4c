"""Reading a store file directly gives what the store gives, and leaves trouble to it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from planner.pricing.errors import StoreUnusable
from planner.pricing.reading import SqliteFile, open_for_reading
from planner.pricing.store import PriceStore


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "prices.sqlite"
    PriceStore.open(str(path)).close()
    return path


@pytest.mark.parametrize("form", ["{}", "sqlite:///{}"])
def test_a_file_that_is_up_to_date_is_read_directly(file: Path, form: str) -> None:
    with open_for_reading(form.format(file)) as reader:
        assert isinstance(reader, SqliteFile)


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"as_of": date(2026, 6, 30)},
        {"kind": "resale"},
        {"item": "p4d.24xlarge", "as_of": date(2026, 12, 1)},
        {"provider": ["aws", "gcp"], "contract": "spot"},
        {"item": []},
    ],
)
def test_it_answers_what_the_store_answers(file: Path, filters: dict[str, object]) -> None:
    with PriceStore.open(str(file)) as store, open_for_reading(str(file)) as reader:
        assert reader.latest(**filters) == store.latest(**filters)  # type: ignore[arg-type]
        assert reader.history(**filters) == store.history(**filters)  # type: ignore[arg-type]


def test_a_store_that_is_not_there_is_made(tmp_path: Path) -> None:
    with open_for_reading(str(tmp_path / "new.sqlite")) as reader:
        assert isinstance(reader, PriceStore)
        assert reader.latest(kind="electricity")


def test_a_store_without_this_versions_packaged_prices_is_given_them(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE loads SET content_sha256 = 'older'")
    with open_for_reading(str(file)) as reader:
        assert isinstance(reader, PriceStore)


def test_a_file_of_another_program_is_explained(tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    with pytest.raises(StoreUnusable, match="another program"):
        open_for_reading(str(other))


def test_a_row_that_is_no_offer_is_refused_and_not_read_past(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE observations SET amount = '-1' WHERE kind = 'electricity'")
    with (
        open_for_reading(str(file)) as reader,
        pytest.raises(StoreUnusable, match="holds a row that is no offer"),
    ):
        reader.latest(kind="electricity")


def test_reading_a_file_directly_imports_no_sqlalchemy(file: Path) -> None:
    code = (
        "import sys; from planner.pricing.reading import open_for_reading\n"
        f"with open_for_reading({str(file)!r}) as reader: assert reader.latest(kind='resale')\n"
        "print('sqlalchemy' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "False"


def test_a_reader_sees_one_moment_while_another_process_appends(file: Path) -> None:
    with open_for_reading(str(file)) as reader:
        before = len(reader.history())
        with sqlite3.connect(file) as connection:
            connection.execute(
                "INSERT INTO loads VALUES ('another', '2026-12-01T00:00:00.000000Z', 0)",
            )
            connection.execute("DELETE FROM observations WHERE kind = 'electricity'")
        assert len(reader.history()) == before
