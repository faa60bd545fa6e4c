"""The folder as a whole: each file says the same, and one file says all."""

from __future__ import annotations

import csv
import hashlib
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from made_documents import document, payment

from planner.reports.finance.asked import dialect_of
from planner.reports.finance.policy import Policy
from planner.reports.finance.report import book_of, write

JANUARY, APRIL = datetime(2028, 1, 1, tzinfo=UTC), datetime(2028, 4, 1, tzinfo=UTC)


def plan() -> dict[str, Any]:
    """Compute in three months, a rig, a credit, and text that a spreadsheet would run."""
    lines = [
        payment("10.123456", "3.14159", datetime(2028, month, 9, tzinfo=UTC), project="=1+1", job="run")
        for month in (1, 2, 3)
    ]
    lines.append(payment("1", "-12.50", datetime(2028, 2, 1, tzinfo=UTC), description="-credit"))
    about = {"asset": "rig@made", "hardware": "rig", "provider": "own", "expenditure": "capital"}
    lines.append(payment("1", "4800", JANUARY, category="purchase", **about))
    return document(lines, starts=JANUARY, ends=APRIL)


def folder(tmp_path: Path, found: dict[str, Any], dialect: str = "plain", **policy: Any) -> Path:
    write(book_of(found), Policy(**policy), tmp_path / "finance", dialect_of(dialect))
    return tmp_path / "finance"


def test_the_manifest_names_every_file_with_its_hash(tmp_path: Path) -> None:
    made = folder(tmp_path, plan())
    listed = json.loads((made / "manifest.json").read_text())["files"]
    assert {file["name"] for file in listed} == {path.name for path in made.iterdir()} - {"manifest.json"}
    for file in listed:
        assert hashlib.sha256((made / file["name"]).read_bytes()).hexdigest() == file["sha256"]


def test_finance_json_holds_every_table_exactly_as_the_csv_files_do(tmp_path: Path) -> None:
    made = folder(tmp_path, plan())
    told = json.loads((made / "finance.json").read_text(encoding="utf-8"))
    named = {table["name"]: table for table in told["tables"]}
    files = {path.stem for path in made.glob("*.csv")} - {"focus_forecast_1.2"}
    assert set(named) == files
    for name, table in named.items():
        with (made / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        assert rows[0] == [column["name"] for column in table["columns"]]
        money = [at for at, column in enumerate(table["columns"]) if column["kind"] in ("money", "number")]
        assert [[row[at] for at in money] for row in rows[1:]] == [
            ["" if row[at] is None else row[at] for at in money] for row in table["rows"]
        ]
    assert told["total"] == str(sum(Decimal(line["amount"]) for line in plan()["front"][0]["ledger"]))


def test_one_plan_gives_the_same_bytes_each_time(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    first, second = folder(tmp_path, plan()), folder(tmp_path / "again", plan())
    assert {path.name: path.read_bytes() for path in first.iterdir()} == {
        path.name: path.read_bytes() for path in second.iterdir()
    }


def test_the_assumptions_name_policy_lives_and_how_is_counted(tmp_path: Path) -> None:
    found = plan()
    found["assumptions"] = [{"key": "pue", "text": "1.2", "source": "a page", "checked": "2026-12-01"}]
    made = folder(tmp_path, found, fiscal_year_start=4)
    with (made / "assumptions.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["Key"]: (row["Value"], row["Source"], row["Checked"]) for row in csv.DictReader(file)}
    assert rows["pue"] == ("1.2", "a page", "2026-12-01")
    assert rows["policy.fiscal_year_start"] == ("4", "given", "")
    assert rows["policy.depreciation"] == ("straight_line", "default of the report", "")
    assert rows["asset_life"][0] == "rig@made: 48 months"
    assert rows["asset_life"][1].startswith("assumption")


@pytest.mark.parametrize("months", [12, 60])
def test_a_life_that_is_given_holds_for_every_asset(tmp_path: Path, months: int) -> None:
    made = folder(tmp_path, plan(), life_months=months)
    with (made / "depreciation_schedule.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == months
    assert sum(Decimal(row["Depreciation"]) for row in rows) == 4800
