"""Replay: a model's own ops as microbenchmark cases, rebuilt from the rows of its trace.

A row shows shapes, not strides or arguments. What is missing is inferred: the layout of a product from its
place in the step, a convolution's stride from its FLOPs. A row that cannot be rebuilt stays with the curves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import isqrt, prod

from ..microbenchmarks import attention, convolution, elementwise, embedding, matmul, normalisation, recurrent
from ..microbenchmarks.registry import Case
from ..tracing.step_trace import OpRow, StepTrace
from .device_curves import PRODUCT_OPS, product_dims
from .device_price import layout_of, shapes_at
from .device_profile import Point

# Aten op -> the elementwise form that stands for it.
_FORMS = {
    "add": "add", "mul": "mul", "div_": "div_", "bernoulli_": "bernoulli_", "gelu": "gelu",
    "gelu_backward": "gelu_backward", "relu": "relu", "relu_": "relu",
    "threshold_backward": "threshold_backward",
    "tanh": "tanh", "tanh_backward": "tanh_backward", "pow": "pow", "where": "where", "silu": "silu",
    "masked_fill": "masked_fill", "native_dropout": "native_dropout", "clone": "clone transposed",
    "add_": "add_",
}  # fmt: skip
_TWO_TENSORS = frozenset({"add", "mul"})
Shapes = tuple[tuple[int, ...], ...]
RowCases = dict[OpRow, Case]


def cases_of(trace: StepTrace, batch: int, dtype: str) -> RowCases:
    """The rows of a trace that can be timed alone, each with its case; equal work shares one case."""
    found: RowCases = {}
    by_key: dict[str, Case] = {}
    for row in trace.ops:
        if row.phase == "optimizer":
            continue
        case = case_of(row, shapes_at(row, batch, trace.batches[1]), row.flops.at(batch) / row.count, dtype)
        if case is not None:
            found[row] = by_key.setdefault(case.key, case)
    return found


def case_of(row: OpRow, shapes: Shapes, flops: float, dtype: str) -> Case | None:
    """One row as a case; None where its shapes do not say enough. flops: of one launch."""
    try:
        return _rebuild(row, shapes, flops, dtype)
    except (IndexError, ZeroDivisionError):
        return None  # fewer shapes than the op takes: a form of the op we do not know


def _rebuild(row: OpRow, shapes: Shapes, flops: float, dtype: str) -> Case | None:
    if row.op in PRODUCT_OPS:
        return _product(row, shapes, dtype)
    if row.op in ("convolution", "convolution_backward"):
        geometry = geometry_of(row.op, shapes, flops)
        if geometry is None:
            return None
        if row.op == "convolution":
            return convolution.forward_case(geometry, "channels_first", dtype)
        return convolution.backward_case(geometry, "channels_first", dtype)
    if row.op_class == "attention_fused":
        return _attention(row, shapes, dtype)
    if row.op in ("lstm", "lstm_backward"):
        return _lstm(row, shapes, dtype)
    if row.op in ("embedding", "embedding_dense_backward"):
        return _embedding(row, shapes)
    normal = _NORMS.get(row.op)
    if normal is not None:
        return normal(row, shapes)
    return _elementwise(row, shapes)


def seconds_of(rows: Mapping[OpRow, Case], points: Iterable[Point]) -> dict[OpRow, float]:
    """Row -> seconds of one call, for the rows whose case was measured."""
    by_key = {point.key: point.seconds for point in points}
    return {row: by_key[case.key] for row, case in rows.items() if case.key in by_key}


def _product(row: OpRow, shapes: Shapes, dtype: str) -> Case:
    batch, m, n, k = product_dims(row.op, shapes)
    if PRODUCT_OPS[row.op] == "bmm":
        return matmul.batched_case(batch, m, n, k, layout_of(row), dtype)
    return matmul.product_case(m, n, k, layout_of(row), dtype, bias=row.op != "mm")


def geometry_of(op: str, shapes: Shapes, flops: float) -> convolution.Geometry | None:
    """The convolution behind a row: square ones only, padded by half a kernel or not at all."""
    backward = op.endswith("backward")
    x, weight = (shapes[1], shapes[2]) if backward else (shapes[0], shapes[1])
    if len(x) != 4 or x[2] != x[3] or weight[2] != weight[3]:
        return None
    groups = x[1] // weight[1]
    if backward:
        side_out = shapes[0][2]
    else:
        positions = round(flops / (2 * prod(weight) * x[0]))
        side_out = isqrt(positions)
    if side_out < 1:
        return None
    # Patches side by side are convolutions, too: kernel and stride alike, no padding.
    if x[2] // weight[2] == side_out and weight[2] > 1:
        return convolution.Geometry(x[0], x[1], weight[0], x[2], weight[2], weight[2], groups, 0)
    for padding in (weight[2] // 2, 0):
        for stride in range(1, x[2] + 1):
            geometry = convolution.Geometry(x[0], x[1], weight[0], x[2], weight[2], stride, groups, padding)
            if geometry.side_out == side_out:
                return geometry
            if geometry.side_out < side_out:
                break
    return None


def _attention(row: OpRow, shapes: Shapes, dtype: str) -> Case | None:
    backward = row.op.endswith("backward")
    query = shapes[1 if backward else 0]
    if len(query) != 4:
        return None
    return attention.attention_case(*query, "causal" in row.rule, dtype, backward=backward)


def _lstm(row: OpRow, shapes: Shapes, dtype: str) -> Case | None:
    time, batch, width = shapes[0]
    state = next((s for s in shapes[1:] if len(s) == 3 and s[1] == batch and s[0] != time), None)
    if state is None or state[2] != width:
        return None
    return recurrent.lstm_case(time, batch, width, state[0], dtype, backward=row.op.endswith("backward"))


def _embedding(row: OpRow, shapes: Shapes) -> Case | None:
    """Forward shows table and ids; backward gradient and ids, and its table is what it writes."""
    backward = row.op.endswith("backward")
    width = shapes[0][-1]
    rows = round(row.bytes_written.constant / row.count / (4 * width)) if backward else shapes[0][0]
    tokens = prod(shapes[1])
    if rows < 1 or tokens < 1:
        return None
    forward_case, backward_case = embedding.embedding_cases(tokens, rows, width)
    return backward_case if backward else forward_case


def _softmax(row: OpRow, shapes: Shapes) -> Case:
    op = row.op.removesuffix("_backward_data").replace("_safe_softmax", "_softmax")
    forward, backward = normalisation.softmax_cases(shapes[0], op)
    return backward if row.op.endswith("_backward_data") else forward


def _layer_norm(row: OpRow, shapes: Shapes) -> Case:
    forward, backward, _ = normalisation.row_cases(prod(shapes[0][:-1]), shapes[0][-1])
    return backward if row.op.endswith("backward") else forward


def _batch_norm(row: OpRow, shapes: Shapes) -> Case | None:
    if len(shapes[0]) != 4 or shapes[0][2] != shapes[0][3]:
        return None
    cases = tuple(normalisation.image_cases(*shapes[0][:3]))
    return cases[1] if row.op.endswith("backward") else cases[0]


def _row_sum(row: OpRow, shapes: Shapes) -> Case | None:
    """A bias gradient: rows summed away. Other sums keep to the curve."""
    if len(shapes[0]) != 2 or row.phase != "backward":
        return None
    return tuple(normalisation.row_cases(*shapes[0]))[2]


_NORMS: dict[str, Callable[[OpRow, Shapes], Case | None]] = {
    "_softmax": _softmax,
    "_safe_softmax": _softmax,
    "_softmax_backward_data": _softmax,
    "_log_softmax": _softmax,
    "_log_softmax_backward_data": _softmax,
    "native_layer_norm": _layer_norm,
    "native_layer_norm_backward": _layer_norm,
    "native_batch_norm": _batch_norm,
    "native_batch_norm_backward": _batch_norm,
    "sum": _row_sum,
}


def _elementwise(row: OpRow, shapes: Shapes) -> Case | None:
    name = _FORMS.get(row.op)
    if name is None:
        return None
    sizes = [prod(shape) for shape in shapes if shape]
    if not sizes:
        return None
    if row.op in _TWO_TENSORS and (len(sizes) < 2 or sizes[0] != sizes[1]):
        return None if row.op == "add" else elementwise.elementwise_case("mul scalar", max(sizes))
    return elementwise.elementwise_case(name, max(sizes))
