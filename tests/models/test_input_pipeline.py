"""What starves a GPU: loaders and storage cap a step, and are named."""

from __future__ import annotations

import pytest

from planner.models.hardware.catalogue import gpu
from planner.models.input_pipeline import InputPipeline
from planner.models.throughput import WAITING, StepEstimate, estimate_step
from tests.models.throughput_cases import transformer_step

BERT = transformer_step()


def fed(card: str, pipeline: InputPipeline | None, batch: int = 8) -> StepEstimate:
    return estimate_step(BERT, gpu(card), precision="fp16-amp", micro_batch=batch, input_pipeline=pipeline)


def test_c26_a_starved_gpu_is_as_slow_as_its_loader_and_a_faster_one_does_not_help() -> None:
    """C26: one batch per 0.217 s, loaded ahead: 217 s for 1,000 steps on either card; neither sum nor GPU."""
    loader = InputPipeline(seconds_per_sample=0.217 / 8)
    slow, fast = fed("rtx-3090-24gb", loader), fed("h100-sxm5-80gb", loader)
    alone = fed("rtx-3090-24gb", None)
    assert alone.step_seconds < 0.217
    assert 1000 * slow.step_seconds == pytest.approx(217)
    assert 1000 * fast.step_seconds == pytest.approx(217)
    assert any("data loading binds" in note for note in fast.notes)
    assert fast.low_seconds == pytest.approx(0.217)
    assert sum(seconds for _, _, seconds in fast.breakdown) == pytest.approx(fast.step_seconds)
    assert {name: s for name, _, s in slow.breakdown}[WAITING] == pytest.approx(0.217 - alone.step_seconds)


def test_c26_enough_workers_take_the_cap_away_and_its_name_with_it() -> None:
    loader = InputPipeline(seconds_per_sample=0.217 / 8, workers=64)
    found, alone = fed("rtx-3090-24gb", loader), fed("rtx-3090-24gb", None)
    assert found.step_seconds == alone.step_seconds
    assert not any("binds" in note for note in found.notes)
    assert WAITING not in {name for name, _, _ in found.breakdown}


def test_slow_storage_binds_under_its_own_name() -> None:
    drive = InputPipeline(0.001, workers=8, bytes_per_sample=150e3, storage_bytes_per_second=1e6)
    found = fed("h100-sxm5-80gb", drive)
    assert found.step_seconds == pytest.approx(8 * 0.15)
    assert any(note.startswith("storage binds") for note in found.notes)


@pytest.mark.parametrize(
    "wrong",
    [
        {"seconds_per_sample": -1.0},
        {"seconds_per_sample": float("nan")},
        {"seconds_per_sample": 0.1, "workers": 0},
        {"seconds_per_sample": 0.1, "storage_bytes_per_second": 0.0},
    ],
)
def test_a_pipeline_that_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        InputPipeline(**wrong)  # type: ignore[arg-type]


def test_compiling_quickens_a_step_widens_its_band_and_says_that_it_is_assumed() -> None:
    card = gpu("rtx-4090-24gb")
    plain = estimate_step(BERT, card, precision="bf16-amp", micro_batch=8)
    compiled = estimate_step(BERT, card, precision="bf16-amp", micro_batch=8, compiled=True)
    assert compiled.step_seconds < plain.step_seconds
    assert compiled.high_seconds / compiled.low_seconds > plain.high_seconds / plain.low_seconds
    assert any("torch.compile" in said for said in compiled.assumptions)
