"""Two recordings of one step become one StepTrace whose sizes are affine in the batch."""

from __future__ import annotations

import importlib.metadata
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import BadConfig
from . import op_rules
from .step_trace import Affine, OpRow, StepTrace, Storage, TraceVariant

if TYPE_CHECKING:
    from .recorder import OpRecord, Recording, StorageRecord

Map = tuple[int, int, int]


def affine_trace(
    workload: str,
    variant: TraceVariant,
    batches: tuple[int, int],
    recordings: Sequence[Recording],
    *,
    parameters: int,
    trainable_parameters: int,
    gradient_bytes: int,
    rewrites: Sequence[str],
    notes: Sequence[str],
) -> StepTrace:
    """Check that both recordings are the same step, then fit every size. Raises BadConfig if not."""
    small, large = recordings
    _check_same(workload, batches, small, large)
    fitted = _Fit(batches)
    ops = _rows(small, large, fitted)
    storages = tuple(
        Storage(fitted(a.bytes, b.bytes), _category(b), b.phase, b.op)
        for a, b in zip(small.storages, large.storages, strict=True)
    )
    unruled = sorted({row.op for row in ops if row.rule == "default"})
    notes = list(notes)
    if unruled:
        notes.append(f"no rule of their own, priced by the bytes of their tensors: {', '.join(unruled)}")
    if fitted.superlinear:
        notes.append(
            f"{fitted.superlinear} sizes grow faster than the batch; scaled from batch {batches[1]}, "
            "they are too low beyond it"
        )
    return StepTrace(
        workload=workload,
        variant=variant,
        parameters=parameters,
        trainable_parameters=trainable_parameters,
        gradient_bytes=gradient_bytes,
        batches=batches,
        ops=ops,
        storages=storages,
        initially_alive=large.initially_alive,
        events=tuple(large.events),
        marks=tuple(large.marks),
        rewrites=tuple(rewrites),
        notes=tuple(notes),
        versions={name: _version(name) for name in ("torch", "transformers")},
    )


class _Fit:
    """value = constant + per_sample * batch through two points."""

    def __init__(self, batches: tuple[int, int]) -> None:
        self._small, self._large = batches
        self.superlinear = 0

    def __call__(self, small: float, large: float) -> Affine:
        if small == large:
            return Affine(small, 0)
        per_sample = (large - small) / (self._large - self._small)
        constant = small - per_sample * self._small
        if constant < 0 and small >= 0:
            # Grows faster than the batch (contrastive logits): a line would go negative at small batches.
            self.superlinear += 1
            return Affine(0, large / self._large)
        return Affine(constant, per_sample)


def _check_same(workload: str, batches: tuple[int, int], small: Recording, large: Recording) -> None:
    where = f"{workload}: steps at batch {batches[0]} and {batches[1]} differ"
    for position, (a, b) in enumerate(zip(small.ops, large.ops, strict=False)):
        if (a.kind.op, a.phase) != (b.kind.op, b.phase):
            raise BadConfig(
                f"{where} from op {position} on: {a.phase} {a.kind.op} against {b.phase} {b.kind.op}; "
                "the module takes another path by batch size, so no one trace serves it"
            )
    if len(small.ops) != len(large.ops):
        raise BadConfig(f"{where}: {len(small.ops)} ops against {len(large.ops)}")
    if small.initially_alive != large.initially_alive:
        kept = large.initially_alive - small.initially_alive
        raise BadConfig(
            f"{workload}: {kept} tensors more are alive after each step; "
            "the module or its loss keeps them, so no step is steady"
        )
    if small.events != large.events or small.marks != large.marks:
        raise BadConfig(f"{where} in the order of their allocations and frees")


def _rows(small: Recording, large: Recording, fitted: _Fit) -> tuple[OpRow, ...]:
    """Ops grouped by kind and phase, in order of first launch."""
    launched = Counter(zip(small.ops, large.ops, strict=True))
    # The same shapes may have been seen with other strides or arguments: one row for people.
    groups: dict[tuple[object, ...], tuple[OpRecord, OpRecord, int]] = {}
    for (a, b), count in launched.items():
        key = (b.kind.op, b.kind.op_class, b.phase, b.kind.shapes, a.kind.shapes, b.kind.cost, a.kind.cost)
        groups[key] = (a, b, count + (groups[key][2] if key in groups else 0))
    maps = _score_maps(large.ops)
    rows = []
    for a, b, count in groups.values():
        kind, cost = b.kind, b.kind.cost
        rows.append(
            OpRow(
                op=kind.op,
                op_class=_final_class(b, maps),
                phase=b.phase,
                count=count * cost.launches,
                flops=_times(fitted(a.kind.cost.flops, cost.flops), count),
                bytes_read=_times(fitted(a.kind.cost.bytes_read, cost.bytes_read), count),
                bytes_written=_times(fitted(a.kind.cost.bytes_written, cost.bytes_written), count),
                shape=_shape_text(kind.shapes),
                rule=cost.rule,
            )
        )
    return tuple(rows)


def _times(affine: Affine, count: int) -> Affine:
    return Affine(affine.constant * count, affine.per_sample * count)


def _score_maps(ops: Sequence[OpRecord]) -> frozenset[Map]:
    """Shapes that are a batched product's output and a softmax's input: materialised score matrices."""
    products: set[Map] = set()
    softmaxed: set[Map] = set()
    for kind in {record.kind: None for record in ops}:
        if kind.op in ("bmm", "baddbmm"):
            a, b = kind.shapes[-2:]
            products.add((a[0], a[1], b[2]))
        elif kind.op in ("_softmax", "_safe_softmax"):
            found = op_rules.score_map(kind.shapes[0])
            if found:
                softmaxed.add(found)
    return frozenset(products & softmaxed)


def _final_class(record: OpRecord, maps: frozenset[Map]) -> str:
    kind = record.kind
    if record.phase == "optimizer":
        return "optimizer"
    if not maps:
        return kind.op_class
    if kind.op in ("bmm", "baddbmm"):
        a, b = kind.shapes[-2:]
        shapes = (*kind.shapes, (a[0], a[1], b[2]))
        return "attention_unfused" if op_rules.touches_map(shapes, maps) else kind.op_class
    if kind.op_class in ("elementwise", "norm") and op_rules.touches_map(kind.shapes, maps):
        return "attention_map"
    return kind.op_class


def _category(record: StorageRecord) -> str:
    if record.category:
        return record.category
    return "optimizer_transient" if record.phase == "optimizer" else "temporaries"


def _shape_text(shapes: tuple[op_rules.Shape, ...]) -> str:
    """e.g. "4x512x768, 768"; long lists are cut and counted."""
    shown = ["x".join(map(str, shape)) or "scalar" for shape in shapes[:4]]
    if len(shapes) > 4:
        shown.append(f"… {len(shapes)} tensors")
    return ", ".join(shown)


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
