"""Cases from public threads that a plan of one job has to get right (cases.md), on made-up offers."""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import permutations
from pathlib import Path

import pytest
from made_up import ExactEstimator, machine, offer, part, plan, rig_of, tariff

from planner.errors import Infeasible, NoPrice, UsageError
from planner.optimizer.front import Point, pareto_front


def test_c01_asking_for_spot_ranks_by_spot_prices() -> None:
    offers = [
        offer("A", "3.06"),
        offer("A", "0.92", "spot"),
        offer("B", "2.95"),
        offer("B", "0.98", "spot"),
    ]
    answer = plan([machine("A"), machine("B")], offers, spot=True)
    best = answer.options[0]
    assert (best.hardware, best.purchase_model, best.cost.p50) == ("A", "spot", Decimal("9.20"))
    assert {o.hardware: o.cost.p50 for o in answer.options} == {"A": Decimal("9.20"), "B": Decimal("9.80")}
    assert all(o.purchase_model == "spot" for o in answer.options)


def test_c01_no_spot_leaves_spot_prices_out() -> None:
    offers = [offer("A", "3.06"), offer("A", "0.92", "spot")]
    answer = plan([machine("A")], offers, spot=False)
    assert [o.purchase_model for o in answer.options] == ["on_demand"]


@pytest.mark.parametrize("unknown", [offer("X", None, region="eu-west-3"), None])
def test_c05_a_missing_price_is_excluded_and_never_zero(unknown: object) -> None:
    offers = [offer("Y", "4.00", region="eu-west-3"), offer("X", "1.00", region="us-east-1")]
    offers += [unknown] if unknown else []  # type: ignore[list-item]
    answer = plan([machine("X"), machine("Y")], offers, region="eu-west-3")
    assert [(o.hardware, o.cost.p50) for o in answer.options] == [("Y", Decimal("40.00"))]
    reasons = {e.id: e.reason for e in answer.excluded}
    assert "price in eu-west-3" in reasons["X"]


def test_c05_nothing_but_missing_prices_is_an_error_and_no_plan() -> None:
    with pytest.raises(NoPrice, match="no price in eu-west-3") as error:
        plan([machine("X")], [offer("X", "1.00"), offer("Z", "1", region="eu-west-3")], region="eu-west-3")
    assert error.value.exit_code == 4


def test_c07_the_instance_price_is_counted_once_for_all_its_gpus() -> None:
    answer = plan([machine("eight", gpus=8)], [offer("eight", "21.96")], hours=3.0)
    assert answer.options[0].cost.p50 == Decimal("65.88")
    assert answer.options[0].price_per_gpu_hour == Decimal("2.745")


@pytest.mark.parametrize(
    "rate", ['cost_per_hour = 0.35\ncurrency = "USD"', "cost_per_month = 255.50"], ids=["hour", "month"]
)
def test_c08_an_own_rate_is_per_hour_or_per_month_as_it_says(rate: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f'gpu = "RTX 4090"\ngpu_count = 1\n{rate}\n')
    answer = plan([machine("cloud")], [offer("cloud", "9")], hours=100.0, own=[str(file)])
    mine = answer.option("mine")
    assert (mine.purchase_model, mine.cost.p50) == ("own", Decimal("35.00"))


def test_c08_a_cost_without_its_unit_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"gpu": "RTX 4090", "cost": 0.35}))
    with pytest.raises(UsageError, match=r"cost_per_hour.*cost_per_month") as error:
        plan([machine("cloud")], [offer("cloud", "9")], own=[str(file)])
    assert error.value.exit_code == 2


def test_c10_another_currency_without_a_rate_is_named_and_not_ranked() -> None:
    offers = [offer("cny", "200.00", currency="CNY"), offer("usd", "30.00")]
    answer = plan([machine("cny"), machine("usd")], offers, hours=1.0)
    assert [o.hardware for o in answer.options] == ["usd"]
    assert any("CNY" in e.reason and e.code == "currency" for e in answer.excluded)
    assert any("CNY" in warning for warning in answer.warnings)
    with pytest.raises(NoPrice, match="CNY"):
        plan([machine("cny")], offers[:1], hours=1.0)


def test_c10_with_a_rate_the_cheaper_offer_wins_and_carries_rate_and_source() -> None:
    offers = [offer("cny", "200.00", currency="CNY"), offer("usd", "30.00")]
    answer = plan([machine("cny"), machine("usd")], offers, hours=1.0, fx=["CNY=0.14"])
    best = answer.options[0]
    assert (best.hardware, best.cost.p50) == ("cny", Decimal("28.00"))
    used = best.prices[0]
    assert (used.currency, used.amount, used.fx_rate) == ("CNY", Decimal("200.00"), Decimal("0.14"))
    assert used.fx_source == "given by the user"
    assert used.fx_observed_at is not None


def test_c11_a_reservation_costs_its_whole_term() -> None:
    prepaid = offer("p", None, "reserved_1y", upfront=Decimal(50_000), term_months=12, payment="all_upfront")
    answer = plan([machine("p")], [offer("p", "21.96"), prepaid], hours=2190.0)
    cost = {o.purchase_model: o.cost.p50 for o in answer.options}
    assert cost == {"on_demand": Decimal("48092.40"), "reserved": Decimal(50_000)}
    assert answer.options[0].purchase_model == "on_demand"
    reserved = answer.options[1]
    assert reserved.price_per_gpu_hour is not None
    assert round(reserved.price_per_gpu_hour, 4) == Decimal("5.7078")
    assert reserved.cash_upfront == Decimal(50_000)


def test_c30_ties_and_dominated_points_in_any_order() -> None:
    raw = {"a": (10, 100), "b": (10, 120), "c": (12, 100), "d": (12, 90)}
    for order in permutations(raw):
        found = pareto_front([Point(name, Decimal(raw[name][0]), Decimal(raw[name][1])) for name in order])
        assert {name for name, by in found.items() if by is None} == {"a", "d"}
        assert found["b"] == "a"
        assert found["c"] == "d"


def test_c30_through_a_whole_plan() -> None:
    hours = {"a100-sxm4-40gb": 10.0, "a100-sxm4-80gb": 12.0}
    slow = machine("slow", gpu="a100-sxm4-80gb")
    offers = [
        offer("fast", "10"),
        offer("fast", "12", region="eu-west-1"),
        offer("slow", "7.5"),
        offer("slow", "8.3333333333333", region="eu-west-1"),
    ]
    answer = plan([machine("fast"), slow], offers, hours)
    assert [(o.hardware, o.cost.p50) for o in answer.front] == [("slow", Decimal(90)), ("fast", Decimal(100))]


def test_c31_every_node_is_paid() -> None:
    """80 GPU-hours on 8 or 16 GPUs: 10 h on one node, 5 h on two."""
    estimator = ExactEstimator(80.0, speedup=True)
    answer = plan([machine("eight", gpus=8)], [offer("eight", "21.96")], estimator=estimator, max_gpus=16)
    best = answer.front[0]
    assert (best.count, best.gpu_count, best.time_hours.p50) == (2, 16, Decimal(5))
    assert best.cost.p50 == Decimal("219.60")
    assert best.cost_lines[0].quantity == Decimal(10)


def test_c32_a_budget_that_cannot_be_kept_names_the_cheapest_plan() -> None:
    with pytest.raises(Infeasible, match="budget 100, cheapest plan 165") as error:
        plan([machine("A")], [offer("A", "16.50")], budget=100)
    assert (error.value.exit_code, error.value.limit) == (3, "budget")


def test_c32_a_deadline_that_cannot_be_kept_names_the_fastest_plan() -> None:
    with pytest.raises(Infeasible, match="deadline 4 h, fastest plan 6 h") as error:
        plan([machine("A")], [offer("A", "16.50")], hours=6.0, deadline="4h")
    assert (error.value.exit_code, error.value.limit) == (3, "deadline")


def test_c32_both_limits_together_name_the_cheapest_in_time() -> None:
    slow = machine("slow", gpu="a100-sxm4-80gb")
    hours = {"a100-sxm4-40gb": 2.0, "a100-sxm4-80gb": 20.0}
    with pytest.raises(Infeasible, match="budget 50 and deadline 4 h, cheapest plan in time 80"):
        plan(
            [machine("fast"), slow],
            [offer("fast", "40"), offer("slow", "1")],
            hours,
            budget=50,
            deadline="4h",
        )


def test_c34_billing_granularity_decides_which_is_cheaper() -> None:
    """20 minutes: by the second on "aws", by whole hours at a seller whose rule nobody has written down."""
    offers = [offer("A", "21.96"), offer("B", "9.00", provider="somebody")]
    answer = plan([machine("A"), machine("B", provider="somebody")], offers, hours=1 / 3)
    assert [(o.hardware, round(o.cost.p50, 6)) for o in answer.options] == [
        ("A", Decimal("7.32")),
        ("B", Decimal("9.00")),
    ]


def test_own_rigs_cost_power_upkeep_and_forgone_resale_and_buying_costs_the_parts() -> None:
    rig = rig_of("rig-1x-rtx-4090")
    assert rig.rig is not None
    prices = {p.item: "100" for p in rig.rig.parts} | {"rtx-4090-24gb": "2000"}
    offers = [part(item, amount) for item, amount in prices.items()] + [tariff("0.15")]
    answer = plan([rig], offers, hours=100.0)
    models = {o.purchase_model: o for o in answer.options}
    assert set(models) == {"buy", "amortised"}
    parts = sum(Decimal(prices[p.item]) * p.quantity for p in rig.rig.parts)
    power = Decimal("0.56") * 100 * Decimal("1.33") * Decimal("0.15")
    assert models["buy"].cash_upfront == parts
    assert models["buy"].cost.p50 == parts + power
    assert models["amortised"].cost.p50 < models["buy"].cost.p50
