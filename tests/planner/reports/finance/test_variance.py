"""Plan against bill: CUR 2.0 and FOCUS rows read, unknown months empty, effects that add up."""

from __future__ import annotations

import csv
import gzip
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_documents import document, documents, payment

from planner.errors import UsageError
from planner.reports.finance.accrual import Accrual
from planner.reports.finance.actual import Billed, read_actual
from planner.reports.finance.policy import Policy
from planner.reports.finance.report import book_of
from planner.reports.finance.variance import bill_of, variance

JANUARY, MARCH = datetime(2027, 1, 1, tzinfo=UTC), datetime(2027, 3, 1, tzinfo=UTC)
CUR = {
    "line_item_usage_start_date": "2027-01-09 00:00:00.000", "line_item_line_item_type": "Usage",
    "line_item_unblended_cost": "440.0000000000", "line_item_currency_code": "USD",
    "line_item_usage_amount": "110.0", "pricing_unit": "Hrs", "product_region_code": "us-east-1",
    "product_instance_type": "p4d.24xlarge",
}  # fmt: skip
FOCUS = {
    "ChargePeriodStart": "2027-01-09T00:00:00Z", "ProviderName": "Amazon Web Services",
    "ChargeCategory": "Usage", "BilledCost": "440.00", "BillingCurrency": "USD", "RegionId": "us-east-1",
    "ConsumedQuantity": "110.0", "ConsumedUnit": "Hours",
    "SkuPriceDetails": '{"InstanceType":"p4d.24xlarge"}',
}  # fmt: skip


def plan() -> dict[str, Any]:
    """100 h at 5.00 each in January, and once more in February."""
    lines = [
        payment("100", "5", datetime(2027, month, 9, tzinfo=UTC), provider=provider)
        for month in (1, 2)
        for provider in ("aws", "own")
    ]
    return document(lines, starts=JANUARY, ends=MARCH)


def bill(folder: Path, *rows: dict[str, str], name: str = "bill.csv") -> Path:
    file = folder / name
    with gzip.open(file, "wt") if name.endswith(".gz") else file.open("w", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]))  # type: ignore[arg-type]
        writer.writeheader()
        writer.writerows(rows)
    return file


def found(actual: Any, planned: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    accrual = Accrual(book_of(planned or plan()), Policy())
    table = variance(accrual, bill_of(actual, accrual))
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows()]


@pytest.mark.parametrize("row", [CUR, FOCUS], ids=["cur-2.0", "focus"])
@pytest.mark.parametrize("name", ["bill.csv", "bill.csv.gz"])
def test_fewer_dollars_for_more_hours_is_a_price_effect_against_a_volume_effect(
    tmp_path: Path, row: dict[str, str], name: str
) -> None:
    first = found(read_actual(bill(tmp_path, row, name=name)))[0]
    assert (first["Provider"], first["Hardware"], first["Forecast"]) == ("aws", "p4d.24xlarge", 500)
    assert (first["Actual"], first["Variance"], first["VarianceShare"]) == (440, -60, Decimal("-0.12"))
    assert (first["PriceEffect"], first["VolumeEffect"], first["MixEffect"]) == (-110, 50, 0)


def test_what_the_bill_does_not_cover_is_unknown_and_not_zero(tmp_path: Path) -> None:
    rows = found(read_actual(bill(tmp_path, CUR)))
    unknown = [(row["Month"].month, row["Provider"]) for row in rows if row["Actual"] is None]
    assert unknown == [(1, "own"), (2, "aws"), (2, "own")]
    assert all(row["Variance"] is None for row in rows if row["Actual"] is None)


def test_a_bill_without_machines_is_compared_by_seller(tmp_path: Path) -> None:
    row = FOCUS | {"SkuPriceDetails": "", "RegionId": ""}
    first = found(read_actual(bill(tmp_path, row)))[0]
    assert (first["Hardware"], first["Region"], first["Variance"]) == (None, None, -60)


def test_tax_and_what_was_not_planned_stand_as_mix(tmp_path: Path) -> None:
    none = {"product_region_code": "", "product_instance_type": ""}
    tax = CUR | none | {"line_item_line_item_type": "Tax", "line_item_unblended_cost": "40"}
    rows = found(read_actual(bill(tmp_path, CUR, tax)))
    taxed = next(row for row in rows if row["ChargeCategory"] == "Tax")
    assert (taxed["Forecast"], taxed["Actual"], taxed["MixEffect"]) == (0, 40, 40)


def test_a_savings_plan_s_covered_usage_is_negated_and_its_fee_counted(tmp_path: Path) -> None:
    covered = CUR | {"line_item_line_item_type": "SavingsPlanCoveredUsage"}
    negation = CUR | {
        "line_item_line_item_type": "SavingsPlanNegation",
        "line_item_unblended_cost": "-440",
        "pricing_unit": "",
    }
    fee = CUR | {"line_item_line_item_type": "SavingsPlanRecurringFee", "line_item_unblended_cost": "300",
                 "product_instance_type": ""}  # fmt: skip
    rows = [row for row in found(read_actual(bill(tmp_path, covered, negation, fee))) if row["Actual"]]
    assert [(row["ChargeCategory"], row["Actual"]) for row in rows] == [("Purchase", 300)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"line_item_currency_code": "EUR"}, "the bill is in EUR, the plan in USD"),
        ({"line_item_unblended_cost": "lots"}, "line 2"),
        ({"line_item_line_item_type": "Gift"}, '"Gift" is not known'),
        ({"line_item_usage_start_date": "soon"}, "line 2"),
    ],
)
def test_a_bill_that_does_not_read_says_where(tmp_path: Path, change: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        found(read_actual(bill(tmp_path, CUR | change)))


def test_a_file_that_is_no_bill_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no bill"):
        list(read_actual(bill(tmp_path, {"price": "1"})))
    with pytest.raises(UsageError, match="Forecast: a plan, not a bill"):
        list(read_actual(bill(tmp_path, FOCUS | {"x_RecordType": "Forecast"})))
    with pytest.raises(UsageError, match="No such file"):
        list(read_actual(tmp_path / "none.csv"))


@given(
    planned=documents(),
    billed=st.lists(
        st.tuples(
            st.sampled_from(("aws", "gcp")), st.sampled_from(("p4d.24xlarge", "p5.48xlarge", "")),
            st.integers(0, 400), st.decimals("-99", "9999", places=10),
            st.one_of(st.none(), st.decimals("0.000001", "999", places=6)),
        )
    ),
)  # fmt: skip
def test_p_price_volume_and_mix_add_up_to_each_variance(planned: dict[str, Any], billed: list[Any]) -> None:
    rows = [
        Billed(JANUARY.replace(day=1 + day % 28, month=1 + day // 40), seller, "", machine, "Usage", amount,
               planned["currency"], hours)
        for seller, machine, day, amount, hours in billed
    ]  # fmt: skip
    compared = [row for row in found(rows, planned) if row["Actual"] is not None]
    for row in compared:
        assert row["PriceEffect"] + row["VolumeEffect"] + row["MixEffect"] == row["Variance"]
        assert row["Actual"] - row["Forecast"] == row["Variance"]
    assert sum(row["Actual"] for row in compared) == sum(row.amount for row in rows)
