"""Multipliers learned from real steps: found where they are, refused where they prove nothing."""

from __future__ import annotations

import pytest

from planner.models.calibration.anchors import BOUNDS, Anchor, group_of, multipliers, priced_by_group

pytest.importorskip("scipy")

SHARES = (
    {"products": 0.7, "convolutions": 0.0, "other": 0.2, "optimizer": 0.1, "calls": 0.0},
    {"products": 0.1, "convolutions": 0.6, "other": 0.3, "optimizer": 0.0, "calls": 0.0},
    {"products": 0.3, "convolutions": 0.0, "other": 0.1, "optimizer": 0.6, "calls": 0.0},
    {"products": 0.0, "convolutions": 0.4, "other": 0.2, "optimizer": 0.3, "calls": 0.1},
    {"products": 0.5, "convolutions": 0.1, "other": 0.1, "optimizer": 0.1, "calls": 0.2},
)


def anchors(true: dict[str, float]) -> list[Anchor]:
    """Steps that really take `true` times what each group was priced at."""
    return [
        Anchor(
            f"step {i}", sum(true.get(name, 1.0) * share for name, share in shares.items()), 0.02, 7, shares
        )
        for i, shares in enumerate(SHARES)
    ]


def test_a_dear_optimizer_is_found_and_the_rest_is_left_near_one() -> None:
    learned = multipliers(anchors({"optimizer": 1.7}))
    assert learned.accepted
    assert learned.values["optimizer"] == pytest.approx(1.7, abs=0.1)
    assert learned.values["products"] == pytest.approx(1.0, abs=0.1)
    assert learned.error_left_out is not None
    assert learned.error_left_out < learned.error_before


def test_steps_that_were_priced_right_teach_nothing() -> None:
    learned = multipliers(anchors({}))
    assert not learned.accepted
    assert set(learned.values.values()) == {1.0}
    assert "no better" in learned.reason


def test_noise_that_no_group_explains_is_not_bent_into_multipliers() -> None:
    same = [Anchor(f"run {i}", 1.0 + 0.1 * (-1) ** i, 0.02, 7, SHARES[0]) for i in range(6)]
    assert not multipliers(same).accepted


def test_a_multiplier_at_its_bound_is_a_fault_of_ours_and_refused() -> None:
    learned = multipliers(anchors(dict.fromkeys(BOUNDS, 9.0)))
    assert not learned.accepted
    assert "at their bounds" in learned.reason


def test_two_steps_are_too_few() -> None:
    learned = multipliers(anchors({"optimizer": 1.7})[:2])
    assert not learned.accepted
    assert "fewer than 3" in learned.reason
    with pytest.raises(ValueError, match="no anchors"):
        multipliers([])


def test_every_row_of_a_breakdown_belongs_to_a_group_and_the_groups_add_up() -> None:
    rows = [("gemm", "forward", 1.0), ("conv_1x1", "backward", 2.0), ("norm", "forward", 4.0)]
    rows += [("optimizer", "optimizer", 8.0), ("module calls", "forward", 16.0), ("launch", "all", 32.0)]
    found = priced_by_group(rows)
    assert found == {"products": 1.0, "convolutions": 2.0, "other": 4.0, "optimizer": 8.0, "calls": 48.0}
    assert {group_of(name) for name, *_ in rows} == set(BOUNDS)
