"""Break-even: formulas against published figures, and that at u* owning and renting cost the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

import planner
from planner import tco
from planner.assumptions import HOURS_PER_YEAR
from planner.break_even import BreakEven

AS_OF = "2026-12-01"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> BreakEven:
    from planner import api

    patch = pytest.MonkeyPatch()
    patch.setenv("PLANNER_STORE_URL", f"sqlite:///{tmp_path_factory.mktemp('store')}/prices.sqlite")
    try:
        return api.breakeven("rig-4x-rtx-4090", model="bert-large", against="a100", as_of=AS_OF)
    finally:
        patch.undo()


def test_the_calculator_that_found_no_payback_has_one_of_35_6_months() -> None:
    """randomcalculators.com: 8 × $35,000 + 40 %, 4 years, 0.7 kW, PUE 1.4, $0.12, 400 h and $3,000 a month,
    $4.5 per GPU-hour. On its own figures owning is cheaper every month; its payback counts the price twice.
    """
    capex = Decimal(8 * 35_000) * Decimal("1.4")
    energy = Decimal(8) * Decimal("0.7") * 400 * Decimal("1.4") * Decimal("0.12")
    rented = Decimal(8) * 400 * Decimal("4.5")
    assert (capex, energy, rented) == (392_000, Decimal("376.32"), 14_400)
    owned = capex / 48 + energy + 3000
    assert round(owned, 2) == Decimal("11542.99")
    assert owned < rented
    months = tco.payback_periods(capex, rented, energy + 3000)
    assert months is not None
    assert round(months, 1) == Decimal("35.6") < 48
    assert tco.payback_periods(capex, rented, rented) is None


def test_the_throughput_ratio_moves_break_even_as_the_price_does() -> None:
    """u* = fixed / (H (c q - e)): half the ratio is half the price."""
    given = {"fixed_per_gpu_year": Decimal(2000), "energy_price_per_gpu_hour": Decimal("0.05")}
    half = tco.break_even_utilization(
        cloud_price_per_gpu_hour=Decimal(2), throughput_ratio=Decimal("0.5"), **given
    )
    one = tco.break_even_utilization(
        cloud_price_per_gpu_hour=Decimal(1), throughput_ratio=Decimal(1), **given
    )
    assert half == one == Decimal(2000) / (8760 * Decimal("0.95"))


def test_at_break_even_a_year_of_owning_costs_what_renting_the_same_runs_costs(found: BreakEven) -> None:
    own = found.owning
    assert len(found.compared) >= 2
    for each in found.compared:
        assert each.utilization is not None
        assert each.runs_per_year is not None
        hours = each.utilization * HOURS_PER_YEAR
        owned = own.fixed_per_year + hours * own.added_per_hour
        rented = hours / own.hours_per_run * each.cost_per_run
        assert owned == pytest.approx(rented, rel=Decimal("1e-6"))
        assert float(each.runs_per_year) == pytest.approx(float(hours / own.hours_per_run), rel=1e-5)


def test_the_ratio_is_gpu_hours_rented_for_each_of_the_rig(found: BreakEven) -> None:
    own = found.owning
    for each in found.compared:
        rented = float(each.option.time_hours.p50) * each.option.gpu_count
        assert each.throughput_ratio == pytest.approx(rented / float(own.hours_per_run) / own.gpu_count)
        assert each.ratio_low < each.throughput_ratio < each.ratio_high
        assert each.utilization_low is not None
        assert each.utilization is not None
        assert each.utilization_low < each.utilization
        assert each.utilization_high is None or each.utilization < each.utilization_high
        # c × q is what an hour of one of the rig's cards displaces.
        displaced = float(each.cost_per_run) / float(own.hours_per_run) / own.gpu_count
        assert float(each.price_per_gpu_hour) * each.throughput_ratio == pytest.approx(displaced, rel=1e-6)


def test_a_rig_of_several_cards_works_as_it_does_most(found: BreakEven) -> None:
    """Four 4090s without peer-to-peer do four runs side by side faster than one run on all."""
    assert found.owning.runs_at_once == 4
    whole = next(
        option
        for option in found.plan.options
        if option.hardware == "rig-4x-rtx-4090" and option.purchase_model == "amortised"
    )
    assert found.owning.hours_per_run < whole.time_hours.p50


def test_payback_counts_only_what_a_run_saves(found: BreakEven) -> None:
    own = found.owning
    for each in found.compared:
        assert each.payback_runs is not None
        saved = each.cost_per_run - own.added_per_hour * own.hours_per_run
        assert (each.payback_runs - 1) * saved < own.price <= each.payback_runs * saved


def test_only_what_was_named_is_compared(found: BreakEven) -> None:
    assert {each.option.gpu.split("-")[0] for each in found.compared} == {"a100"}
    with pytest.raises(planner.UsageError, match=r'Did you mean "p4d\.24xlarge"'):
        planner.breakeven("rig-4x-rtx-4090", model="bert-large", against="p4d.24xlarg", as_of=AS_OF)


def test_a_name_that_is_no_rig_is_refused_with_the_nearest() -> None:
    with pytest.raises(planner.UsageError, match="rig-4x-rtx-4090"):
        planner.breakeven("rig-4x-rtx-490")


def test_the_command_shows_it_and_says_which_workload_stands_for_none(
    planner_cli: Callable[..., Any],
) -> None:
    said = planner_cli("breakeven", "--hardware", "rig-1x-rtx-4090", "--as-of", AS_OF)
    assert said.code == 0
    assert "PAYS FROM" in said.out
    assert "no --model was given: bert-base" in said.out
    document = json.loads(
        planner_cli("breakeven", "--hardware", "rig-1x-rtx-4090", "--as-of", AS_OF, "--format", "json").out
    )
    assert document["rig"]["runs_at_once"] == 1
    assert all(each["prices"] for each in document["against"])
    said = planner_cli("breakeven", "--hardware", "rig-1x-rtx-4090", "--pue", "9")
    assert said.code == 2
    assert "--pue 9" in said.err
