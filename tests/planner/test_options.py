"""What could run a job: nothing that fits is missed, and what is skipped would have lost."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from made_up import ExactEstimator, machine, rig_of

from planner.estimator import Setting, TracedEstimator
from planner.models.errors import BadData
from planner.models.hardware import catalogue
from planner.models.precision import PrecisionUnsupported
from planner.models.workloads import zoo
from planner.options import OptionFinder, counts, distinct_precisions, divisors


def finder(
    estimator: object, batch: int = 32, precisions: tuple[str, ...] = ("bf16-amp",), **how: bool
) -> OptionFinder:
    return OptionFinder(estimator, precisions, batch, **how)  # type: ignore[arg-type]


def test_counts_double_up_to_the_most_gpus() -> None:
    assert counts(machine("m", gpus=1), 16) == (1, 2, 4, 8, 16)
    assert counts(machine("m", gpus=8), 16) == (1, 2)
    assert counts(machine("m", gpus=8), 7) == ()
    assert counts(machine("m", gpus=1, network="none"), 16) == (1,)


def test_divisors_come_largest_first() -> None:
    assert divisors(36) == (36, 18, 12, 9, 6, 4, 3, 2, 1)
    assert divisors(1) == (1,)


def test_the_largest_micro_batch_that_fits_makes_up_the_global_batch() -> None:
    """40 GiB, 4 GiB × (0.5 + 0.5 batch): 16 need 34 GiB, 32 need 66."""
    found, refused = finder(ExactEstimator(1.0, need_gib=4)).variants(machine("m"), 1)
    plain = next(v for v in found if not v.setting.activation_checkpointing)
    assert (plain.setting.micro_batch, plain.setting.accumulation) == (16, 2)
    assert not refused


def test_what_fits_nowhere_is_excluded_with_need_and_capacity() -> None:
    found, refused = finder(ExactEstimator(1.0, need_gib=400)).variants(machine("m"), 1)
    assert found == []
    assert refused[0].code == "memory"
    assert "does not fit: needs 240.0 GiB P95 of 40.0" in refused[0].reason
    assert "activation checkpointing" in refused[0].reason


def test_a_batch_that_does_not_divide_is_excluded() -> None:
    _, refused = finder(ExactEstimator(1.0), batch=6).variants(machine("m", gpus=4), 1)
    assert (refused[0].code, refused[0].reason) == ("batch", "global batch 6 does not divide over 4 GPUs")


def test_a_precision_the_card_lacks_is_a_reason_only_where_nothing_else_runs() -> None:
    cannot = {"bf16-amp": PrecisionUnsupported("no bf16 here")}
    estimator = ExactEstimator(1.0, refuse=cannot)
    assert finder(estimator).variants(machine("m"), 1)[1][0].code == "precision"
    found, refused = finder(estimator, precisions=("bf16-amp", "tf32")).variants(machine("m"), 1)
    assert {v.setting.precision for v in found} == {"tf32"}
    assert refused == []


def test_a_broken_data_file_stops_the_plan_instead_of_excluding_everything() -> None:
    estimator = ExactEstimator(1.0, refuse={"bf16-amp": BadData("profile.json: key")})
    with pytest.raises(BadData):
        finder(estimator).variants(machine("m"), 1)


def test_equal_precisions_are_tried_once() -> None:
    usual = ("fp16-amp", "bf16-amp", "tf32", "fp32")
    assert distinct_precisions(catalogue.gpu("a100-sxm4-40gb"), usual) == ["fp16-amp", "tf32"]
    assert distinct_precisions(catalogue.gpu("v100-sxm2-16gb"), usual) == ["fp16-amp", "bf16-amp", "tf32"]
    assert distinct_precisions(catalogue.gpu("a100-sxm4-40gb"), ("fp32", "bf16")) == ["fp32", "bf16"]


@pytest.mark.parametrize(
    ("card", "gpus", "link"),
    [
        ("rtx-4090-24gb", 1, "none"),
        ("rtx-4090-24gb", 4, "pcie4-no-p2p"),
        ("a100-sxm4-40gb", 8, "nvswitch-a100"),
    ],
)
@pytest.mark.parametrize("workload", ["bert-base", "resnet50"])
def test_with_the_real_estimators_no_skipped_variant_is_faster(
    workload: str, card: str, gpus: int, link: str
) -> None:
    """Every micro-batch with and without checkpointing that fits, priced one by one, against those kept."""
    found = zoo.workload(workload)
    assert found.reference is not None
    estimator = TracedEstimator(found, found.default_size, found.reference.optimizer)
    batch, gpu = 64, catalogue.gpu(card)
    base = machine("m", gpus=gpus)
    tested = type(base)("m", "aws", gpu, gpus, link, "none")
    kept, _ = OptionFinder(estimator, ("fp16-amp",), batch).variants(tested, 1)
    fastest = min(v.step.step_seconds for v in kept)
    flags = (False, True) if estimator.can_checkpoint else (False,)
    for micro, checkpointing in product(divisors(batch // gpus), flags):
        accumulation = batch // gpus // micro
        setting = Setting("fp16-amp", micro, accumulation, gpus, 1, link, "none", "ddp", checkpointing)
        if estimator.memory(gpu, setting).fits != "yes":
            continue
        assert estimator.step(gpu, setting, None).step_seconds >= fastest * (1 - 1e-12), setting


def test_the_fastest_is_kept_and_for_confidence_also_what_is_better_at_the_slow_end() -> None:
    class TwoPrecisions(ExactEstimator):
        def step(self, gpu, setting, power_limit_watts):  # type: ignore[no-untyped-def]
            step = super().step(gpu, setting, power_limit_watts)
            factor, band = {"fp16": (1.0, 2.0), "tf32": (1.2, 1.1), "bf16-amp": (1.3, 3.0)}[setting.precision]
            seconds = step.step_seconds * factor
            return replace(
                step, step_seconds=seconds, low_seconds=seconds / band, high_seconds=seconds * band
            )

    def kept(by_slow_end: bool) -> list[str]:
        precisions = ("fp16", "tf32", "bf16-amp")
        one = finder(TwoPrecisions(1.0), precisions=precisions, by_slow_end=by_slow_end)
        return [variant.setting.precision for variant in one.variants(machine("m"), 1)[0]]

    assert kept(by_slow_end=False) == ["fp16"]
    assert kept(by_slow_end=True) == ["fp16", "tf32"]


def test_rigs_of_the_catalogue_are_machines_with_their_link() -> None:
    rig = rig_of("rig-4x-rtx-4090")
    assert (rig.provider, rig.gpu_count, rig.link) == ("own", 4, "pcie4-no-p2p")
