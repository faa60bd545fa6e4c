"""FOCUS forecast rows: their sums against both views of a plan, and two checkers that are not ours."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from made_documents import document, documents, payment

from planner.reports.finance.accrual import Accrual
from planner.reports.finance.csv_files import DIALECTS, encoded
from planner.reports.finance.focus import focus_forecast
from planner.reports.finance.policy import DEPRECIATION, Policy
from planner.reports.finance.report import book_of

JANUARY, MARCH = datetime(2028, 1, 1, tzinfo=UTC), datetime(2028, 3, 1, tzinfo=UTC)
MONTH = datetime(2028, 2, 1, tzinfo=UTC)


def rows_of(found: Mapping[str, Any], **policy: Any) -> list[dict[str, str]]:
    accrual = Accrual(book_of(found), Policy(**policy))
    text = b"".join(encoded(focus_forecast(accrual), DIALECTS["excel-eu"])).decode()
    return list(csv.DictReader(text.splitlines()))


def total(rows: list[dict[str, str]], column: str) -> Decimal:
    return sum((Decimal(row[column]) for row in rows), Decimal(0))


def test_a_run_within_a_month_is_usage_billed_and_consumed_alike() -> None:
    one = payment("10", "3.5", datetime(2028, 1, 9, tzinfo=UTC), list_amount="40.00")
    (row,) = rows_of(document([one], starts=JANUARY, ends=MARCH))
    assert (row["ChargeCategory"], row["BilledCost"], row["EffectiveCost"]) == ("Usage", "35.00", "35.00")
    assert (row["ListCost"], row["ListUnitPrice"], row["ContractedUnitPrice"]) == ("40.00", "4.00", "3.50")
    assert (row["BillingPeriodStart"], row["BillingPeriodEnd"]) == (
        "2028-01-01T00:00:00Z",
        "2028-02-01T00:00:00Z",
    )
    assert row["x_RecordType"] == "Forecast"


def test_what_is_paid_ahead_is_a_purchase_and_then_usage_by_month_of_a_leap_year() -> None:
    ahead = payment("1", "600", JANUARY, expenditure="prepaid", start=JANUARY, end=MARCH)
    found = [
        (row["ChargeCategory"], row["BillingPeriodStart"][:7], row["BilledCost"], row["EffectiveCost"])
        for row in rows_of(document([ahead], starts=JANUARY, ends=MARCH))
    ]
    assert found == [
        ("Purchase", "2028-01", "600.00", "0.00"),
        ("Usage", "2028-01", "0.00", "310.00"),
        ("Usage", "2028-02", "0.00", "290.00"),
    ]


def test_a_sale_is_a_credit_and_an_adjustment_that_takes_the_book_value_out() -> None:
    about = {"asset": "rig@made", "hardware": "rig", "provider": "own", "unit": "rig"}
    bought = payment("1", "4800", JANUARY, category="purchase", expenditure="capital", **about)
    sold = payment("1", "-4000", MONTH, category="resale", expenditure="disposal", **about)
    purchase = {"asset": "rig@made", "count": 1, "usable": "2028-01-01T00:00:00Z", "life_months": 48}
    rows = rows_of(document([bought, sold], starts=JANUARY, ends=MARCH, purchases=[purchase]))
    assert [(row["ChargeCategory"], row["BilledCost"], row["EffectiveCost"]) for row in rows] == [
        ("Purchase", "4800.00", "0.00"),
        ("Credit", "-4000.00", "-4000.00"),
        ("Usage", "0.00", "100.00"),
        ("Usage", "0.00", "100.00"),
        ("Adjustment", "0.00", "4600.00"),
    ]


def test_a_promise_is_a_purchase_cut_into_what_is_used_and_what_is_not() -> None:
    line = payment("744", "2", MONTH.replace(day=1), category="commitment", start=JANUARY, end=MONTH,
                   description="promised spend compute", purchase_model="savings_plan", unit="h")  # fmt: skip
    line["due"] = "2028-01-31T23:59:59Z"
    promise = {"id": "compute", "provider": "aws", "kind": "savings_plan", "level_per_hour": "2",
               "discount": 0.5, "start": "2028-01-01T00:00:00Z", "end": "2028-02-01T00:00:00Z",
               "used_share": 0.75, "held": False}  # fmt: skip
    rows = rows_of(document([line], starts=JANUARY, ends=MARCH, commitments=[promise]))
    assert [
        (row["ChargeCategory"], row["CommitmentDiscountStatus"], row["EffectiveCost"], row["ListCost"])
        for row in rows
    ] == [
        ("Purchase", "", "0.00", "1488.00"),
        ("Usage", "Used", "1116.00", "2232.00"),
        ("Usage", "Unused", "372.00", "372.00"),
    ]


@pytest.mark.parametrize("version", ["1.2", "1.4"])
@pytest.mark.parametrize("method", DEPRECIATION)
@given(found=documents())
@settings(max_examples=20)
def test_p_focus_rows_add_up_to_cash_and_expense(version: str, method: str, found: dict[str, Any]) -> None:
    book = book_of(found)
    accrual = Accrual(book, Policy(depreciation=method))
    rows = rows_of(found, focus_version=version, depreciation=method)
    assert total(rows, "BilledCost") == book.total
    assert total(rows, "EffectiveCost") == sum((entry.amount for entry in accrual.entries), Decimal(0))
    bought: defaultdict[str, Decimal] = defaultdict(Decimal)
    for row in rows:
        amounts = {key: Decimal(row[f"{key}Cost"]) for key in ("Billed", "Effective", "List", "Contracted")}
        if row["ChargeCategory"] not in ("Credit", "Adjustment"):
            assert amounts["List"] >= amounts["Effective"]
            assert amounts["List"] >= amounts["Contracted"] >= amounts["Effective"]
        if row["CommitmentDiscountId"]:
            bought[row["CommitmentDiscountId"]] += amounts["Billed"] - amounts["Effective"]
    assert set(bought.values()) <= {Decimal(0)}


def made() -> dict[str, Any]:
    """One of each kind of row."""
    at = datetime(2028, 1, 9, tzinfo=UTC)
    asset = {"asset": "rig@made", "hardware": "rig", "provider": "own", "unit": "rig", "region": ""}
    lines = [
        payment("10", "3.5", at, list_amount="40.00", price_ids=["aws/p4d"], tags={"stage": "test"}),
        payment("4", "1.5", at, purchase_model="spot", price_ids=["aws/p4d/spot"]),
        payment("1", "600", JANUARY, expenditure="prepaid", start=JANUARY, end=MARCH),
        payment("1", "-12.50", at, description="=credit"),
        payment("50", "0.3", at, category="energy", provider="own", unit="kWh", region=""),
        payment("1", "80", at, category="hosting", provider="own", unit="rig-month", region=""),
        payment("1", "4800", JANUARY, category="purchase", expenditure="capital", **asset),
        payment("1", "-4000", MONTH, category="resale", expenditure="disposal", **asset),
        payment("744", "2", at, category="commitment", description="promised spend compute", start=JANUARY,
                end=MONTH, purchase_model="savings_plan", unit="h"),
    ]  # fmt: skip
    purchase = {"asset": "rig@made", "count": 1, "usable": "2028-01-01T00:00:00Z", "life_months": 48}
    promise = {"id": "compute", "provider": "aws", "kind": "savings_plan", "level_per_hour": "2",
               "discount": 0.5, "start": "2028-01-01T00:00:00Z", "end": "2028-02-01T00:00:00Z",
               "used_share": 0.75, "held": False}  # fmt: skip
    return document(lines, starts=JANUARY, ends=MARCH, purchases=[purchase], commitments=[promise])


def written(folder: Path, version: str) -> Path:
    file = folder / f"focus_forecast_{version}.csv"
    table = focus_forecast(Accrual(book_of(made()), Policy(focus_version=version)))
    file.write_bytes(b"".join(encoded(table, DIALECTS["plain"])))
    return file


def toolkit(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "focus_data_toolkit", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_focus_data_toolkit_finds_nothing_wrong_in_a_1_4_file(tmp_path: Path) -> None:
    file = written(tmp_path, "1.4")
    toolkit("validate", "--dataset", "cost-and-usage", str(file))
    assert "version=1.4" in toolkit("detect", str(file))


def test_focus_data_toolkit_knows_a_1_2_file_and_finds_nothing_wrong_once_its_sellers_are_renamed(
    tmp_path: Path,
) -> None:
    """Its rules are those of 1.4, which differ for these columns in two names only."""
    file = written(tmp_path, "1.2")
    assert "version=1.2" in toolkit("detect", str(file))
    renamed = tmp_path / "renamed.csv"
    head, _, rest = file.read_text().partition("\n")
    head = head.replace("ProviderName,PublisherName", "ServiceProviderName,HostProviderName")
    renamed.write_text(f"{head}\n{rest}")
    toolkit("validate", "--dataset", "cost-and-usage", str(renamed))


@pytest.mark.slow
def test_the_foundation_s_validator_fails_but_the_rule_that_nothing_can_meet(tmp_path: Path) -> None:
    """InvoiceId must be null (C-004) and must not be (C-005); both are always evaluated.

    Needs a Python of its own, 3.12 or newer: pip install focus-validator==2.2.1 'pyarrow<22', and its
    command in FOCUS_VALIDATOR or on PATH. It reads a list relative to the folder it is installed in.
    """
    command = os.environ.get("FOCUS_VALIDATOR") or shutil.which("focus-validator")
    if not command:
        pytest.skip("no focus-validator (Python 3.12): name its command in FOCUS_VALIDATOR")
    site = next((Path(command).resolve().parents[1] / "lib").glob("python*/site-packages"))
    file = written(tmp_path, "1.2")
    done = subprocess.run(
        [command, "--data-file", str(file), "--block-download", "--validate-version", "1.2"],
        cwd=site, capture_output=True, text=True, check=False,
    )  # fmt: skip
    passed = re.search(r"Pass: (\d+)", done.stdout)
    assert passed is not None, done.stdout + done.stderr
    assert int(passed[1]) >= 100, done.stdout
    failed = set(re.findall(r"(\S+): FAIL", done.stdout))
    assert failed <= {"InvoiceId-C-004-C", "InvoiceId-C-005-C"}, done.stdout
