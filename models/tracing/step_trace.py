"""StepTrace: one whole training step (forward, backward, optimizer) as data.

A trace is made once, on the meta device, at two batch sizes; every size in it is affine in the batch, so
one trace serves all batches. Two estimators read it: throughput prices `ops`, memory replays `events`.
Planning reads only the StepSummary that `summary.py` derives from it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..errors import BadData

SCHEMA_VERSION = 1

Phase = Literal["forward", "backward", "optimizer"]
PHASES: tuple[Phase, ...] = ("forward", "backward", "optimizer")

# What an op does to a GPU's time. The first eight carry FLOPs, the rest only move bytes; a FLOP-bearing
# class moves bytes as well. Rules that put an aten op into a class are in op_rules.py.
FLOP_CLASSES = (
    "gemm",
    "attention_unfused",  # the two batched products around a materialised score matrix
    "attention_fused",
    "conv",  # kernel > 1, dense
    "conv_1x1",
    "conv_grouped",  # grouped and depthwise
    "conv_stem",  # at most 4 input channels
    "rnn",
)
BYTE_CLASSES = (
    "attention_map",  # softmax, masks, dropout on a materialised score matrix
    "norm",  # layer/group/RMS norm, softmax, pooling, losses and other reductions
    "batch_norm",
    "elementwise",
    "embedding",
    "optimizer",
    "dequantisation",
)
OP_CLASSES = FLOP_CLASSES + BYTE_CLASSES

# Numerics of the step. fp32 covers true fp32 and TF32 (same ops, other rates); amp is autocast to a 16-bit
# type with fp32 master weights; half keeps weights, gradients and moments in 16 bits.
PrecisionPolicy = Literal["fp32", "amp", "half"]

# Which attention a card runs; "efficient" is the memory-efficient kernel: any dtype, any card since Maxwell.
AttentionKernel = Literal["flash", "efficient", "math", "none"]


@dataclass(frozen=True, slots=True)
class Affine:
    """constant + per_sample * batch. The unit is that of the field that holds it."""

    constant: float
    per_sample: float

    def at(self, batch: float) -> float:
        return self.constant + self.per_sample * batch

    def __add__(self, other: Affine) -> Affine:
        return Affine(self.constant + other.constant, self.per_sample + other.per_sample)


ZERO = Affine(0, 0)


@dataclass(frozen=True, slots=True)
class TraceVariant:
    """The choices that change the op list of one workload."""

    precision_policy: PrecisionPolicy = "fp32"
    attention_kernel: AttentionKernel = "efficient"
    activation_checkpointing: bool = False
    optimizer: str = "adamw-foreach"
    # Sequence length [tokens] or image side [pixels]; None where the workload has neither.
    size: int | None = None
    # What is trained instead of all weights, as adapter_spec.AdapterSpec.key writes it; "" trains all.
    adapter: str = ""

    @property
    def key(self) -> str:
        """File-name-safe id, e.g. "amp-flash-ckpt-adamw-foreach-s384"."""
        parts: list[str] = [self.precision_policy, self.attention_kernel]
        if self.activation_checkpointing:
            parts.append("ckpt")
        parts.append(self.optimizer)
        if self.size is not None:
            parts.append(f"s{self.size}")
        if self.adapter:
            parts.append(self.adapter)
        return "-".join(parts)

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dict; without an adapter it says nothing of adapters, as traces before them."""
        body = asdict(self)
        if not self.adapter:
            del body["adapter"]
        return body


@dataclass(frozen=True, slots=True)
class OpRow:
    """All launches of one op on one shape in one phase.

    flops, bytes_read, bytes_written: totals over `count` launches. [FLOP], [B]
    shape: the input shapes at the larger traced batch, for people.
    rule: which rule of op_rules.py made the bytes.
    """

    op: str
    op_class: str
    phase: Phase
    count: int
    flops: Affine
    bytes_read: Affine
    bytes_written: Affine
    shape: str
    rule: str


@dataclass(frozen=True, slots=True)
class Storage:
    """One allocation of the step. `bytes` is what the program asked for, before any rounding.

    category: weights, low_precision_copies, gradients, optimizer_state, optimizer_transient, activations
    (saved for backward), temporaries or inputs.
    """

    bytes: Affine
    category: str
    phase: Phase
    op: str


@dataclass(frozen=True, slots=True)
class StepTrace:
    """One steady training step (the second: optimizer state is alive from its start).

    events: `i + 1` allocates storages[i], `-(i + 1)` frees it, in program order. The first
    `initially_alive` storages (weights, optimizer state, what step 1 left) have no allocating event.
    marks: (index into events, phase that begins there).
    """

    workload: str
    variant: TraceVariant
    parameters: int
    trainable_parameters: int
    gradient_bytes: int
    batches: tuple[int, int]
    ops: tuple[OpRow, ...]
    storages: tuple[Storage, ...]
    initially_alive: int
    events: tuple[int, ...]
    marks: tuple[tuple[int, Phase], ...]
    rewrites: tuple[str, ...]
    notes: tuple[str, ...]
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def content_hash(self) -> str:
        """sha256 of the trace without its versions: equal for equal steps."""
        body = to_json(self)
        del body["versions"]
        return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _affine(pair: Iterable[float]) -> Affine:
    constant, per_sample = pair
    return Affine(constant, per_sample)


def _pair(value: Affine) -> list[float]:
    return [_plain(value.constant), _plain(value.per_sample)]


def _plain(number: float) -> float:
    return int(number) if number == int(number) else number


def to_json(trace: StepTrace) -> dict[str, Any]:
    """A JSON-ready dict; texts that repeat (ops, categories, rules) are interned into one table."""
    texts: dict[str, int] = {}

    def text(value: str) -> int:
        return texts.setdefault(value, len(texts))

    ops = [
        [
            *(text(o.op), text(o.op_class), PHASES.index(o.phase), o.count),
            *(_pair(o.flops), _pair(o.bytes_read), _pair(o.bytes_written), text(o.shape), text(o.rule)),
        ]
        for o in trace.ops
    ]
    storages = [
        [*_pair(s.bytes), text(s.category), PHASES.index(s.phase), text(s.op)] for s in trace.storages
    ]
    return {
        "schema_version": SCHEMA_VERSION,
        "workload": trace.workload,
        "variant": trace.variant.to_json(),
        "parameters": trace.parameters,
        "trainable_parameters": trace.trainable_parameters,
        "gradient_bytes": trace.gradient_bytes,
        "batches": list(trace.batches),
        "ops": ops,
        "storages": storages,
        "initially_alive": trace.initially_alive,
        "events": list(trace.events),
        "marks": [list(mark) for mark in trace.marks],
        "rewrites": list(trace.rewrites),
        "notes": list(trace.notes),
        "versions": dict(trace.versions),
        "texts": list(texts),
    }


def from_json(body: Mapping[str, Any], where: str) -> StepTrace:
    """Inverse of `to_json`. Raises BadData naming `where` and the key that is wrong."""
    try:
        if body["schema_version"] != SCHEMA_VERSION:
            raise BadData(
                f"{where}: schema_version {body['schema_version']}, this planner reads {SCHEMA_VERSION}; "
                "delete the file and it is traced again"
            )
        texts: list[str] = body["texts"]
        return StepTrace(
            workload=body["workload"],
            variant=TraceVariant(**body["variant"]),
            parameters=body["parameters"],
            trainable_parameters=body["trainable_parameters"],
            gradient_bytes=body["gradient_bytes"],
            batches=(body["batches"][0], body["batches"][1]),
            ops=tuple(
                OpRow(
                    texts[op],
                    texts[op_class],
                    PHASES[phase],
                    count,
                    _affine(flops),
                    _affine(read),
                    _affine(written),
                    texts[shape],
                    texts[rule],
                )
                for op, op_class, phase, count, flops, read, written, shape, rule in body["ops"]
            ),
            storages=tuple(
                Storage(Affine(constant, per_sample), texts[category], PHASES[phase], texts[op])
                for constant, per_sample, category, phase, op in body["storages"]
            ),
            initially_alive=body["initially_alive"],
            events=tuple(body["events"]),
            marks=tuple((index, phase) for index, phase in body["marks"]),
            rewrites=tuple(body["rewrites"]),
            notes=tuple(body["notes"]),
            versions=body["versions"],
        )
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise BadData(f"{where}: not a step trace ({type(error).__name__}: {error})") from error


def write(trace: StepTrace, path: Path) -> None:
    """Write gzip JSON, the same bytes for the same trace; the file appears whole or not at all."""
    packed = gzip.compress(json.dumps(to_json(trace), separators=(",", ":")).encode(), mtime=0)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(packed)
    partial.replace(path)


def read(path: Path) -> StepTrace:
    """Read a trace file. Raises BadData where it is broken."""
    try:
        body = json.loads(gzip.decompress(path.read_bytes()))
    except (OSError, EOFError, ValueError) as error:
        raise BadData(f"{path}: not readable as gzip JSON ({error})") from error
    return from_json(body, str(path))
