"""Achieved matmul rates of catalogue cards."""

from __future__ import annotations

from planner.models.calibration.achieved import achieved, datasheet
from planner.models.hardware.catalogue import gpus


def test_every_card_has_a_rate_for_each_unit_it_has() -> None:
    for card in gpus():
        found = achieved()[card.id]
        assert set(found.flops) == {u for u in ("fp32", "tf32", "half") if datasheet(card, u)}
        for unit, rate in found.flops.items():
            peak = datasheet(card, unit)
            assert peak is not None
            assert 0.3 < rate / peak < 1.16, (card.id, unit)
            assert found.source[unit] in ("measured", "rule")


def test_emulated_bf16_does_not_drag_volta_down() -> None:
    """V100 measures 94.8 TFLOPS in fp16 and 10.3 in emulated bf16; only the first is its tensor cores."""
    v100 = achieved()["v100-sxm2-16gb"]
    assert v100.source["half"] == "measured"
    assert 90e12 < v100.flops["half"] < 100e12


def test_a_low_power_card_is_ruled_further_below_its_datasheet() -> None:
    l4, l40s = achieved()["l4-24gb"], achieved()["l40s-48gb"]
    assert l4.flops["half"] / 121e12 < l40s.flops["half"] / 362e12
