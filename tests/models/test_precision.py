"""Numerics of each precision, and which units of a card run it."""

from __future__ import annotations

import pytest

from planner.models.errors import UnknownName
from planner.models.hardware.catalogue import gpu
from planner.models.precision import (
    PRECISIONS,
    PrecisionUnsupported,
    has_tensor_cores,
    peak_flops,
    policy_of,
    precision,
    unit_of,
)


def test_every_precision_names_its_policy() -> None:
    assert {name: policy_of(name) for name in PRECISIONS} == {
        "fp32": "fp32",
        "tf32": "fp32",
        "fp16-amp": "amp",
        "bf16-amp": "amp",
        "fp16": "half",
        "bf16": "half",
    }


def test_amp_keeps_fp32_weights_and_half_keeps_none() -> None:
    assert precision("bf16-amp").weight_bytes == 4
    assert precision("bf16").weight_bytes == 2
    assert precision("tf32").gradient_bytes == 4


def test_a_misspelt_precision_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match='Did you mean "bf16-amp"'):
        precision("bf16_amp")


def test_fp8_is_known_but_not_covered() -> None:
    with pytest.raises(PrecisionUnsupported, match="not covered"):
        precision("fp8")


def test_tf32_falls_to_fp32_where_the_card_has_none() -> None:
    assert unit_of(gpu("a100-sxm4-40gb"), "tf32") == "tf32"
    assert unit_of(gpu("v100-sxm2-16gb"), "tf32") == "fp32"
    assert peak_flops(gpu("v100-sxm2-16gb"), "tf32") == gpu("v100-sxm2-16gb").rate("fp32")


def test_half_before_volta_runs_on_the_fp32_units() -> None:
    assert unit_of(gpu("gtx-1080-ti-11gb"), "fp16-amp") == "half_on_fp32"
    assert peak_flops(gpu("gtx-1080-ti-11gb"), "fp16-amp") == gpu("gtx-1080-ti-11gb").rate("fp32")
    assert not has_tensor_cores(gpu("titan-xp-12gb"))
    assert has_tensor_cores(gpu("mi100-32gb"))


@pytest.mark.parametrize("card", ["t4-16gb", "v100-sxm2-16gb", "rtx-2080-ti-11gb"])
def test_emulated_bf16_is_refused_with_the_precision_to_use_instead(card: str) -> None:
    with pytest.raises(PrecisionUnsupported, match='Use "fp16-amp"'):
        unit_of(gpu(card), "bf16-amp")


def test_c24_fp32_and_tf32_use_the_vendor_peaks_that_flip_the_ranking() -> None:
    """C24: fp32 19.5 vs 82.6, the 4090 ahead 4.2 times; tf32 156 vs 82.6, the A100 ahead 1.9 times."""
    a100, rtx = gpu("a100-sxm4-40gb"), gpu("rtx-4090-24gb")
    assert peak_flops(a100, "fp32") == pytest.approx(19.5e12)
    assert peak_flops(rtx, "fp32") == pytest.approx(82.6e12, rel=1e-3)
    assert peak_flops(rtx, "fp32") / peak_flops(a100, "fp32") == pytest.approx(4.2, abs=0.05)
    assert peak_flops(a100, "tf32") / peak_flops(rtx, "tf32") == pytest.approx(1.9, abs=0.05)


def test_c23_sixteen_bit_peaks_are_dense_with_fp32_accumulation() -> None:
    """C23: A100 312, H100 SXM and H200 989, RTX 4090 165.2; 420 TFLOP/s on an H200 are 42.5 %."""
    assert peak_flops(gpu("a100-sxm4-80gb"), "bf16-amp") == pytest.approx(312e12)
    assert peak_flops(gpu("h100-sxm5-80gb"), "bf16-amp") == pytest.approx(989e12, abs=1.5e12)
    assert peak_flops(gpu("rtx-4090-24gb"), "bf16-amp") == pytest.approx(165.2e12, rel=1e-3)
    assert 420e12 / peak_flops(gpu("h200-sxm-141gb"), "bf16-amp") == pytest.approx(0.425, abs=0.001)
