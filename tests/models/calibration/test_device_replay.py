"""Rows of a trace rebuilt as cases: shapes, strides and layouts that the row only implies."""

from __future__ import annotations

import pytest

from planner.models.calibration import replay
from planner.models.tracing.step_trace import Affine, OpRow

pytest.importorskip("torch")


FOUR_BYTES = Affine(0, 4)


def make_row(
    op: str,
    op_class: str,
    shape: str,
    flops: float = 0,
    written: Affine = FOUR_BYTES,
    phase: str = "forward",
) -> OpRow:
    return OpRow(op, op_class, phase, 1, Affine(0, flops), Affine(0, 4), written, shape, "")  # type: ignore[arg-type]


def rebuilt(row: OpRow, batch: int = 1) -> object:
    from planner.models.calibration.device_price import shapes_in

    return replay.case_of(row, shapes_in(row.shape), row.flops.at(batch), "float32")


def key(row: OpRow) -> str:
    case = rebuilt(row)
    assert case is not None
    return case.key  # type: ignore[attr-defined,no-any-return]


def test_products_keep_their_sides_and_layout() -> None:
    assert key(make_row("addmm", "gemm", "768, 256x3072, 3072x768", 1)) == "addmm/nt/256x768x3072/float32"
    assert key(make_row("mm", "gemm", "256x64, 64x128", 1, Affine(9, 0), "backward")) == (
        "mm/tn/256x128x64/float32"
    )
    assert key(make_row("bmm", "gemm", "24x128x64, 24x64x128", 1)) == "bmm/nt/24x128x128x64/float32"


@pytest.mark.parametrize(
    ("side_out", "kernel", "stride"), [(112, 7, 2), (224, 3, 1), (112, 3, 2), (14, 16, 16)]
)
def test_a_convolutions_stride_is_told_from_its_flops(side_out: int, kernel: int, stride: int) -> None:
    shapes = ((4, 3, 224, 224), (64, 3, kernel, kernel))
    flops = 2.0 * 4 * 64 * side_out**2 * 3 * kernel**2
    found = replay.geometry_of("convolution", shapes, flops)
    assert found is not None
    assert (found.stride, found.side_out, found.groups) == (stride, side_out, 1)


def test_the_backward_of_a_depthwise_convolution_shows_its_groups() -> None:
    shapes = ((2, 96, 28, 28), (2, 96, 56, 56), (96, 1, 3, 3))
    found = replay.geometry_of("convolution_backward", shapes, 1.0)
    assert found is not None
    assert (found.groups, found.stride, found.side_out) == (96, 2, 28)


def test_a_convolution_that_is_not_square_is_left_to_the_curves() -> None:
    row = make_row("convolution", "conv", "4x80x1x3000, 512x80x1x3", 1e9)
    assert rebuilt(row) is None


def test_norms_and_losses_keep_rows_and_width() -> None:
    assert key(make_row("native_layer_norm", "norm", "2x128x768, 768, 768")) == "native_layer_norm/256x768"
    assert key(make_row("_softmax_backward_data", "norm", "2x12x64x64, 2x12x64x64")) == (
        "_softmax_backward_data/2x12x64x64"
    )
    assert key(make_row("native_batch_norm_backward", "batch_norm", "4x64x56x56, 4x64x56x56, 64")) == (
        "native_batch_norm_backward/4x64x56x56"
    )


def test_elementwise_ops_keep_their_size_and_a_scalar_is_no_tensor() -> None:
    assert key(make_row("gelu", "elementwise", "2x128x3072")) == f"gelu/{2 * 128 * 3072}"
    assert key(make_row("mul", "elementwise", "8x8, 8x8")) == "mul/64"
    assert key(make_row("mul", "elementwise", "8x8, scalar")) == "mul scalar/64"
    assert rebuilt(make_row("add", "elementwise", "8x8, 8")) is None


def test_embeddings_take_their_table_from_what_is_written() -> None:
    assert key(make_row("embedding", "embedding", "30522x768, 2x128")) == "embedding/256x30522x768"
    table = make_row(
        "embedding_dense_backward", "embedding", "2x128x768, 2x128", 0, Affine(4.0 * 512 * 768, 0)
    )
    assert key(table) == "embedding_dense_backward/256x512x768"


def test_what_is_not_known_is_not_rebuilt() -> None:
    assert rebuilt(make_row("cumsum", "norm", "2x128")) is None
    assert rebuilt(make_row("mm", "gemm", "2x128", 1)) is None


def test_every_rebuilt_case_of_a_real_trace_is_one_op_with_the_rows_flops() -> None:
    """The shipped ResNet-50 trace: its products and convolutions counted again by the tracer's rules."""
    from planner.models.microbenchmarks.registry import work_of
    from planner.models.tracing.step_trace import TraceVariant
    from planner.models.workloads import zoo

    workload = zoo.workload("resnet50")
    trace = zoo.trace(workload, TraceVariant(optimizer="sgd-momentum-foreach"))
    batch = trace.batches[1]
    found = replay.cases_of(trace, batch, "float32")
    convolutions = {row: case for row, case in found.items() if row.op.startswith("convolution")}
    assert len(convolutions) > 30
    for row, case in convolutions.items():
        assert work_of(case).flops == pytest.approx(row.flops.at(batch) / row.count), row.shape
