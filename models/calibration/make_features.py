"""Trace every op list that the rows of throughput.csv ran, once, and write the features table.

    python -m planner.models.calibration.make_features

Needs torch and transformers and some minutes; what it writes (data/features.json.gz) is all that the fit and
`validate` read. Decoders are traced at two depths: their layers are alike, so work is affine in the depth.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..tracing.step_trace import OP_CLASSES, PHASES, Affine, OpRow, StepTrace, TraceVariant
from ..tracing.tracer import trace_task
from .features import FEATURES, Work, WorkRow, write
from .recipes import Recipe
from .reference_tasks import DECODERS, TRACED_DEPTHS, task
from .rows import read

HERE = Path(__file__).parent
# Kernels of one LSTM layer and time step that the stand-in of reference_networks does not launch:
# forward product and gates, backward product, gates and state.
RNN_LAUNCHES_A_STEP = {"forward": 2, "backward": 3}
RNN_STEPS = 30 * 9  # TRANSLATION_TOKENS x LSTM layers of GNMT


def main() -> None:
    """Trace what is missing from the table; delete the table to start afresh."""
    from .features import load

    path = HERE / FEATURES
    table = dict(load()) if path.exists() else {}
    recipes = {row.recipe.trace_key: row.recipe for row in read(HERE / "data/throughput.csv") if row.recipe}
    for key, recipe in sorted(recipes.items()):
        if key not in table:
            table[key] = work_of(recipe)
            print(f"{key}: {len(table[key].rows)} rows", flush=True)
    write({key: table[key] for key in sorted(recipes)}, path)


def work_of(recipe: Recipe) -> Work:
    """Forward and backward work of one micro-step of `recipe`."""
    if recipe.model not in DECODERS:
        return _summed(_trace(recipe, None), recipe.model)
    few, more = (_summed(_trace(recipe, depth), recipe.model) for depth in TRACED_DEPTHS)
    return _at_depth(few, more, DECODERS[recipe.model].layers)


def _trace(recipe: Recipe, depth: int | None) -> StepTrace:
    variant = TraceVariant(
        recipe.policy, recipe.attention, recipe.checkpointing, optimizer="none", size=recipe.size
    )
    return trace_task(task(recipe.model, recipe.head, recipe.size, depth), variant)


def _summed(trace: StepTrace, model: str) -> Work:
    rows: dict[tuple[str, str], WorkRow] = {}
    for op in trace.ops:
        name = _class_of(op, model)
        moved = op.bytes_read + op.bytes_written
        old = rows.get((name, op.phase))
        new = WorkRow(name, op.phase, op.flops, moved, op.count)
        rows[name, op.phase] = new if old is None else _added(old, new)
    if model == "gnmt-v2":
        rows = {key: _with_rnn_launches(row) for key, row in rows.items()}
    tensors = sum(1 for storage in trace.storages[: trace.initially_alive] if storage.category == "weights")
    ordered = sorted(rows.values(), key=lambda r: (OP_CLASSES.index(r.op_class), PHASES.index(r.phase)))
    return Work(trace.parameters, tensors, tuple(ordered))


def _class_of(op: OpRow, model: str) -> str:
    """The traced class; in GNMT, products with the four gates of an LSTM (4,096 wide) are the RNN's."""
    return "rnn" if model == "gnmt-v2" and op.op_class == "gemm" and "4096" in op.shape else op.op_class


def _with_rnn_launches(row: WorkRow) -> WorkRow:
    if row.op_class != "rnn":
        return row
    launches = row.launches + RNN_STEPS * RNN_LAUNCHES_A_STEP[row.phase]
    return WorkRow(row.op_class, row.phase, row.flops, row.bytes, launches)


def _added(a: WorkRow, b: WorkRow) -> WorkRow:
    return WorkRow(a.op_class, a.phase, a.flops + b.flops, a.bytes + b.bytes, a.launches + b.launches)


def _at_depth(few: Work, more: Work, layers: int) -> Work:
    """Work at `layers` layers from that at the two traced depths."""
    low, high = TRACED_DEPTHS

    def at(a: float, b: float) -> float:
        return a + (b - a) / (high - low) * (layers - low)

    def affine(a: Affine, b: Affine) -> Affine:
        return Affine(at(a.constant, b.constant), at(a.per_sample, b.per_sample))

    rows = tuple(
        WorkRow(
            *(a.op_class, a.phase, affine(a.flops, b.flops), affine(a.bytes, b.bytes)),
            round(at(a.launches, b.launches)),
        )
        for a, b in zip(few.rows, more.rows, strict=True)
    )
    scale: Callable[[int, int], int] = lambda a, b: round(at(a, b))  # noqa: E731
    return Work(scale(few.parameters, more.parameters), scale(few.tensors, more.tensors), rows)


if __name__ == "__main__":
    main()
