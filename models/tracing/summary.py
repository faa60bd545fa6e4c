"""StepSummary: what planning needs of a StepTrace, small enough to read in a millisecond.

Made from a trace by `summarise`, never edited by hand; a test makes it again and compares.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import BadData
from .step_trace import PHASES, ZERO, Affine, OpRow, Phase, StepTrace, TraceVariant

SCHEMA_VERSION = 1

# The grid of micro-batches ends at LARGEST_BATCH, or at the first one no single GPU could hold, even with the
# model's states spread over others.
LARGEST_BATCH = 1024
LARGEST_UNSHARDED_BYTES = 400 * 2**30
SHARDED_CATEGORIES = frozenset({"weights", "gradients", "optimizer_state", "optimizer_transient"})


@dataclass(frozen=True, slots=True)
class ClassWork:
    """All the work of one op class in one phase of one micro-step.

    flops [FLOP] and bytes (read + written) [B] are affine in the micro-batch; launches is a count of kernels.
    flops are executed ones: causal fused attention, whose trace counts the full square, counts half here.
    """

    op_class: str
    phase: Phase
    flops: Affine
    bytes: Affine
    launches: int


@dataclass(frozen=True, slots=True)
class MemoryPoint:
    """Peaks of one replayed step at one micro-batch. [B]

    accumulating: gradients stay alive through the whole step, as under gradient accumulation.
    breakdown: category -> bytes alive at the allocated peak; adds up to allocated_bytes.
    """

    batch: int
    accumulating: bool
    allocated_bytes: int
    reserved_bytes: int
    breakdown: Mapping[str, int]
    phase: Phase
    op: str


@dataclass(frozen=True, slots=True)
class StepSummary:
    """One variant of one workload: its work by class and phase, and its memory on a grid of micro-batches."""

    workload: str
    variant: TraceVariant
    parameters: int
    trainable_parameters: int
    gradient_bytes: int
    work: tuple[ClassWork, ...]
    memory: tuple[MemoryPoint, ...]
    trace_hash: str
    rewrites: tuple[str, ...]
    notes: tuple[str, ...]


def summarise(trace: StepTrace, memory: bool = True) -> StepSummary:
    """Fold a trace into work by class and phase, and replay its memory on the grid of micro-batches.

    memory: False leaves the memory points out (they are most of the time: two replays per batch).
    """
    return StepSummary(
        workload=trace.workload,
        variant=trace.variant,
        parameters=trace.parameters,
        trainable_parameters=trace.trainable_parameters,
        gradient_bytes=trace.gradient_bytes,
        work=_work(trace.ops),
        memory=_memory(trace) if memory else (),
        trace_hash=trace.content_hash,
        rewrites=trace.rewrites,
        notes=trace.notes,
    )


def _work(ops: tuple[OpRow, ...]) -> tuple[ClassWork, ...]:
    flops: dict[tuple[str, Phase], Affine] = defaultdict(lambda: ZERO)
    moved: dict[tuple[str, Phase], Affine] = defaultdict(lambda: ZERO)
    launches: dict[tuple[str, Phase], int] = defaultdict(int)
    for row in ops:
        key = (row.op_class, row.phase)
        flops[key] += _executed_flops(row)
        moved[key] += row.bytes_read + row.bytes_written
        launches[key] += row.count
    return tuple(
        ClassWork(op_class, phase, flops[op_class, phase], moved[op_class, phase], count)
        for (op_class, phase), count in launches.items()
    )


def _executed_flops(row: OpRow) -> Affine:
    if not row.rule.endswith("causal"):
        return row.flops
    return Affine(row.flops.constant / 2, row.flops.per_sample / 2)


def _memory(trace: StepTrace) -> tuple[MemoryPoint, ...]:
    from ..allocator import replay

    points: list[MemoryPoint] = []
    for accumulating in (False, True):
        batch = 1
        while batch <= LARGEST_BATCH:
            replayed = replay(trace, batch, accumulating=accumulating)
            points.append(
                MemoryPoint(
                    batch=batch,
                    accumulating=accumulating,
                    allocated_bytes=replayed.allocated_peak_bytes,
                    reserved_bytes=replayed.reserved_peak_bytes,
                    breakdown={category: size for category, size in replayed.breakdown.items() if size},
                    phase=replayed.phase,
                    op=replayed.op,
                )
            )
            states = sum(replayed.breakdown.get(category, 0) for category in SHARDED_CATEGORIES)
            if replayed.allocated_peak_bytes - states > LARGEST_UNSHARDED_BYTES:
                break
            batch *= 2
    return tuple(points)


def to_json(summary: StepSummary) -> dict[str, Any]:
    """A JSON-ready dict. Work and memory are rows under shared categories: small and quick to read."""
    categories = sorted({category for point in summary.memory for category in point.breakdown})
    return {
        "schema_version": SCHEMA_VERSION,
        "workload": summary.workload,
        "variant": summary.variant.to_json(),
        "parameters": summary.parameters,
        "trainable_parameters": summary.trainable_parameters,
        "gradient_bytes": summary.gradient_bytes,
        "work": [
            [
                *(work.op_class, PHASES.index(work.phase)),
                *(_plain(number) for number in (work.flops.constant, work.flops.per_sample)),
                *(_plain(number) for number in (work.bytes.constant, work.bytes.per_sample)),
                work.launches,
            ]
            for work in summary.work
        ],
        "categories": categories,
        "memory": [
            [
                *(point.batch, int(point.accumulating), point.allocated_bytes, point.reserved_bytes),
                *(PHASES.index(point.phase), point.op),
                [point.breakdown.get(category, 0) for category in categories],
            ]
            for point in summary.memory
        ],
        "trace_hash": summary.trace_hash,
        "rewrites": list(summary.rewrites),
        "notes": list(summary.notes),
    }


def from_json(body: Mapping[str, Any], where: str) -> StepSummary:
    """Inverse of `to_json`. Raises BadData naming `where`."""
    try:
        if body["schema_version"] != SCHEMA_VERSION:
            raise BadData(
                f"{where}: schema_version {body['schema_version']}, this planner reads {SCHEMA_VERSION}; "
                "make it again with `make traces`"
            )
        categories = body["categories"]
        return StepSummary(
            workload=body["workload"],
            variant=TraceVariant(**body["variant"]),
            parameters=body["parameters"],
            trainable_parameters=body["trainable_parameters"],
            gradient_bytes=body["gradient_bytes"],
            work=tuple(
                ClassWork(op_class, PHASES[phase], Affine(a, b), Affine(c, d), launches)
                for op_class, phase, a, b, c, d, launches in body["work"]
            ),
            memory=tuple(
                MemoryPoint(
                    batch=batch,
                    accumulating=bool(accumulating),
                    allocated_bytes=allocated,
                    reserved_bytes=reserved,
                    breakdown={name: size for name, size in zip(categories, sizes, strict=True) if size},
                    phase=PHASES[phase],
                    op=op,
                )
                for batch, accumulating, allocated, reserved, phase, op, sizes in body["memory"]
            ),
            trace_hash=body["trace_hash"],
            rewrites=tuple(body["rewrites"]),
            notes=tuple(body["notes"]),
        )
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise BadData(f"{where}: not a step summary ({type(error).__name__}: {error})") from error


def _plain(number: float) -> float:
    return int(number) if number == int(number) else number
