"""CUDA's choices on meta: which attention runs, what autocast casts, what is recomputed."""

from __future__ import annotations

from typing import Any

import pytest

from planner.models.errors import BadConfig
from planner.models.tracing.step_trace import StepTrace, TraceVariant
from planner.models.tracing.tracer import trace_task

torch = pytest.importorskip("torch")

GIB = 2**30


def _attention_of(
    lab: Any,
    kernel: Any,
    policy: Any = "half",
    *,
    head: int = 64,
    key_value_heads: int = 4,
    mask: bool = False,
) -> tuple[StepTrace, str]:
    """Trace one attention call; returns the trace and the rewrite that names its kernel."""

    class Attention(torch.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.query = torch.nn.Linear(32, 4 * head)
            self.key = torch.nn.Linear(32, key_value_heads * head)

        def forward(self, x: Any) -> Any:
            query = self.query(x).unflatten(-1, (4, head)).transpose(1, 2)
            key = self.key(x).unflatten(-1, (key_value_heads, head)).transpose(1, 2)
            visible = torch.ones(16, 16, dtype=torch.bool, device=x.device) if mask else None
            return torch.nn.functional.scaled_dot_product_attention(
                query, key, key, attn_mask=visible, enable_gqa=key_value_heads != 4
            )

    trace = trace_task(lab.module_task(Attention, (16, 32)), TraceVariant(policy, kernel))
    return trace, next(text for text in trace.rewrites if text.startswith("attention: "))


@pytest.mark.parametrize(
    ("kernel", "policy", "options", "said"),
    [
        ("flash", "half", {}, "flash kernel"),
        ("flash", "amp", {}, "flash kernel"),
        ("flash", "fp32", {}, "efficient kernel (flash takes 16-bit types only)"),
        ("flash", "half", {"mask": True}, "efficient kernel (flash takes no mask)"),
        ("flash", "half", {"head": 264}, "efficient kernel (flash takes head sizes up to 256)"),
        ("flash", "half", {"head": 20}, "flash kernel"),
        ("flash", "half", {"key_value_heads": 2}, "flash kernel"),
        ("efficient", "half", {}, "efficient kernel"),
        (
            "efficient",
            "fp32",
            {"key_value_heads": 2},
            "math kernel (only flash and math take grouped queries)",
        ),
        ("math", "half", {}, "math kernel"),
        ("none", "fp32", {}, "math kernel"),
    ],
)
def test_the_attention_kernel_is_the_one_cuda_would_run(
    lab: Any, kernel: str, policy: str, options: dict[str, Any], said: str
) -> None:
    trace, rewrite = _attention_of(lab, kernel, policy, **options)
    assert rewrite == f"attention: {said}"
    fused = {row.op for row in trace.ops if row.op_class == "attention_fused"}
    kind = said.split()[0]
    assert fused == (
        set()
        if kind == "math"
        else {f"_scaled_dot_product_{kind}_attention", f"_scaled_dot_product_{kind}_attention_backward"}
    )


def test_a_head_that_is_no_multiple_of_eight_is_padded_for_flash(lab: Any) -> None:
    trace, _ = _attention_of(lab, "flash", head=20)
    row = next(row for row in trace.ops if row.op == "_scaled_dot_product_flash_attention")
    assert row.shape.startswith("4x4x16x24")


def test_autocast_lists_are_those_registered_for_cuda() -> None:
    """Every name that is an aten op has a kernel under AutocastCUDA, and none of those is forgotten."""
    from planner.models.tracing import autocast

    every, cast = set(), set()
    for full in torch._C._dispatch_get_all_op_names():
        if full.startswith("aten::"):
            name = full.removeprefix("aten::").split(".")[0]
            every.add(name)
            if torch._C._dispatch_has_kernel_for_dispatch_key(full, "AutocastCUDA"):
                cast.add(name)
    ours = autocast.LOWER_PRECISION | autocast.FLOAT32 | autocast.FLOAT32_BY_DTYPE | autocast.WIDEST
    spelled_otherwise = {"__matmul__", "__rmatmul__", "__pow__", "__rpow__", "__rdiv__", "__rtruediv__"}
    composite = {"linalg_matmul", "nll_loss_nd", "cross_entropy_loss", "multi_dot"}
    assert (ours & every) - cast <= composite | spelled_otherwise
    # Reached only through the names above, by the fused attention chooser, or refused under autocast.
    inner = {
        *("_convolution", "cudnn_convolution", "cudnn_convolution_transpose", "binary_cross_entropy"),
        *("_thnn_fused_gru_cell", "_thnn_fused_lstm_cell", "_scaled_dot_product_flash_attention"),
    }
    assert cast - ours <= inner | {"scaled_dot_product_attention"}


def test_autocast_runs_products_in_16_bit_and_norms_in_fp32(lab: Any) -> None:
    class Block(torch.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.norm = torch.nn.Linear(64, 64, bias=False), torch.nn.LayerNorm(64)

        def forward(self, x: Any) -> Any:
            x = self.linear(x)
            assert x.dtype is torch.bfloat16
            x = self.norm(x)
            assert x.dtype is torch.float32
            return torch.nn.functional.softmax(self.linear(x), -1)

    trace = trace_task(lab.module_task(Block, (64,)), TraceVariant("amp", "none", optimizer="none"))
    copies = [s for s in trace.storages if s.category == "low_precision_copies"]
    assert [copy.bytes.constant for copy in copies] == [64 * 64 * 2]  # one copy serves both calls
    product = next(row for row in trace.ops if row.op == "mm" and row.phase == "forward")
    assert product.bytes_read.at(4) == 2 * 2 * (4 * 64 + 64 * 64)  # two launches of two-byte operands


def test_gradients_of_autocast_weights_are_fp32(lab: Any) -> None:
    trace = lab.bert(64, TraceVariant("amp", "flash"), layers=2)
    assert trace.gradient_bytes == 4 * trace.trainable_parameters


def test_amp_leaves_the_small_peak_alone_and_shrinks_the_large_one(lab: Any) -> None:
    """bert-base: 2.04 GiB at 8 x 128 either way; at 32 x 512 a third less."""
    full, mixed = lab.bert(128), lab.bert(128, TraceVariant("amp", "flash"))
    assert lab.allocated_peak(full, 8) == lab.allocated_peak(mixed, 8)
    full, mixed = lab.bert(512), lab.bert(512, TraceVariant("amp", "flash"))
    assert lab.allocated_peak(mixed, 32) < 0.72 * lab.allocated_peak(full, 32)


def test_fused_dropout_saves_a_mask_of_one_byte(lab: Any) -> None:
    trace = lab.bert(64, layers=2)
    hidden = 64 * 768
    sizes = [s.bytes.per_sample for s in trace.storages if s.op == "native_dropout"]
    embedding_and_layers = 1 + 2 * 2
    assert sizes.count(4 * hidden) == sizes.count(hidden) == embedding_and_layers
    unfused = lab.bert(64, layers=2, fused_dropout=False)
    assert not [s for s in unfused.storages if s.op == "native_dropout"]
    assert lab.allocated_peak(unfused, 64) > lab.allocated_peak(trace, 64)


@pytest.mark.parametrize(("policy", "kernel"), [("fp32", "efficient"), ("amp", "flash"), ("half", "flash")])
def test_activation_checkpointing_recomputes_every_layer_with_the_same_kernels(
    lab: Any, policy: Any, kernel: Any
) -> None:
    layers = 2
    plain = lab.bert(64, TraceVariant(policy, kernel), layers=layers)
    recomputed = lab.bert(64, TraceVariant(policy, kernel, activation_checkpointing=True), layers=layers)

    def launches(trace: StepTrace, phase: str, op: str) -> int:
        return sum(row.count for row in trace.ops if row.phase == phase and row.op == op)

    attention = f"_scaled_dot_product_{kernel}_attention"
    for trace, again in ((plain, 0), (recomputed, layers)):
        assert launches(trace, "forward", attention) == layers
        assert launches(trace, "backward", attention) == again
    per_layer = lab.flops(plain, "forward", 1, "gemm") - 2 * 768 * 768 - 2 * 768 * 2
    assert lab.flops(recomputed, "backward", 1, "gemm") == pytest.approx(
        lab.flops(plain, "backward", 1, "gemm") + per_layer, rel=1e-9
    )

    def kept(trace: StepTrace) -> float:
        return sum(s.bytes.per_sample for s in trace.storages if s.category == "activations")

    assert kept(recomputed) < kept(plain) / 2


def test_checkpointing_that_does_nothing_is_refused(lab: Any) -> None:
    class Deaf(torch.nn.Linear):  # type: ignore[name-defined, misc]
        def gradient_checkpointing_enable(self) -> None:
            pass

    task = lab.module_task(lambda: Deaf(4, 4), (4,))
    with pytest.raises(BadConfig, match=r"never calls torch\.utils\.checkpoint"):
        trace_task(task, TraceVariant(activation_checkpointing=True))
    with pytest.raises(BadConfig, match="gradient_checkpointing_enable"):
        trace_task(
            lab.module_task(lambda: torch.nn.Linear(4, 4), (4,)), TraceVariant(activation_checkpointing=True)
        )


def test_a_plain_module_that_checkpoints_its_layers_is_traced(lab: Any) -> None:
    class Own(torch.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range(3))
            self.checkpointing = False

        def gradient_checkpointing_enable(self) -> None:
            self.checkpointing = True

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                if self.checkpointing:
                    x = torch.utils.checkpoint.checkpoint(lambda y, layer=layer: layer(y).tanh(), x)
                else:
                    x = layer(x).tanh()
            return x

    for policy in ("fp32", "amp"):
        trace = trace_task(lab.module_task(Own, (32,)), TraceVariant(policy, "none", True))
        recomputed = [row for row in trace.ops if row.op == "tanh" and row.phase == "backward"]
        assert sum(row.count for row in recomputed) == 3
