"""What must hold of every plan: dearer never helps, more work takes more, sums are sums, bytes are stable."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import NOTHING_EXTRA, ExactEstimator, job, machine, offer, part, plan, rig_of, tariff, with_price

from planner.errors import UsageError
from planner.plan import Plan
from planner.pricing.offer import Offer

PRICES = st.decimals(min_value="0.01", max_value=100, places=4)
CARDS = ("a100-sxm4-40gb", "a100-sxm4-80gb", "h100-sxm5-80gb")
MACHINES = [machine(f"m-{card}", gpu=card) for card in CARDS]
ASSUME = NOTHING_EXTRA | {"spot_mean_hours_to_loss": Decimal(3), "cloud_start_hours": Decimal("0.1")}


def _plan(prices: list[Decimal], hours: list[float], **request: Any) -> tuple[Plan, list[Offer]]:
    contracts = ("on_demand", "spot")
    offers = [
        offer(m.id, str(amount), contract)
        for (m, contract), amount in zip(
            [(m, contract) for m in MACHINES for contract in contracts], prices, strict=True
        )
    ]
    return _of(offers, hours, **request), offers


def _of(offers: list[Offer], hours: list[float], **request: Any) -> Plan:
    seconds = dict(zip(CARDS, hours, strict=True))
    return plan(MACHINES, offers, estimator=ExactEstimator(seconds, band=1.3), assume=ASSUME, **request)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(PRICES, min_size=6, max_size=6),
    st.lists(st.floats(0.1, 30), min_size=3, max_size=3),
    st.integers(0, 5),
    st.decimals(min_value="1.01", max_value=10, places=2),
)
def test_a_dearer_offer_never_makes_the_front_cheaper(
    prices: list[Decimal], hours: list[float], which: int, factor: Decimal
) -> None:
    before, offers = _plan(prices, hours)
    after = _of(with_price(offers, which, prices[which] * factor), hours)

    def least(answer: Plan, within: Decimal) -> Decimal:
        return min((o.cost.p50 for o in answer.front if o.time_hours.p50 <= within), default=Decimal(10**9))

    for limit in {o.time_hours.p50 for o in (*before.front, *after.front)}:
        assert least(after, limit) >= least(before, limit)


@settings(max_examples=30, deadline=None)
@given(st.lists(PRICES, min_size=6, max_size=6), st.lists(st.floats(0.1, 30), min_size=3, max_size=3))
def test_no_point_on_the_front_is_dominated_and_lines_add_up(
    prices: list[Decimal], hours: list[float]
) -> None:
    answer, _ = _plan(prices, hours)
    for option in answer.options:
        assert sum((line.amount for line in option.cost_lines), Decimal(0)) == option.cost.p50
        assert sum((line.hours for line in option.time_lines), Decimal(0)) == option.time_hours.p50
        beaten = any(
            o.cost.p50 <= option.cost.p50
            and o.time_hours.p50 <= option.time_hours.p50
            and (o.cost.p50, o.time_hours.p50) != (option.cost.p50, option.time_hours.p50)
            for o in answer.options
        )
        assert beaten != option.pareto
    assert [o.rank for o in answer.options] == list(range(1, len(answer.options) + 1))
    on_front = [o.cost.p50 for o in answer.front]
    assert on_front == sorted(on_front)


def test_doubling_the_epochs_doubles_compute_hours() -> None:
    once = plan([machine("A")], [offer("A", "3")], job_=job(steps=1000), hours=7.0).options[0]
    twice = plan([machine("A")], [offer("A", "3")], job_=job(steps=2000), hours=7.0).options[0]

    def training(option: Any) -> Decimal:
        return next(line.hours for line in option.time_lines if line.item == "training")

    assert training(twice) == pytest.approx(2 * training(once), abs=Decimal("0.000002"))


@pytest.mark.parametrize("deadlines", [("4h", "9h", "40h")])
def test_a_later_deadline_never_costs_more(deadlines: tuple[str, ...]) -> None:
    prices = [Decimal(p) for p in ("9", "5", "4", "2", "1", "0.4")]
    costs = [min(o.cost.p50 for o in _plan(prices, [3.0, 8.0, 20.0], deadline=d)[0].front) for d in deadlines]
    assert costs == sorted(costs, reverse=True)


def test_rows_beyond_a_limit_are_counted_and_not_shown() -> None:
    prices = [Decimal(p) for p in ("9", "5", "4", "2", "1", "0.4")]
    answer, _ = _plan(prices, [3.0, 8.0, 20.0], deadline="9h")
    assert all(o.time_hours.p50 <= 9 for o in answer.options)
    assert any(e.code == "limit" and "take longer than deadline 9 h" in e.reason for e in answer.excluded)
    assert answer.limits == {"deadline": "9 h"}


def mixed() -> Plan:
    rig = rig_of("rig-1x-rtx-4090")
    assert rig.rig is not None
    parts = [part(p.item, "150") for p in rig.rig.parts]
    offers = [offer("A", "3"), offer("A", "1.1", "spot"), offer("A", "3.3", region="eu-west-1"), *parts]
    return plan([machine("A"), rig], [*offers, tariff("0.1")], estimator=ExactEstimator(5.0, band=1.2))


def test_each_hardware_purchase_model_and_region_has_its_cheapest_row() -> None:
    groups = {(o.hardware, o.purchase_model, o.region) for o in mixed().options}
    assert groups == {
        ("A", "on_demand", "us-east-1"),
        ("A", "on_demand", "eu-west-1"),
        ("A", "spot", "us-east-1"),
        ("rig-1x-rtx-4090", "buy", ""),
        ("rig-1x-rtx-4090", "amortised", ""),
    }


def test_the_same_request_gives_the_same_bytes_and_money_is_text() -> None:
    body = mixed().to_json()
    assert json.dumps(body) == json.dumps(mixed().to_json())
    assert "created_at" not in body
    for option in body["options"]:
        assert all(isinstance(option["cost"][p], str) for p in ("p10", "p50", "p90"))
        assert isinstance(option["cost_lines"][0]["amount"], str)
        assert isinstance(option["time_hours"]["p50"], float)
        total = sum((Decimal(line["amount"]) for line in option["cost_lines"]), Decimal(0))
        assert total == Decimal(option["cost"]["p50"])
    assert json.loads(json.dumps(body)) == body


def test_an_explanation_adds_up_and_names_every_source() -> None:
    answer = mixed()
    for option in answer.options:
        explanation = answer.explain(option.rank)
        assert explanation.total == option.cost.p50
        assert [t.term for t in explanation.terms] == ["work", "speed", "memory", "time", "prices", "cost"]
        assert all(leaf.source and leaf.formula for leaf in explanation.leaves)
        json.dumps(explanation.to_json())


def test_an_option_is_found_by_rank_id_or_hardware_and_a_slip_names_the_nearest() -> None:
    answer = mixed()
    first = answer.options[0]
    assert answer.option(1) == answer.option("1") == answer.option(first.id) == first
    assert answer.option("rig-1x-rtx-4090").purchase_model == "amortised"
    with pytest.raises(UsageError, match='Did you mean "rig-1x-rtx-4090"'):
        answer.option("rig-1x-rtx-4900")


def test_frames_hold_the_front_and_all_options() -> None:
    answer = mixed()
    assert list(answer.pareto["option"]) == [o.id for o in answer.front]
    assert len(answer.options_frame) == len(answer.options)
    assert {"cost_usd_p50", "time_hours_p50", "purchase_model"} <= set(answer.options_frame.columns)


def test_prices_carry_age_and_source_and_old_ones_go_only_when_asked() -> None:
    from datetime import UTC, datetime

    old = offer("A", "1", observed_at=datetime(2025, 1, 1, tzinfo=UTC), region="eu-west-1")
    offers = [old, offer("A", "3")]
    answer = plan([machine("A")], offers)
    ages = {o.region: o.prices[0].age_days for o in answer.options}
    assert ages == {"us-east-1": 11, "eu-west-1": 699}
    assert answer.oldest_price == old.observed_at
    fresh = plan([machine("A")], offers, max_price_age="30d")
    assert [o.region for o in fresh.options] == ["us-east-1"]
    assert any(e.code == "stale_price" and "699 days old" in e.reason for e in fresh.excluded)


def test_another_plan_currency_converts_every_line() -> None:
    answer = plan([machine("A")], [offer("A", "3")], currency="EUR", fx=["USD=0.9"])
    option = answer.options[0]
    assert (option.cost.p50, option.cost_lines[0].currency, answer.currency) == (Decimal(27), "EUR", "EUR")


def test_two_offers_of_one_place_and_contract_are_two_options() -> None:
    twins = [offer("A", "3"), replace(offer("A", "3"), os="linux")]
    answer = plan([machine("A")], twins)
    assert len({o.id for o in answer.options}) == len(answer.options) == 2
    assert all(o.pareto for o in answer.options)


def test_an_assumption_can_be_changed_and_a_misspelt_one_is_named() -> None:
    from planner.assumptions import assumptions

    assert assumptions({"own_pue": Decimal("1.1")})["own_pue"] == Decimal("1.1")
    with pytest.raises(UsageError, match=r'no assumption "own_pu"\. Did you mean "own_pue"'):
        assumptions({"own_pu": Decimal(1)})
    with pytest.raises(UsageError, match="must lie between"):
        assumptions({"own_pue": Decimal(-1)})


def test_assumptions_used_are_printed_with_their_source() -> None:
    answer = mixed()
    keys = [a.key for a in answer.assumptions]
    assert "own_start_hours" in keys
    assert all(a.source and a.text for a in answer.assumptions)
