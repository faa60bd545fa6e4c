"""What a user may put in place of an assumption."""

from __future__ import annotations

from decimal import Decimal

import pytest

from planner.assumptions import _shipped, assumptions
from planner.errors import UsageError


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cloud_start_hours", "-1"),
        ("spot_mean_hours_to_loss", "0"),
        ("checkpoint_bytes_per_second", "0"),
        ("spot_price_spread", "0"),
        ("selling_cost_share", "1.1"),
        ("staff_cost_per_rig_year", "1e15"),
    ],
)
def test_a_slip_or_a_division_by_nothing_is_refused_with_its_range(key: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"{key} = .* must lie between"):
        assumptions({key: Decimal(value)})


def test_every_shipped_figure_lies_in_its_own_range() -> None:
    for entry in _shipped().values():
        assert entry.least <= entry.low <= entry.value <= entry.high <= entry.most, entry.key
