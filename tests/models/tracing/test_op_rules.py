"""FLOP and byte rules, against torch's own counter where that is right and against hand counts."""

from __future__ import annotations

from typing import Any

import pytest

from planner.models.errors import BadConfig
from planner.models.tracing import op_rules, op_tables
from planner.models.tracing.op_rules import Call, Operand
from planner.models.tracing.step_trace import FLOP_CLASSES, OP_CLASSES, TraceVariant
from planner.models.tracing.tracer import trace_task

torch = pytest.importorskip("torch")

PLAIN = TraceVariant("fp32", "none", optimizer="none")


def _call(op: str, inputs: list[tuple[int, ...]], outputs: list[tuple[int, ...]], *arguments: Any) -> Call:
    """fp32 operands, nothing mutated."""

    def operands(shapes: list[tuple[int, ...]]) -> list[Operand]:
        return [Operand(shape, 4 * torch.Size(shape).numel()) for shape in shapes]

    return Call(op, operands(inputs), operands(outputs), [], arguments)


def _convolution(groups: int, in_channels: int = 32, kernel: int = 3, transposed: bool = False) -> Any:
    def build() -> Any:
        layer = torch.nn.ConvTranspose2d if transposed else torch.nn.Conv2d
        first = torch.nn.Conv2d(in_channels, in_channels, 1)  # so that the layer's input needs a gradient
        return torch.nn.Sequential(first, layer(in_channels, 64, kernel, stride=2, groups=groups))

    return build


def _counted_by_torch(build: Any, shape: tuple[int, ...]) -> dict[str, int]:
    """torch's FLOPs by op, forward and backward, on meta."""
    from torch.utils.flop_counter import FlopCounterMode

    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        build()(torch.empty(2, *shape)).sum().backward()
    return {str(op).split(".")[1]: flops for op, flops in counter.get_flop_counts()["Global"].items()}


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_dense_convolutions_count_as_torch_counts_them(lab: Any, kernel: int, transposed: bool) -> None:
    build = _convolution(1, kernel=kernel, transposed=transposed)
    trace = trace_task(lab.module_task(build, (32, 28, 28)), PLAIN)
    expected = _counted_by_torch(build, (32, 28, 28))
    for op in ("convolution", "convolution_backward"):
        assert sum(row.flops.at(2) for row in trace.ops if row.op == op) == expected[op]


@pytest.mark.parametrize("groups", [4, 32])
def test_backward_of_grouped_convolutions_is_twice_its_forward(lab: Any, groups: int) -> None:
    """torch 2.13 counts it (1 + groups) / 2 times too often."""
    build = _convolution(groups)
    trace = trace_task(lab.module_task(build, (32, 28, 28)), PLAIN)
    forward = lab.flops(trace, "forward", 2, "conv_grouped")
    assert forward == 2 * 2 * 13 * 13 * 64 * (32 // groups) * 9
    assert lab.flops(trace, "backward", 2, "conv_grouped") == 2 * forward


@pytest.mark.parametrize(
    ("op", "inputs", "flops"),
    [
        ("mm", [(3, 5), (5, 7)], 2 * 3 * 5 * 7),
        ("addmm", [(7,), (3, 5), (5, 7)], 2 * 3 * 5 * 7),
        ("bmm", [(2, 3, 5), (2, 5, 7)], 2 * 2 * 3 * 5 * 7),
        ("baddbmm", [(2, 3, 7), (2, 3, 5), (2, 5, 7)], 2 * 2 * 3 * 5 * 7),
        ("mv", [(3, 5), (5,)], 2 * 3 * 5),
    ],
)
def test_matrix_products_count_a_multiply_add_as_two(
    op: str, inputs: list[tuple[int, ...]], flops: int
) -> None:
    call = _call(op, inputs, [(1,)])
    assert op_rules.cost(call).flops == flops
    assert op_rules.op_class(op, call) == "gemm"


def test_fused_attention_counts_its_two_products_and_five_in_backward() -> None:
    shape = (1, 8, 128, 32)
    forward = op_rules.cost(
        _call("_scaled_dot_product_efficient_attention", [shape] * 3, [shape], *[None] * 4, True, 0.0, False)
    )
    backward = op_rules.cost(
        _call("_scaled_dot_product_efficient_attention_backward", [shape] * 4, [shape] * 3, *[None] * 12)
    )
    assert forward.flops == 16_777_216  # what torch's counter says of the maths path (C27)
    assert backward.flops == forward.flops * 5 // 2
    assert forward.rule == "fused attention"


def test_causal_attention_counts_the_full_square_and_says_so() -> None:
    shape = (1, 8, 128, 32)
    arguments = (None, None, None, None, True, 0.0, True)
    cost = op_rules.cost(_call("_scaled_dot_product_efficient_attention", [shape] * 3, [shape], *arguments))
    assert (cost.flops, cost.rule) == (16_777_216, "fused attention, causal")


def test_an_op_that_should_carry_flops_and_counts_none_is_an_error() -> None:
    with pytest.raises(BadConfig, match="counts no FLOPs"):
        op_rules.cost(_call("convolution", [(1, 3, 8, 8), (4, 3, 1, 1)], [(0,)], *[None] * 6, False, None, 1))


def test_an_embedding_reads_the_rows_it_looks_up_not_its_table() -> None:
    cost = op_rules.cost(_call("embedding", [(30_522, 768), (2, 16)], [(2, 16, 768)]))
    rows = 2 * 16 * 768 * 4
    assert (cost.bytes_read, cost.bytes_written) == (rows + 2 * 16 * 4, rows)


def test_a_loss_reads_one_logit_per_target() -> None:
    cost = op_rules.cost(_call("nll_loss_forward", [(64, 50_000), (64,)], [(), ()]))
    assert cost.bytes_read == 2 * 64 * 4


def test_expanded_dimensions_and_views_move_no_bytes(lab: Any) -> None:
    class Expanding(torch.nn.Linear):  # type: ignore[name-defined, misc]
        def forward(self, x: Any) -> Any:
            return super().forward(x) + self.bias.expand(1000, -1).t()[:, :1].t()

    trace = trace_task(lab.module_task(lambda: Expanding(8, 8), (8,)), PLAIN)
    assert not {row.op for row in trace.ops} & {"expand", "t", "slice", "view", "detach"}
    add = next(row for row in trace.ops if row.op == "add")
    assert add.bytes_read.at(2) == (2 * 8 + 8) * 4


def test_in_place_ops_read_and_write_the_same_bytes(lab: Any) -> None:
    class InPlace(torch.nn.Linear):  # type: ignore[name-defined, misc]
        def forward(self, x: Any) -> Any:
            return super().forward(x).mul_(2)

    trace = trace_task(lab.module_task(lambda: InPlace(8, 8), (8,)), PLAIN)
    mul = next(row for row in trace.ops if row.op == "mul_")
    assert mul.bytes_read == mul.bytes_written
    assert mul.bytes_written.at(2) == 2 * 8 * 4


@pytest.mark.parametrize(
    ("weight", "groups", "op_class"),
    [
        ((64, 3, 7, 7), 1, "conv_stem"),
        ((64, 64, 3, 3), 1, "conv"),
        ((256, 64, 1, 1), 1, "conv_1x1"),
        ((64, 1, 3, 3), 64, "conv_grouped"),
    ],
)
def test_convolutions_are_told_apart_by_weight_and_groups(
    weight: tuple[int, ...], groups: int, op_class: str
) -> None:
    call = _call(
        "convolution",
        [(1, weight[1] * groups, 8, 8), weight],
        [(1, 64, 8, 8)],
        *[None] * 6,
        False,
        None,
        groups,
    )
    assert op_rules.op_class("convolution", call) == op_class


def test_a_long_list_of_small_tensors_takes_several_launches() -> None:
    tensors = [Operand((10,), 40)] * 250
    two_lists = Call("_foreach_add_", tensors * 2, [], tensors, ())
    assert op_rules.cost(two_lists).launches == -(-250 // 64)


def test_one_huge_tensor_is_cut_by_chunks() -> None:
    elements = 65_536 * 320 * 3
    call = Call(
        "_foreach_mul_", [Operand((elements,), 4 * elements)], [], [Operand((elements,), 4 * elements)], ()
    )
    assert op_rules.cost(call).launches == 3


def test_score_matrices_are_found_by_product_and_softmax(lab: Any) -> None:
    """Eager attention: the two products are unfused attention, what touches the scores is attention_map."""
    trace = lab.bert(64, TraceVariant("fp32", "math"), layers=2)
    classes = {(row.op, row.phase): row.op_class for row in trace.ops if "64x64" in row.shape}
    assert classes["_softmax", "forward"] == "attention_map"
    assert classes["native_dropout", "forward"] == "attention_map"
    assert lab.flops(trace, "forward", 1, "attention_unfused") == 2 * 2 * 2 * 64 * 64 * 768
    assert lab.flops(trace, "backward", 1, "attention_unfused") == 2 * lab.flops(
        trace, "forward", 1, "attention_unfused"
    )


def test_every_traced_class_is_a_known_one_and_only_some_carry_flops(lab: Any) -> None:
    for variant in (TraceVariant(), TraceVariant("amp", "flash"), TraceVariant("fp32", "math")):
        for row in lab.bert(64, variant, layers=2).ops:
            assert row.op_class in OP_CLASSES
            assert (row.flops.at(2) > 0) == (row.op_class in FLOP_CLASSES)


def test_the_tables_put_no_op_into_two_classes() -> None:
    groups = [
        op_tables.GEMM,
        op_tables.CONVOLUTION,
        op_tables.FUSED_ATTENTION,
        op_tables.BATCH_NORM,
        op_tables.NORM,
        op_tables.EMBEDDING,
        op_tables.ELEMENTWISE,
        op_tables.ALLOCATIONS,
    ]
    assert sum(len(group) for group in groups) == len(frozenset().union(*groups))


def test_every_op_in_the_tables_exists_in_torch() -> None:
    known = {name.split("::")[1].split(".")[0] for name in torch._C._dispatch_get_all_op_names()}
    listed = (
        op_tables.GEMM | op_tables.CONVOLUTION | op_tables.NORM | op_tables.EMBEDDING | op_tables.BATCH_NORM
    )
    assert not {name for name in listed if name not in known and name + "_" not in known}
