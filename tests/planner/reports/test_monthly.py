"""Months of a ledger add up to it and leave no month out."""

from __future__ import annotations

import itertools
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from planner.reports.monthly import months

payments = st.lists(
    st.builds(
        lambda year, month, day, kind, cents: {
            "due": f"{year}-{month:02d}-{day:02d}T23:30:00Z",
            "category": kind,
            "amount": str(Decimal(cents) / 1000),
        },
        st.integers(2026, 2029),
        st.integers(1, 12),
        st.integers(1, 28),
        st.sampled_from(["compute", "purchase", "resale"]),
        st.integers(-(10**9), 10**9),
    ),
    max_size=30,
)


@given(payments)
def test_the_months_add_up_to_the_ledger_and_follow_each_other(ledger: list[dict[str, str]]) -> None:
    found = months(ledger, "UTC")
    assert sum((month.total for month in found), Decimal(0)) == sum(Decimal(p["amount"]) for p in ledger)
    for before, after in itertools.pairwise(found):
        year, month = map(int, before.name.split("-"))
        assert after.name == (f"{year}-{month + 1:02d}" if month < 12 else f"{year + 1}-01")


def test_a_payment_belongs_to_the_month_of_the_schedules_time_zone() -> None:
    late = [{"due": "2027-01-31T23:30:00Z", "category": "compute", "amount": "1.00"}]
    assert [month.name for month in months(late, "UTC")] == ["2027-01"]
    assert [month.name for month in months(late, "Europe/Berlin")] == ["2027-02"]


def test_nothing_to_pay_has_no_month() -> None:
    assert months([], "UTC") == ()
