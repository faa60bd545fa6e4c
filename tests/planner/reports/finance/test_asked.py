from __future__ import annotations

from decimal import Decimal

import pytest

from planner.errors import UsageError
from planner.reports.finance.asked import dialect_of, policy_of
from planner.reports.finance.csv_files import Dialect
from planner.reports.finance.policy import Policy


def test_every_field_of_the_policy_can_be_asked_for() -> None:
    given = {
        "depreciation": "macrs", "factor": "1.5", "salvage_share": "10 %", "convention": "half_year",
        "tax_year_start": "7", "fiscal_year_start": "4", "threshold": "5000", "discount_rate": "0.08",
        "life_months": "36", "focus_version": "1.4", "account": "training",
    }  # fmt: skip
    assert policy_of(given) == Policy(
        "macrs", Decimal("1.5"), Decimal("0.1"), "half_year", 7, 4, Decimal(5000), Decimal("0.08"), 36, "1.4",
        "training",
    )  # fmt: skip
    assert set(given) == set(Policy.__dataclass_fields__)
    assert policy_of(dict.fromkeys(given)) == Policy()


def test_a_dialect_is_changed_in_what_was_said_alone() -> None:
    assert dialect_of("excel-eu") == Dialect(bom=True, separator=";", decimal=",")
    assert dialect_of("excel-eu", bom=False, decimal_mark="point") == Dialect(separator=";")
    assert dialect_of("plain", separator="tab") == Dialect(separator="\t")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("depreciation", "marcs", 'did you mean "macrs"'),
        ("factor", "0.5", "--factor 0.5: must lie between 1 and 4"),
        ("fiscal_year_start", "13", "--fiscal-year-start 13: a whole number from 1 to 12"),
        ("discount_rate", "lots", "--discount-rate lots: must be a number"),
        ("account", " ", "a name is meant"),
    ],
)
def test_what_does_not_read_is_answered_with_flag_value_and_what_is_meant(
    key: str, value: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        policy_of({key: value})


def test_a_comma_does_not_do_two_things_at_once() -> None:
    with pytest.raises(UsageError, match="--separator semicolon"):
        dialect_of("plain", decimal_mark="comma")
