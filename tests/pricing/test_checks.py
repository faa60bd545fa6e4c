"""planner.pricing.checks: each invariant finds what it is for, and nothing else."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from priced import JUNE, offer

from planner.pricing.checks import errors, is_jump, verify
from planner.pricing.offer import Component


def test_a_plain_offer_breaks_nothing() -> None:
    assert verify([offer()]) == ()


@pytest.mark.parametrize(
    ("rule", "changed"),
    [
        ("unit", {"unit": "each"}),
        ("contract", {"contract": "purchase"}),
        ("contract", {"contract": "reserved_1y"}),
        ("contract", {"contract": "reserved_3y", "term_months": 12, "payment": "none"}),
        ("capacity-block", {"contract": "capacity_block"}),
        ("condition", {"condition": "new"}),
        ("gpu", {"gpu_count": None}),
        ("gpu", {"gpu_model": None}),
        ("gpu", {"gpu_form": None}),
        ("gpu", {"gpu_mem_mib": None}),
        ("currency", {"currency": "XYZ"}),
        ("range", {"amount_low": Decimal(1)}),
        ("components", {"components": (Component("gpu", Decimal(8), "gpu_hour", Decimal("2.75")),)}),
    ],
)
def test_each_rule_finds_its_fault(rule: str, changed: dict[str, Any]) -> None:
    (found,) = verify([offer(**changed)])
    assert (found.rule, found.severity) == (rule, "error")
    assert "p4d.24xlarge" in found.message


def test_gpu_memory_may_be_missing_where_the_form_is_unknown() -> None:
    assert verify([offer(gpu_form="unknown", gpu_mem_mib=None)]) == ()


def test_goods_need_a_condition_and_resale_is_of_used_ones() -> None:
    goods = {"kind": "gpu_retail", "contract": "purchase", "unit": "each"}
    assert [found.rule for found in verify([offer(**goods)])] == ["condition"]
    assert verify([offer(**goods, condition="new")]) == ()
    assert [found.rule for found in verify([offer(**goods | {"kind": "resale"}, condition="new")])] == [
        "condition"
    ]


def test_components_must_sum_exactly() -> None:
    parts = (
        Component("gpu", Decimal(1), "gpu_hour", Decimal("2.933908")),
        Component("core", Decimal(12), "vcpu_hour", Decimal("0.031611")),
        Component("ram", Decimal(85), "gib_hour", Decimal("0.004237")),
    )
    assert verify([offer(amount=Decimal("3.673385"), components=parts)]) == ()
    (found,) = verify([offer(amount=Decimal("3.673386"), components=parts)])
    assert found.message.endswith("the components sum to 3.673385, not to 3.673386")


def test_the_same_price_twice_at_one_instant_is_found() -> None:
    assert [found.rule for found in verify([offer(), offer(amount=Decimal(22))])] == ["duplicate"]
    assert verify([offer(), offer(source="another")]) == ()


def test_a_step_of_ten_times_is_found_and_the_real_cut_of_2025_is_not() -> None:
    before = offer(amount=Decimal("98.32"))
    cut = offer(amount=Decimal("55.04"), observed_at=JUNE + timedelta(days=4))
    slipped = offer(amount=Decimal("5.504"), observed_at=JUNE + timedelta(days=5))
    assert verify([before, cut]) == ()
    assert [found.rule for found in verify([cut, before, slipped])] == ["jump"]
    assert not is_jump(before, offer(amount=None))


def test_spot_above_on_demand_is_kept_and_flagged() -> None:
    spot = offer(contract="spot", amount=Decimal(25), observed_at=JUNE + timedelta(days=1))
    found = verify([offer(), spot])
    assert [(one.rule, one.severity) for one in found] == [("dear-spot", "warning")]
    assert errors([offer(), spot]) == ()
    assert verify([offer(), offer(contract="spot", amount=Decimal("21.96"))]) == ()
    assert verify([offer(observed_at=JUNE + timedelta(days=2)), spot]) == ()
