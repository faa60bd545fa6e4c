"""StepSummary: what planning needs of a StepTrace, small enough to read in a millisecond.

Made from a trace by `summarise`, never edited by hand; a test makes it again and compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .step_trace import Affine, Phase, TraceVariant


@dataclass(frozen=True, slots=True)
class ClassWork:
    """All the work of one op class in one phase of one micro-step.

    flops [FLOP] and bytes (read + written) [B] are affine in the micro-batch; launches is a count of kernels.
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


def to_json(summary: StepSummary) -> dict[str, Any]:
    """A JSON-ready dict of plain values."""
    return asdict(summary)
