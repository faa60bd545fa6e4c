"""Steps of what is free, and money that months can pay."""

from __future__ import annotations

import math

from planner.optimizer.profile_of_use import Months, Profile, spread


def test_a_run_waits_until_enough_is_free_for_all_of_its_hours() -> None:
    rigs = Profile([(0.0, 2.0)])
    rigs.take(5.0, 10.0, 2.0)
    assert rigs.earliest(0.0, 5.0, 1.0) == 0.0
    assert rigs.earliest(0.0, 6.0, 1.0) == 10.0
    assert rigs.earliest(0.0, 1.0, 3.0) == math.inf


def test_rigs_bought_later_can_be_used_from_then_on() -> None:
    rigs = Profile([(0.0, 0.0), (100.0, 1.0)])
    assert rigs.earliest(3.0, 5.0, 1.0) == 100.0
    rigs.take(100.0, 105.0, 1.0)
    assert rigs.earliest(3.0, 5.0, 1.0) == 105.0


def test_a_month_without_money_moves_a_run_to_where_it_can_be_paid() -> None:
    months = Months([0.0, 10.0, 20.0], [2.0, 100.0])
    assert months.earliest(0.0, 5.0, 10.0) == 9.0  # one hour of five in the first month: 2 of 10
    months.take(9.0, 5.0, 10.0)
    assert months.left == [0.0, 92.0]
    assert months.earliest(0.0, 4.0, 1.0) == 10.0


def test_an_amount_is_spread_by_the_hours_in_each_month() -> None:
    assert spread([0.0, 10.0, 20.0], 8.0, 4.0, 100.0) == [(0, 50.0), (1, 50.0)]
    assert spread([0.0, 10.0, 20.0], 18.0, 4.0, 100.0) == [(1, 50.0)]
    assert spread([0.0, 10.0], 3.0, 0.0, 7.0) == [(0, 7.0)]
