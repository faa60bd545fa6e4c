"""Interruptions against closed forms, published check values and a simulated machine."""

from __future__ import annotations

import math
import random
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.spot import (
    best_segments,
    billed_hours,
    daly_interval,
    expected_run,
    first_order_waste,
    young_interval,
)


def test_check_values_of_young_and_the_first_order_waste() -> None:
    tau = young_interval(0.02, 3.2)
    assert tau == pytest.approx(0.358, abs=5e-4)
    assert first_order_waste(tau, 0.02, 0.1, 3.2) == pytest.approx(0.146, abs=5e-4)
    assert daly_interval(5.0, 2.0) == 2.0


def test_c35_one_interruption_at_four_and_a_half_hours_of_ten() -> None:
    hours = billed_hours(
        Decimal(10), checkpoint_every=Decimal(1), losses_at=[Decimal("4.5")], restart=Decimal("0.25")
    )
    assert hours == Decimal("10.75")
    assert hours * Decimal("1.00") == Decimal("10.75")


def test_a_loss_after_the_end_costs_nothing() -> None:
    assert billed_hours(
        Decimal(2), checkpoint_every=Decimal(1), losses_at=[Decimal(3)], restart=Decimal(1)
    ) == Decimal(2)


def _one_run(rng: random.Random, work: float, tau: float, c: float, r: float, m: float) -> float:
    """Machine hours of one run of a machine that is lost at exponential times, also while restarting."""
    held = 0.0
    for _ in range(math.ceil(work / tau - 1e-9)):
        need = work / math.ceil(work / tau - 1e-9) + c
        restarting = False
        while True:
            stretch = need + (r if restarting else 0.0)
            lost_after = rng.expovariate(1 / m)
            if lost_after >= stretch:
                held += stretch
                break
            held += lost_after
            restarting = True
    return held


def test_the_exact_expectation_agrees_with_a_simulated_machine() -> None:
    """The formula charges the restart before every attempt, e^(R/M); the difference is of order R/M."""
    rng = random.Random(1)
    work, tau, c, r, m = 10.0, 0.5, 0.02, 0.05, 3.0
    simulated = sum(_one_run(rng, work, tau, c, r, m) for _ in range(4000)) / 4000
    expected = expected_run(work, segments=20, checkpoint=c, restart=r, mean_to_loss=m, outage=0.0).paid
    assert expected == pytest.approx(simulated, rel=0.02)


def test_hardly_any_losses_leave_work_and_checkpoints() -> None:
    run = expected_run(10, segments=10, checkpoint=0.01, restart=0.1, mean_to_loss=1e9, outage=5)
    assert run.paid == pytest.approx(10.1)
    assert run.waiting == pytest.approx(0, abs=1e-6)


def test_no_checkpoint_explodes_instead_of_looking_small() -> None:
    """W = 5 M without a checkpoint: (e^5 - 1) M, 29 times the work; far beyond, it never ends."""
    run = expected_run(10, segments=1, checkpoint=0, restart=0, mean_to_loss=2, outage=0)
    assert run.paid == pytest.approx(2 * math.expm1(5))
    assert expected_run(5000, segments=1, checkpoint=0, restart=0, mean_to_loss=2, outage=0).paid == math.inf


@given(st.floats(0.01, 200), st.floats(0.5, 50))
def test_more_work_never_takes_less(work: float, mean_to_loss: float) -> None:
    def paid(amount: float) -> float:
        return expected_run(
            amount,
            segments=best_segments(amount, 0.01, mean_to_loss),
            checkpoint=0.01,
            restart=0.1,
            mean_to_loss=mean_to_loss,
            outage=1,
        ).paid

    assert paid(work) <= paid(work * 1.1) * (1 + 1e-9)
    assert paid(work) >= work


@given(st.floats(0.01, 50), st.floats(0.0001, 0.1), st.floats(0.5, 20))
def test_no_other_number_of_parts_loses_less(work: float, checkpoint: float, mean_to_loss: float) -> None:
    def paid(parts: int) -> float:
        return expected_run(
            work, segments=parts, checkpoint=checkpoint, restart=0.1, mean_to_loss=mean_to_loss, outage=0
        ).paid

    best = best_segments(work, checkpoint, mean_to_loss)
    others = {1, 2, best // 2, best - 1, best + 1, 2 * best} - {0, -1}
    assert all(paid(best) <= paid(parts) * (1 + 1e-12) for parts in others)


@pytest.mark.parametrize(
    ("checkpoint", "mean_to_loss"), [(1e-300, 2.2), (1e6, 2.2), (1e-6, 1e-300), (1e-9, 1e-9), (1.0, 1e9)]
)
def test_extreme_figures_are_answered_at_once(checkpoint: float, mean_to_loss: float) -> None:
    assert 1 <= best_segments(1000.0, checkpoint, mean_to_loss) <= 2**61
