"""Three honest prices of one rig: at hand, bought now, and by the hour of its life."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from made_up import NOTHING_EXTRA, machine, offer, part, plan, rig_of, tariff

from planner import tco
from planner.answer import PlanOption
from planner.pricing.offer import Offer

RIG = "rig-1x-rtx-4090"
HOURS = Decimal(100)
# One card at 2,000 and eight other pieces (memory comes in two) at 100 each.
PRICE = Decimal(2_800)


def bill_of_materials() -> list[Offer]:
    rig = rig_of(RIG).rig
    assert rig is not None
    offers = [part(p.item, "2000" if p.item == rig.gpu else "100") for p in rig.parts]
    assert sum((2000 if p.item == rig.gpu else 100) * p.quantity for p in rig.parts) == PRICE
    return [*offers, tariff("0.20")]


def options(offers: list[Offer] | None = None, **request: Any) -> dict[str, PlanOption]:
    answer = plan([rig_of(RIG)], offers or bill_of_materials(), hours=float(HOURS), **request)
    return {option.purchase_model: option for option in answer.options}


def lines(option: PlanOption) -> dict[str, Decimal]:
    return {line.item: line.amount for line in option.cost_lines}


def test_own_appears_only_for_rigs_that_are_named() -> None:
    assert set(options()) == {"buy", "amortised"}
    named = plan([], bill_of_materials(), hours=100.0, own=RIG, max_gpus=4)
    assert {o.purchase_model for o in named.options} == {"own", "buy", "amortised"}


def test_power_is_load_times_pue_times_price() -> None:
    assert lines(options(pue=1)["buy"])["power"] == HOURS * Decimal("0.56") * Decimal("0.20")
    assert lines(options(pue="1.5")["buy"])["power"] == HOURS * Decimal("0.84") * Decimal("0.20")
    assert lines(options(pue=1, electricity_price=1)["buy"])["power"] == HOURS * Decimal("0.56")


def test_buying_pays_every_part_now_and_nets_the_resale_with_a_horizon_only() -> None:
    plain = options()["buy"]
    assert plain.cash_upfront == PRICE
    assert "resale" not in lines(plain)
    sold = options(horizon="24m")["buy"]
    assert sold.cash_upfront == PRICE
    value = tco.resale_value(PRICE, Decimal("0.322"), Decimal(2)) * Decimal("0.87")
    assert lines(sold)["resale"] == -round(value, 8)
    assert sold.cost.p50 == plain.cost.p50 + lines(sold)["resale"]


def test_amortised_is_the_annuity_per_hour_worked() -> None:
    residual = tco.resale_value(PRICE, Decimal("0.322"), Decimal(4)) * Decimal("0.87")
    yearly = tco.equivalent_annual_cost(PRICE, residual, Decimal("0.08"), Decimal(4), Decimal(0))
    half = lines(options()["amortised"])["purchase share"]
    assert half == HOURS * round(yearly / (8760 * Decimal("0.5")), 8)
    full = options(utilization=1)["amortised"]
    assert lines(full)["purchase share"] == pytest.approx(half / 2, rel=Decimal("1e-6"))
    assert "idle power" not in lines(full)


def test_a_rig_at_hand_costs_power_upkeep_and_the_resale_forgone_not_its_purchase() -> None:
    answer = plan([], bill_of_materials(), hours=100.0, own=RIG, max_gpus=1)
    own = next(o for o in answer.options if o.purchase_model == "own")
    assert own.cash_upfront == 0
    value = tco.resale_value(PRICE, Decimal("0.322"), Decimal(1)) * Decimal("0.87")
    forgone = tco.resale_forgone(value, Decimal("0.322"), Decimal("0.08"), HOURS)
    assert lines(own)["resale forgone"] == pytest.approx(forgone, rel=Decimal("1e-6"))
    assert set(lines(own)) == {"power", "resale forgone", "upkeep"}


def used(amount: str, year: int, month: int) -> Offer:
    return part(
        "rtx-4090-24gb",
        amount,
        kind="resale",
        condition="used",
        observed_at=datetime(year, month, 1, tzinfo=UTC),
    )


def test_used_prices_of_the_card_set_its_decay_where_three_are_stored() -> None:
    history = [used("2000", 2024, 12), used("1600", 2025, 12), used("1280", 2026, 11)]
    answer = plan(
        [], [*bill_of_materials(), history[-1]], hours=100.0, own=RIG, max_gpus=1, used_history=history
    )
    own = next(o for o in answer.options if o.purchase_model == "own")
    forgone = next(line for line in own.cost_lines if line.item == "resale forgone")
    assert "fitted to 3 used prices" in forgone.source
    assert "used 1280.00" in forgone.formula
    assert "loses 0.23" in forgone.formula  # ln(2000 / 1280) over 1.92 years


def test_a_part_without_a_price_excludes_the_rig_and_says_how_many() -> None:
    offers = [o for o in bill_of_materials() if o.item not in ("psu-1600w", "nvme-4tb")]
    answer = plan([rig_of(RIG), machine("cloud")], [*offers, offer("cloud", "1")], hours=100.0)
    assert {o.hardware for o in answer.options} == {"cloud"}
    reason = next(e.reason for e in answer.excluded if e.id == RIG)
    assert reason == "price of 2 parts of 8 unknown: nvme-4tb, psu-1600w"


def test_without_a_tariff_power_is_left_out_and_said_so() -> None:
    offers = [o for o in bill_of_materials() if o.kind != "electricity"]
    answer = plan([rig_of(RIG)], offers, hours=100.0)
    assert all(line.item != "power" for o in answer.options for line in o.cost_lines)
    assert any("electricity" in warning for warning in answer.warnings)
    assert all(any("electricity" in note for note in o.notes) for o in answer.options)


def test_staff_is_zero_with_a_warning_and_counts_when_it_is_given() -> None:
    answer = plan([rig_of(RIG)], bill_of_materials(), hours=100.0)
    assert any("staff" in warning for warning in answer.warnings)
    paid = NOTHING_EXTRA | {"staff_cost_per_rig_year": Decimal(43_800)}
    with_staff = plan([rig_of(RIG)], bill_of_materials(), hours=100.0, assume=paid)
    assert not any("staff" in warning for warning in with_staff.warnings)
    before = next(o for o in answer.options if o.purchase_model == "amortised")
    after = next(o for o in with_staff.options if o.purchase_model == "amortised")
    assert after.cost.p50 - before.cost.p50 == pytest.approx(Decimal(1000), rel=Decimal("1e-6"))
