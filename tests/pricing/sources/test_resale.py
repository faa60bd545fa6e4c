"""planner.pricing.sources.resale: a measured curve with a band, held to series that it has not seen."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.pricing import checks
from planner.pricing.import_files import read_price_file
from planner.pricing.sources.resale import FEWEST_SALES, Sale, resale_curve, sales_of
from planner.pricing.store import PriceStore

NOW = datetime(2026, 11, 30, tzinfo=UTC)
START = date(2022, 1, 1)


def months(*amounts: float) -> list[Sale]:
    return [
        Sale(START + timedelta(days=30 * number), Decimal(str(round(amount, 2))))
        for number, amount in enumerate(amounts)
    ]


def test_a_steady_fall_is_found_and_fades() -> None:
    curve = resale_curve(months(*(1000 * 0.7 ** (30 * n / 365.25) for n in range(24))))
    assert curve is not None
    assert math.isclose(curve.per_year, 0.7, rel_tol=1e-3)
    now = float(curve.at(curve.last)[1])
    assert math.isclose(now, 1000 * 0.7 ** (690 / 365.25), rel_tol=0.01)
    soon, later = (float(curve.at(curve.last + timedelta(days=days))[1]) for days in (37, 3653))
    assert math.isclose(soon / now, 0.7**0.1, rel_tol=0.01)
    assert math.isclose(later / now, 0.7**1.5, rel_tol=0.01)


def test_one_odd_month_does_not_turn_the_curve() -> None:
    steady = [1000 * 0.7 ** (30 * n / 365.25) for n in range(24)]
    plain, odd = resale_curve(months(*steady)), resale_curve(months(*steady[:-1], 5000))
    assert plain is not None
    assert odd is not None
    assert math.isclose(plain.per_year, odd.per_year, rel_tol=0.05)


def test_too_few_sales_say_nothing() -> None:
    assert resale_curve(months(*[500.0] * (FEWEST_SALES - 1))) is None
    assert resale_curve([Sale(START, Decimal(500))] * 10) is None, "one day has no slope"


def test_a_card_may_gain_value_but_not_without_bound() -> None:
    curve = resale_curve(months(100, 200, 400, 800, 1600))
    assert curve is not None
    assert math.isclose(curve.per_year, 1.6)


@given(
    st.lists(st.decimals(Decimal(1), Decimal(50_000), places=2), min_size=FEWEST_SALES, max_size=30),
    st.integers(-2000, 4000),
)
def test_the_band_holds_the_middle_is_positive_and_widens_with_time(
    amounts: list[Decimal], days: int
) -> None:
    sales = [Sale(START + timedelta(days=30 * n), amount) for n, amount in enumerate(amounts)]
    curve = resale_curve(sales)
    assert curve is not None
    low, middle, high = curve.at(START + timedelta(days=days))
    assert 0 <= low <= middle <= high
    near, far = curve.last + timedelta(days=30), curve.last + timedelta(days=700)
    widths = []
    for day in (near, far):
        low, middle, high = curve.at(day)
        widths.append(float(high) / max(float(low), 0.01))
    if float(curve.at(far)[0]) > 1:
        assert widths[1] > widths[0]


def test_the_order_of_sales_changes_nothing() -> None:
    sales = months(900, 850, 870, 800, 790, 700)
    assert resale_curve(sales) == resale_curve(sales[::-1])


def test_recorded_sold_prices_read_by_month(recorded: Path) -> None:
    path = recorded / "retail" / "ebay_us_gpu_monthly_2021-10_2023-11.csv"
    found = read_price_file(path, fetched_at=NOW)
    assert (found.form, found.bad) == ("sold-csv", ())
    series = {(o.item, o.observed_at): o for o in found.offers}
    april = series["rtx-3090-24gb", datetime(2022, 4, 1, tzinfo=UTC)]
    assert (april.amount, april.sample_n, april.kind) == (Decimal(1770), 999, "resale")
    assert checks.errors(found.offers) == ()


def test_the_curve_of_the_3090_to_2023_holds_what_was_paid_in_2024(recorded: Path) -> None:
    """Sold means of 2024 lay between 664 and 776 USD (tables of completed sales, monthly)."""
    path = recorded / "retail" / "ebay_us_gpu_monthly_2021-10_2023-11.csv"
    offers = [o for o in read_price_file(path, fetched_at=NOW).offers if o.item == "rtx-3090-24gb"]
    curve = resale_curve(sales_of(offers))
    assert curve is not None
    low, _, high = curve.at(date(2024, 7, 1))
    assert low < 664
    assert high > 776


def test_stored_series_give_curves(loaded: PriceStore) -> None:
    curve = resale_curve(sales_of(loaded.history(item="rtx-3090-24gb", kind="resale")))
    assert curve is not None
    low, middle, high = curve.at(date(2026, 12, 1))
    assert 100 < low < middle < high < 3000


@pytest.mark.parametrize("month", ["2022-04", "Floreal 1794", "April", "April 22"])
def test_a_month_that_is_none_is_a_bad_row(tmp_path: Path, month: str) -> None:
    path = tmp_path / "sold.csv"
    path.write_text(f'GPU,eBay Price,QTY Sold,Month\nGeForce RTX 3090,"$1,770",999,{month}\n')
    found = read_price_file(path, fetched_at=NOW)
    assert found.bad == (("2", "no month such as April 2022"),)
