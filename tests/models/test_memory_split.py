"""Tensor-parallel ranks against traces of what one rank runs, and on summaries added up in the head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from planner.models.memory_peak import peak_at
from planner.models.memory_split import rank_summary
from planner.models.model_parallel import Blocks, CannotSplit, Split
from planner.models.tracing.step_trace import TraceVariant
from planner.models.tracing.summary import StepSummary
from planner.models.vram import estimate_memory, max_micro_batch

GIB = 2**30
BLOCKS = Blocks(layers=4, width=64, tokens=128, heads=8, vocabulary=256)

Make = Callable[..., StepSummary]


def test_states_are_shared_and_the_whole_part_of_activations_is_not(hand_made_summary: Make) -> None:
    whole = hand_made_summary(states_bytes=16 * GIB, bytes_per_sample=4 * GIB)
    rank = peak_at(rank_summary(whole, Split(4, 1, BLOCKS)), 8, accumulating=False)
    assert rank.parts["weights"] == rank.parts["gradients"] == GIB
    assert rank.parts["optimizer_state"] == 2 * GIB
    assert 32 * GIB / 4 < rank.parts["activations"] < 32 * GIB
    assert sum(rank.parts.values()) == rank.allocated_p50


@pytest.mark.parametrize("checkpointing", [False, True])
def test_more_ranks_never_need_more_each(hand_made_summary: Make, rtx_4090: Any, checkpointing: bool) -> None:
    variant = TraceVariant(activation_checkpointing=checkpointing)
    summary = hand_made_summary(states_bytes=32 * GIB, variant=variant)
    needs = [
        estimate_memory(
            *(summary, rtx_4090), precision="fp32", micro_batch=4, gpu_count=8, split=Split(t, 1, BLOCKS)
        ).allocated_bytes.p50
        for t in (2, 4, 8)
    ]
    assert needs == sorted(needs, reverse=True)


def test_replicas_of_ranks_share_their_states_again_under_zero(
    hand_made_summary: Make, rtx_4090: Any
) -> None:
    summary = hand_made_summary(states_bytes=32 * GIB)
    shape = {"precision": "fp32", "gpu_count": 8, "split": Split(2, 1, BLOCKS)}
    ddp, fsdp = (
        estimate_memory(summary, rtx_4090, micro_batch=1, strategy=strategy, **shape)
        for strategy in ("ddp", "fsdp")
    )
    assert ddp.breakdown["optimizer_state"] == 8 * GIB  # of 16, over two ranks
    assert fsdp.breakdown["optimizer_state"] == 2 * GIB  # over four replicas as well
    assert any("tensor parallel 2" in line for line in ddp.assumptions)
    assert max_micro_batch(summary, rtx_4090, strategy="fsdp", **shape) > 0


@pytest.mark.parametrize(
    ("split", "gpu_count", "adapter", "said"),
    [
        (Split(1, 2, BLOCKS), 2, "", "memory of pipeline stages is not estimated"),
        (Split(2, 1, None), 2, "", "no language model of one stack of layers"),
        (Split(3, 1, BLOCKS), 4, "", "4 GPUs do not divide"),
        (Split(2, 1, BLOCKS), 2, "lora-r16-q_proj+v_proj-fp32", "adapters under tensor parallelism"),
    ],
)
def test_what_cannot_be_split_is_refused_in_words(
    hand_made_summary: Make, rtx_4090: Any, split: Split, gpu_count: int, adapter: str, said: str
) -> None:
    summary = hand_made_summary(variant=TraceVariant(adapter=adapter))
    with pytest.raises(CannotSplit, match=said):
        estimate_memory(summary, rtx_4090, precision="fp32", micro_batch=1, gpu_count=gpu_count, split=split)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["half", "amp", "fp32"])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_a_ranks_peak_is_that_of_a_trace_of_what_it_runs(policy: Any, checkpointing: bool) -> None:
    """Four blocks of Llama-2-7B: heads, inner width and vocabulary over t, hidden width whole; within 7 %."""
    pytest.importorskip("transformers")
    from planner.models.allocator import replay
    from planner.models.tracing.summary import summarise
    from planner.models.tracing.tracer import trace_task
    from planner.models.workloads import building
    from planner.models.workloads.blocks import blocks_of
    from planner.models.workloads.zoo import workload

    tokens = 512
    variant = TraceVariant(policy, "efficient" if policy == "fp32" else "flash", checkpointing, size=tokens)

    def traced(ranks: int) -> Any:
        base = workload("llama-2-7b")
        config = {**base.builder.config, "num_hidden_layers": 4, "head_dim": 128}
        for name in ("num_attention_heads", "num_key_value_heads", "intermediate_size", "vocab_size"):
            config[name] //= ranks
        changed = replace(base, builder=replace(base.builder, config=config))
        return trace_task(building.task(changed, tokens), variant), blocks_of(changed, tokens)

    whole, blocks = traced(1)
    summary = summarise(whole)
    for ranks in (2, 4, 8):
        rank = rank_summary(summary, Split(ranks, 1, blocks))
        trace, _ = traced(ranks)
        for batch in (1, 8, 64):
            expected = replay(trace, batch).allocated_peak_bytes
            found = peak_at(rank, batch, accumulating=False).allocated_p50
            assert found == pytest.approx(expected, rel=0.07), (ranks, batch)
