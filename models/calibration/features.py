"""Features of a row: the work of its step, class by class, from the traced op lists.

`features.json.gz` holds forward and backward work of each op list the rows ran (make_features.py), affine in
the batch. Optimizer, adapters and dequantisation are added here, for they are no part of the op list.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from ..errors import BadData
from ..tracing.step_trace import FLOP_CLASSES, OP_CLASSES, ZERO, Affine, Phase
from .physics import BARE_OP, COMPILED_CLASSES, COMPILED_LAUNCHES, COMPILED_TRAFFIC
from .profile import Floats
from .recipes import Adapter, OptimizerKind, Recipe
from .sheet import REWRITTEN

FEATURES = "data/features.json.gz"

# Bytes read and written per trainable fp32 parameter and optimizer step, as the tracer counts the kernels
# torch launches. fused: gradient, weight and two moments in (16), weight and moments out (12).
OPTIMIZER_BYTES: Mapping[OptimizerKind, float] = {
    "adam-loop": 84.0,
    # Clipped one tensor at a time (16), then fourteen plain kernels; the norm is taken of all at once (4).
    "adam-bert": 138.0,
    "adam-fused": 28.0,
    "sgd-momentum": 44.0,
    "lamb-fused": 44.0,
    "none": 0.0,
}
# Launches per parameter tensor; fused kinds take some thirty tensors at once.
OPTIMIZER_LAUNCHES: Mapping[OptimizerKind, float] = {
    "adam-loop": 8.0,
    "adam-bert": 14.0,
    "adam-fused": 1 / 30,
    "sgd-momentum": 3.0,
    "lamb-fused": 1 / 10,
    "none": 0.0,
}
# DeepSpeed ZeRO-3 gathers and releases each module's parameters through hooks in Python, before and after
# every pass over it: some 0.1 ms each, as much as six launches. Ten modules to a layer. Ours, not a source's.
ZERO3_RECIPES = frozenset({"qwen-full"})
ZERO3_LAUNCHES_A_LAYER = 10 * 2 * 6
# A gradient added to one that is kept: two read, one written, in the gradient's own width; and one that is
# set to zero at the start of a step, as torch did before 2.0 unless asked otherwise: written.
ADDED_TIMES, ZEROED_TIMES = 3.0, 1.0
# Half weights with fp32 masters: the new weights are written once more, in 16 bits.
MASTER_BYTES = 2.0

# (width, inner, layers, vocabulary) of the models adapters were trained on.
ADAPTED: Mapping[str, tuple[int, int, int, int]] = {
    "qwen-1.8b": (2048, 5504, 24, 151936),
    "qwen-7b": (4096, 11008, 32, 151936),
    "qwen-14b": (5120, 13696, 40, 152064),
    "qwen-72b": (8192, 24576, 80, 152064),
    "stablelm-alpha-3b": (4096, 16384, 16, 50688),
}


@dataclass(frozen=True, slots=True)
class WorkRow:
    """Work of one op class in one phase. flops [FLOP], bytes [B]: affine in the micro-batch."""

    op_class: str
    phase: Phase
    flops: Affine
    bytes: Affine
    launches: int


@dataclass(frozen=True, slots=True)
class Work:
    """Forward and backward of one micro-step. tensors: how many parameters tensors the model has."""

    parameters: int
    tensors: int
    rows: tuple[WorkRow, ...]


@dataclass(frozen=True, slots=True)
class Features:
    """One optimizer step on one GPU of a row, summed over phases and micro-steps.

    flops: (F,) [FLOP]; bytes: (C,) [B]; launches: kernels; host_ops: as the host feels them;
    gradient_bytes: of one replica [B]; samples: per GPU.
    conv_launches: those whose images may have to be transposed.
    """

    flops: Floats
    bytes: Floats
    launches: float
    host_ops: float
    parameters: float
    trainable: float
    gradient_bytes: float
    samples: float
    conv_launches: float


@cache
def load() -> Mapping[str, Work]:
    """The features table by trace key. Raises BadData where it does not read back."""
    try:
        body = json.loads(gzip.decompress(files(__package__).joinpath(FEATURES).read_bytes()))
        return {key: _work(value) for key, value in body.items()}
    except (OSError, EOFError, KeyError, TypeError, ValueError) as error:
        raise BadData(
            f"{FEATURES}: not a features table ({error}); make it again: "
            "python -m planner.models.calibration.make_features"
        ) from error


def write(table: Mapping[str, Work], path: Path) -> None:
    """The same bytes for the same table."""
    body = {
        key: [
            work.parameters,
            work.tensors,
            [
                [
                    *(row.op_class, row.phase, row.flops.constant, row.flops.per_sample),
                    *(row.bytes.constant, row.bytes.per_sample, row.launches),
                ]
                for row in work.rows
            ],
        ]
        for key, work in table.items()
    }
    path.write_bytes(gzip.compress(json.dumps(body, separators=(",", ":")).encode(), mtime=0))


def features_of(recipe: Recipe, shard: float = 1.0) -> Features:
    """Work of one optimizer step of `recipe`. shard: the share of the update this GPU makes.

    Raises KeyError for a recipe whose op list is not in the table.
    """
    work = load()[recipe.trace_key]
    flops, moved = np.zeros(len(FLOP_CLASSES)), np.zeros(len(OP_CLASSES))
    launches = conv_launches = 0.0
    for row in _compiled(_adapted(recipe, work) if recipe.adapter else work.rows, recipe):
        at = OP_CLASSES.index(row.op_class)
        moved[at] += row.bytes.at(recipe.batch) * recipe.accumulation
        if at < len(FLOP_CLASSES):
            flops[at] += row.flops.at(recipe.batch) * recipe.accumulation
        launches += row.launches * recipe.accumulation
        if row.op_class in REWRITTEN:
            conv_launches += row.launches * recipe.accumulation
    if recipe.id in ZERO3_RECIPES:
        passes = 3 if recipe.checkpointing else 2
        launches += ZERO3_LAUNCHES_A_LAYER * ADAPTED[recipe.model][2] * passes * recipe.accumulation
    trainable, tensors = _trainable(recipe, work)
    per_parameter = OPTIMIZER_BYTES[recipe.optimizer]
    if per_parameter and recipe.policy == "half":
        per_parameter += MASTER_BYTES
    moved[OP_CLASSES.index("optimizer")] += per_parameter * trainable * shard
    bare = OPTIMIZER_LAUNCHES[recipe.optimizer] * tensors
    added = recipe.accumulation if recipe.zeroes_gradients else recipe.accumulation - 1
    times = ADDED_TIMES * added + ZEROED_TIMES * recipe.zeroes_gradients
    # Sharded gradients are added where they are kept.
    moved[OP_CLASSES.index("optimizer")] += times * trainable * recipe.gradient_bytes * shard
    bare += (added + recipe.zeroes_gradients) * tensors
    launches += bare
    return Features(
        flops=flops,
        bytes=moved,
        launches=launches,
        host_ops=launches - (1.0 - BARE_OP) * bare,
        parameters=float(work.parameters),
        trainable=trainable,
        gradient_bytes=trainable * recipe.gradient_bytes,
        samples=recipe.batch * recipe.accumulation,
        conv_launches=conv_launches,
    )


def _compiled(rows: Sequence[WorkRow], recipe: Recipe) -> list[WorkRow]:
    """The op list as torch.compile leaves it, where the recipe compiles."""
    if not recipe.compiled:
        return list(rows)
    return [
        replace(
            row,
            bytes=_times(row.bytes, COMPILED_TRAFFIC) if row.op_class in COMPILED_CLASSES else row.bytes,
            launches=round(row.launches * COMPILED_LAUNCHES),
        )
        for row in rows
    ]


def _trainable(recipe: Recipe, work: Work) -> tuple[float, float]:
    """(parameters, tensors) that the optimizer updates."""
    adapter = recipe.adapter
    if adapter is None:
        return float(work.parameters), float(work.tensors)
    width, inner, layers, vocabulary = ADAPTED[recipe.model]
    per_layer, linears = _adapted_widths(adapter, width, inner)
    trainable = float(adapter.rank * per_layer * layers)
    if adapter.embeddings:
        trainable += 2.0 * vocabulary * width
    return trainable, 2.0 * linears * layers


def _adapted_widths(adapter: Adapter, width: int, inner: int) -> tuple[int, int]:
    """(sum of inputs and outputs of the adapted linear layers of a block, how many there are)."""
    if adapter.targets == "attention":
        return 4 * width, 1  # one fused projection, of which queries and values are adapted
    return 8 * width + 2 * inner, 4


def _adapted(recipe: Recipe, work: Work) -> list[WorkRow]:
    """The op list under LoRA: no weight gradients of frozen layers, small products beside the large ones.

    Weight gradients cost as much as the forward products, which is what is taken off the backward ones.
    """
    assert recipe.adapter is not None
    width, inner, layers, vocabulary = ADAPTED[recipe.model]
    per_layer, linears = _adapted_widths(recipe.adapter, width, inner)
    tokens = float(recipe.size or 1)
    passes = 2 if recipe.checkpointing else 1  # forward passes of a micro-step
    forward = next(row for row in work.rows if (row.op_class, row.phase) == ("gemm", "forward"))
    rows = []
    for row in work.rows:
        if (row.op_class, row.phase) == ("gemm", "backward"):
            kept = 2.0 * vocabulary * width * tokens if recipe.adapter.embeddings else 0.0
            flops = Affine(row.flops.constant, row.flops.per_sample - forward.flops.per_sample + kept)
            moved = _less(row.bytes, forward.bytes)
            rows.append(WorkRow("gemm", "backward", flops, moved, row.launches - forward.launches))
        else:
            rows.append(row)
    # Per adapted layer: two products, scale, dropout, add, casts; the same again and gradients in backward.
    rows.append(
        WorkRow(
            "elementwise",
            "backward",
            ZERO,
            Affine(0.0, 2.0 * tokens * per_layer * layers * (3 * passes + 4)),
            linears * layers * (6 * passes + 8),
        )
    )
    if recipe.adapter.quantised:
        blocks = work.parameters - 2.0 * vocabulary * width
        # Four bits in, sixteen out, in every forward pass and for the gradients of the inputs.
        rows.append(
            WorkRow(
                "dequantisation",
                "forward",
                ZERO,
                Affine(2.5 * blocks * (passes + 1), 0.0),
                linears * layers * (passes + 1),
            )
        )
    return rows


def _times(a: Affine, factor: float) -> Affine:
    return Affine(a.constant * factor, a.per_sample * factor)


def _less(a: Affine, b: Affine) -> Affine:
    return Affine(max(0.0, a.constant - b.constant), max(0.0, a.per_sample - b.per_sample))


def _work(value: list[object]) -> Work:
    parameters, tensors, rows = value
    assert isinstance(parameters, int)
    assert isinstance(tensors, int)
    assert isinstance(rows, list)
    return Work(
        parameters,
        tensors,
        tuple(
            WorkRow(op_class, phase, Affine(f0, f1), Affine(y0, y1), launches)
            for op_class, phase, f0, f1, y0, y1, launches in rows
        ),
    )
