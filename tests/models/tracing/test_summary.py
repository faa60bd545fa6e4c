"""A summary keeps what the trace says, and reads back as it was written."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from planner.models.errors import BadData
from planner.models.tracing import summary as summaries
from planner.models.tracing.step_trace import Affine, OpRow, StepTrace, Storage, TraceVariant
from planner.models.tracing.summary import summarise


def _trace(rule: str = "mm") -> StepTrace:
    """A hand-made step: weights and state at rest, one activation, one gradient, one transient."""

    def storage(constant: float, per_sample: float, category: str) -> Storage:
        return Storage(Affine(constant, per_sample), category, "forward", "op")

    def row(op_class: str, phase: Any, count: int, flops: Affine) -> OpRow:
        return OpRow(op_class, op_class, phase, count, flops, Affine(10, 1), Affine(0, 2), "2x2", rule)

    return StepTrace(
        workload="hand-made",
        variant=TraceVariant("amp", "flash", size=7),
        parameters=1024,
        trainable_parameters=512,
        gradient_bytes=2048,
        batches=(2, 4),
        ops=(
            row("gemm", "forward", 3, Affine(0, 8)),
            row("gemm", "forward", 1, Affine(2, 4)),
            row("norm", "backward", 2, Affine(0, 0)),
        ),
        storages=(
            storage(2**22, 0, "weights"),
            storage(2**23, 0, "optimizer_state"),
            storage(0, 2**20, "activations"),
            storage(2**22, 0, "gradients"),
            storage(2**21, 0, "optimizer_transient"),
        ),
        initially_alive=2,
        events=(3, 4, -3, 5, -5, -4),
        marks=((0, "forward"), (1, "backward"), (3, "optimizer")),
        rewrites=("one",),
        notes=("two",),
    )


def test_work_is_summed_by_class_and_phase() -> None:
    gemm, norm = summarise(_trace(), memory=False).work
    assert (gemm.op_class, gemm.phase, gemm.launches) == ("gemm", "forward", 4)
    assert gemm.flops == Affine(2, 12)
    assert gemm.bytes == Affine(20, 6)
    assert (norm.op_class, norm.phase, norm.launches, norm.flops) == ("norm", "backward", 2, Affine(0, 0))


def test_causal_attention_is_summed_at_half_its_square() -> None:
    assert summarise(_trace("fused attention, causal"), memory=False).work[0].flops == Affine(1, 6)


def test_memory_points_cover_the_grid_with_and_without_accumulation() -> None:
    points = summarise(_trace()).memory
    grid = [2**power for power in range(11)]
    assert [point.batch for point in points if not point.accumulating] == grid
    assert [point.batch for point in points if point.accumulating] == grid
    for point in points:
        assert sum(point.breakdown.values()) == point.allocated_bytes <= point.reserved_bytes
    largest = points[10]
    assert (largest.phase, largest.breakdown["activations"]) == ("backward", 1024 * 2**20)
    assert points[0].phase == "optimizer"


def test_the_grid_ends_where_activations_alone_fit_no_card() -> None:
    trace = _trace()
    storages = list(trace.storages)
    storages[2] = replace(storages[2], bytes=Affine(0, 100 * 2**30))
    points = summarise(replace(trace, storages=tuple(storages))).memory
    assert [point.batch for point in points if not point.accumulating] == [1, 2, 4, 8]


def test_states_too_large_for_a_card_do_not_end_the_grid() -> None:
    """They may be sharded: a 70B model still needs its activations at several micro-batches."""
    trace = _trace()
    storages = (replace(trace.storages[0], bytes=Affine(2**40, 0)), *trace.storages[1:])
    assert max(point.batch for point in summarise(replace(trace, storages=storages)).memory) == 1024


def test_a_summary_reads_back_as_it_was_written() -> None:
    summary = summarise(_trace())
    text = json.dumps(summaries.to_json(summary))
    assert summaries.from_json(json.loads(text), "here") == summary


def test_a_broken_summary_is_refused_with_its_name() -> None:
    body = summaries.to_json(summarise(_trace()))
    del body["parameters"]
    with pytest.raises(BadData, match=r"traces/x\.json: not a step summary .*parameters"):
        summaries.from_json(body, "traces/x.json")
    with pytest.raises(BadData, match="schema_version 0"):
        summaries.from_json({**body, "schema_version": 0}, "traces/x.json")


def test_a_summary_names_the_trace_it_was_made_from() -> None:
    assert summarise(_trace(), memory=False).trace_hash == _trace().content_hash
