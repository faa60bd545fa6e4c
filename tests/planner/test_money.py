"""Money is exact: rounded once in the quantity, never in product or sum."""

from __future__ import annotations

from decimal import Decimal, Inexact
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import money

AMOUNTS = st.decimals(min_value=-(10**9), max_value=10**9, places=8)


@given(st.lists(AMOUNTS, max_size=50))
def test_a_sum_is_exact_and_does_not_depend_on_order(amounts: list[Decimal]) -> None:
    assert Fraction(money.total(amounts)) == sum(map(Fraction, amounts))
    assert money.total(reversed(amounts)) == money.total(amounts)


@given(AMOUNTS, AMOUNTS)
def test_a_product_is_exact(a: Decimal, b: Decimal) -> None:
    assert Fraction(money.product(a, b)) == Fraction(a) * Fraction(b)


def test_a_product_that_would_be_rounded_is_refused() -> None:
    with pytest.raises(Inexact):
        money.product(Decimal("1." + "1" * 40), Decimal("1." + "3" * 40))


@given(AMOUNTS)
def test_text_reads_back_as_the_same_number_and_has_no_exponent(amount: Decimal) -> None:
    written = money.text(amount)
    assert Decimal(written) == amount
    assert "E" not in written
    assert len(written.partition(".")[2]) >= 2


def test_quantities_are_rounded_half_to_even() -> None:
    assert money.quantity(Decimal("0.0000005")) == 0
    assert money.quantity(Decimal("0.0000015")) == Decimal("0.000002")
