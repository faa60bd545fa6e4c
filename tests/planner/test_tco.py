"""Formulas of owning against the check values of textbooks, the IRS table and Epoch's decay."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import tco

RATES = st.decimals(min_value="0.001", max_value="0.5", places=4)


def test_macrs_of_ten_thousand_adds_up_to_it() -> None:
    years = tco.macrs_five_year(Decimal(10_000))
    assert [int(d) for d in years] == [2000, 3200, 1920, 1152, 1152, 576]
    assert sum(years) == 10_000


def test_epochs_decay_after_one_and_three_years() -> None:
    rate = Decimal("0.14") * Decimal(10).ln()
    assert round(tco.resale_value(Decimal(10_000), rate, Decimal(1)), 2) == Decimal("7244.36")
    assert round(tco.resale_value(Decimal(10_000), rate, Decimal(3)), 2) == Decimal("3801.89")


@given(RATES, st.integers(1, 10))
def test_the_annuity_is_worth_the_purchase_less_the_residual(rate: Decimal, years: int) -> None:
    yearly = tco.equivalent_annual_cost(
        Decimal(30_000), Decimal(6_000), rate, Decimal(years), operating_per_year=Decimal(0)
    )
    cash = [Decimal(-30_000)] + [Decimal(0)] * (12 * years)
    for year in range(1, years + 1):
        cash[12 * year] += yearly
    cash[-1] += Decimal(6_000)
    assert abs(tco.net_present_value(cash, rate)) < Decimal("0.0001")


def test_without_interest_the_annuity_is_straight_line() -> None:
    yearly = tco.equivalent_annual_cost(
        Decimal(10_000), Decimal(2_000), Decimal(0), Decimal(4), operating_per_year=Decimal(500)
    )
    assert yearly == 2_500 == tco.straight_line(Decimal(10_000), Decimal(2_000), 4)[0] + 500


def test_operating_cost_is_energy_with_pue_at_work_and_idle() -> None:
    """8760 h × 1.5 × (0.25 × 2 kW + 0.75 × 0.2 kW) × 0.10 = 854.10, and the rest on top."""
    assert (
        tco.operating_cost_per_year(
            electricity_price=Decimal("0.10"),
            pue=Decimal("1.5"),
            utilization=Decimal("0.25"),
            load_kw=Decimal(2),
            idle_kw=Decimal("0.2"),
            maintenance=Decimal(100),
            spares=Decimal(20),
            staff=Decimal(3),
        )
        == Decimal("854.10") + 123
    )


def test_break_even_needs_the_throughput_ratio_and_moves_with_it() -> None:
    shared = {
        "fixed_per_gpu_year": Decimal(876),
        "cloud_price_per_gpu_hour": Decimal("0.5"),
        "energy_price_per_gpu_hour": Decimal("0.1"),
    }
    assert tco.break_even_utilization(throughput_ratio=Decimal(1), **shared) == Decimal("0.25")
    assert tco.break_even_utilization(throughput_ratio=Decimal("0.6"), **shared) == Decimal("0.5")
    with pytest.raises(TypeError):
        tco.break_even_utilization(**shared)  # type: ignore[call-arg]


def test_owning_never_pays_off_where_power_alone_is_dearer_than_the_cloud() -> None:
    assert (
        tco.break_even_utilization(
            fixed_per_gpu_year=Decimal(876),
            cloud_price_per_gpu_hour=Decimal("0.1"),
            throughput_ratio=Decimal("0.5"),
            energy_price_per_gpu_hour=Decimal("0.06"),
        )
        is None
    )


@given(st.decimals(min_value=1, max_value=8760, places=2))
def test_forgone_resale_is_positive_and_grows_with_time(hours: Decimal) -> None:
    less = tco.resale_forgone(Decimal(2_000), Decimal("0.3"), Decimal("0.08"), hours)
    more = tco.resale_forgone(Decimal(2_000), Decimal("0.3"), Decimal("0.08"), hours + 1)
    assert 0 < less < more < 2_000
