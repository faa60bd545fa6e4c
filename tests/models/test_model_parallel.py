"""Tensor and pipeline parallel steps: what is computed, sent and waited for."""

from __future__ import annotations

import pytest

from planner.models import model_parallel, scaling
from planner.models.hardware.catalogue import gpu
from planner.models.model_parallel import Blocks, CannotSplit, Split
from planner.models.throughput import BUBBLE, COMMUNICATION, StepEstimate, estimate_step
from planner.models.workloads import zoo
from planner.models.workloads.blocks import blocks_of
from tests.models.throughput_cases import transformer_step

PARAMETERS = 6_500_000_000
BLOCKS = Blocks(layers=32, width=4096, tokens=2048, heads=32, vocabulary=32_000)
LLAMA = transformer_step(tokens=2048, width=4096, layers=32, parameters=PARAMETERS)
A100 = gpu("a100-sxm4-80gb")


def step(tensor: int = 1, pipeline: int = 1, gpus: int = 8, **how: object) -> StepEstimate:
    asked: dict[str, object] = {"link": "nvswitch-a100", "accumulation": 8, **how}
    return estimate_step(
        LLAMA,
        A100,
        precision="bf16",
        micro_batch=1,
        gpu_count=gpus,
        tensor_parallel=tensor,
        pipeline_parallel=pipeline,
        blocks=BLOCKS,
        **asked,  # type: ignore[arg-type]
    )


def test_a_layer_all_reduces_its_activations_twice_forward_and_twice_backward() -> None:
    """Megatron-LM, arXiv 1909.08053, figure 4: four all-reduces of batch x tokens x width a layer."""
    fabric = scaling.Fabric.of(8, 1, "nvswitch-a100", "none")
    sent = model_parallel.traffic(
        Split(8, 1, BLOCKS),
        fabric,
        micro_batch=2,
        accumulation=3,
        replicas=1,
        compute_bytes=2,
        parameters=PARAMETERS,
        recomputes=False,
    )
    message = 2 * 2048 * 4096 * 2
    assert sent.bytes == pytest.approx(4 * 32 * 3 * 2 * 7 / 8 * message)


def test_a_pipeline_waits_p_minus_1_of_m_micro_batches() -> None:
    """1F1B with even stages: (m + p - 1) / m of the time without a bubble, arXiv 2104.04473 section 2.2."""
    even = Split(1, 4, Blocks(32, 4096, 2048))  # no vocabulary: no head to unbalance the stages
    assert even.micro_steps(8, PARAMETERS) == pytest.approx((8 + 4 - 1) / 4)
    alone = even.micro_steps(1, PARAMETERS)
    assert alone == pytest.approx(1.0)  # one micro-batch passes all stages, one after the other


def test_the_output_head_and_odd_layers_make_a_stage_the_busiest() -> None:
    assert Split(1, 4, BLOCKS).busiest(PARAMETERS) > 1 / 4
    assert Split(1, 3, Blocks(32, 4096, 2048)).busiest(PARAMETERS) == pytest.approx(11 / 32)


def test_more_micro_batches_shrink_the_bubble() -> None:
    def bubble(accumulation: int) -> float:
        found = step(1, 8, accumulation=accumulation)
        return sum(s for name, _, s in found.breakdown if name == BUBBLE) / found.step_seconds

    assert bubble(1) > bubble(8) > bubble(64) > 0


def test_the_breakdown_of_a_split_step_adds_up_and_names_what_it_waits_for() -> None:
    found = step(4, 2)
    assert sum(seconds for *_, seconds in found.breakdown) == pytest.approx(found.step_seconds)
    assert {BUBBLE, COMMUNICATION} <= {name for name, *_ in found.breakdown}
    assert any("tensor parallel 4, pipeline parallel 2" in said for said in found.assumptions)
    assert found.samples_per_second == pytest.approx(8 / found.step_seconds)


def test_tensor_parallel_over_a_network_is_slower_than_within_a_machine() -> None:
    within = step(8, 1)
    across = step(8, 1, node_count=2, network="efa")
    assert across.communication_seconds > 2 * within.communication_seconds


def test_replicas_of_a_split_model_exchange_their_share_of_the_gradients() -> None:
    whole = scaling.exchange(
        strategy="ddp",
        gradient_bytes=4e9,
        parameters=1e9,
        gpu_count=16,
        node_count=2,
        link_name="nvswitch-a100",
        network_name="efa",
        accumulation=1,
        tensor_parallel=8,
    )
    assert whole.bytes == pytest.approx(2 * 1 / 2 * 4e9 / 8)
    # Eight rings of two share the network that one ring of sixteen had to itself.
    assert whole.bandwidth_bytes_per_second == pytest.approx(29.6e9 / 8)


@pytest.mark.parametrize(
    ("split", "gpus", "says"),
    [
        (Split(3, 1, BLOCKS), 6, "32 attention heads"),
        (Split(1, 64, BLOCKS), 64, "32 layers"),
        (Split(4, 2, BLOCKS), 12, "do not divide"),
        (Split(2, 1, None), 2, "no language model of one stack"),
    ],
)
def test_what_cannot_be_split_so_is_refused_with_the_reason(split: Split, gpus: int, says: str) -> None:
    with pytest.raises(CannotSplit, match=says):
        split.checked(gpus, "the model")


def test_counts_below_one_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Split(0, 1).checked(1, "the model")


def test_blocks_are_read_from_the_configuration_of_plain_language_models_alone() -> None:
    assert blocks_of(zoo.workload("llama-2-7b"), 512) == Blocks(32, 4096, 512, 32, 32_000)
    assert blocks_of(zoo.workload("mpt-7b"), None) == Blocks(32, 4096, 2048, 32, 50_432)
    for other in ("t5-base", "mixtral-8x7b", "vit-base", "resnet50", "clip-vit-b32", "mlp-mnist"):
        assert blocks_of(zoo.workload(other), None) is None, other
