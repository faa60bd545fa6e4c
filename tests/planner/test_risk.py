"""Spread under common random numbers: medians stay put, bands are those of the inputs."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from made_up import NOTHING_EXTRA, ExactEstimator, machine, offer, plan

from planner.plan import Plan


def banded(band: float, offers: list[Any] | None = None, **request: Any) -> Plan:
    return plan(
        [machine("A")],
        offers or [offer("A", "2")],
        estimator=ExactEstimator(10.0, band=band),
        **request,
    )


def test_without_any_uncertainty_the_range_is_a_point() -> None:
    option = banded(1.0).options[0]
    assert option.cost.p10 == option.cost.p50 == option.cost.p90 == 20
    assert option.time_hours.p10 == option.time_hours.p90 == 10


@pytest.mark.parametrize("band", [1.1, 1.5, 3.0])
def test_the_speed_band_is_the_range_of_hours_and_of_an_hourly_cost(band: float) -> None:
    option = banded(band).options[0]
    assert float(option.time_hours.p90) == pytest.approx(10 * band, rel=0.02)
    assert float(option.time_hours.p10) == pytest.approx(10 / band, rel=0.02)
    assert float(option.cost.p90) == pytest.approx(20 * band, rel=0.02)


def test_the_same_seed_gives_the_same_plan_and_another_seed_almost_the_same() -> None:
    first, again, other = banded(1.3, seed=7), banded(1.3, seed=7), banded(1.3, seed=8)
    assert first.to_json() == again.to_json()
    assert float(other.options[0].cost.p90) == pytest.approx(float(first.options[0].cost.p90), rel=0.05)


def test_the_price_window_of_a_spot_offer_widens_its_cost_alone() -> None:
    window = offer("A", "2", "spot", amount_low=Decimal(1), amount_high=Decimal(4))
    option = banded(1.0, [window]).options[0]
    assert float(option.cost.p10) == pytest.approx(10, rel=0.1)
    assert float(option.cost.p90) == pytest.approx(40, rel=0.1)
    assert option.time_hours.p90 == pytest.approx(10, rel=1e-6)


def test_interruptions_lengthen_the_slow_end_and_the_central_estimate_stays_between() -> None:
    assume = NOTHING_EXTRA | {
        "spot_mean_hours_to_loss": Decimal(4),
        "spot_mean_outage_hours": Decimal(2),
        "checkpoint_bytes_per_parameter": Decimal(12),
    }
    option = banded(1.0, [offer("A", "1", "spot")], assume=assume).options[0]
    hours = option.time_hours
    assert 10 < hours.p10 <= hours.p50 <= hours.p90
    assert hours.p50 > Decimal(14)
    mean_outages = next(line.hours for line in option.time_lines if line.item == "waiting for capacity")
    assert float(mean_outages) == pytest.approx(2 * 10 / 4, rel=0.2)


def test_chances_are_told_for_limits_that_were_given() -> None:
    option = banded(1.5, deadline="11h", budget=1000).options[0]
    assert option.chance.budget == 1.0
    assert option.chance.deadline is not None
    sigma = math.log(1.5) / 1.2815515655446004
    expected = 0.5 * (1 + math.erf(math.log(1.1) / sigma / math.sqrt(2)))
    assert option.chance.deadline == pytest.approx(expected, abs=0.03)
    assert banded(1.5).options[0].chance.deadline is None


def test_with_confidence_a_limit_looks_at_that_percentile() -> None:
    from planner.errors import Infeasible

    assert banded(1.5, deadline="11h").options
    with pytest.raises(Infeasible, match=r"deadline 11 h, fastest plan 1[45]") as error:
        banded(1.5, deadline="11h", confidence=90)
    assert "at P90" in str(error.value)


def test_all_options_share_their_luck() -> None:
    """Two offers of one machine at 1 and 2 per hour: the ranges differ by exactly that factor."""
    answer = banded(1.4, [offer("A", "1"), offer("A", "2", region="eu-west-1")])
    cheap, dear = answer.options
    assert dear.cost.p90 == 2 * cheap.cost.p90
