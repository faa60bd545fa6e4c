"""Our autocast against torch's own CUDA autocast kernels, which are in every build, on fake CUDA tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
functional = torch.nn.functional

# Calls on (full: fp32 (4, 8, 8), low: bf16 (4, 8, 8), weight: fp32 (8, 8)); each gives one tensor.
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "linear": lambda full, low, weight: functional.linear(full, weight),
    "linear of bf16": lambda full, low, weight: functional.linear(low, weight),
    "@": lambda full, low, weight: full @ weight,
    "Tensor.matmul": lambda full, low, weight: full.matmul(weight),
    "bmm": lambda full, low, weight: torch.bmm(full, low),
    "baddbmm": lambda full, low, weight: torch.baddbmm(full, full, low),
    "addmm": lambda full, low, weight: torch.addmm(weight, weight, weight),
    "einsum": lambda full, low, weight: torch.einsum("bij,jk->bik", full, weight),
    "conv1d": lambda full, low, weight: functional.conv1d(full, full),
    "prelu": lambda full, low, weight: functional.prelu(full, full.new_ones(8)),
    "layer_norm": lambda full, low, weight: functional.layer_norm(low, (8,)),
    "group_norm": lambda full, low, weight: functional.group_norm(low, 2),
    "rms_norm": lambda full, low, weight: functional.rms_norm(low, (8,)),
    "batch_norm": lambda full, low, weight: functional.batch_norm(low, None, None, training=True),
    "softmax": lambda full, low, weight: functional.softmax(low, -1),
    "Tensor.softmax": lambda full, low, weight: low.softmax(-1),
    "softmax to bf16": lambda full, low, weight: functional.softmax(full, -1, dtype=torch.bfloat16),
    "log_softmax": lambda full, low, weight: functional.log_softmax(low, -1),
    "sum": lambda full, low, weight: low.sum(-1),
    "mean": lambda full, low, weight: low.mean(-1),
    "cumsum": lambda full, low, weight: low.cumsum(-1),
    "norm": lambda full, low, weight: low.norm(),
    "logsumexp": lambda full, low, weight: low.logsumexp(-1),
    "**": lambda full, low, weight: low**2,
    "scalar **": lambda full, low, weight: 2**low,
    "scalar /": lambda full, low, weight: 1 / low,
    "pow": lambda full, low, weight: torch.pow(low, 3),
    "exp": lambda full, low, weight: low.exp(),
    "log": lambda full, low, weight: low.log(),
    "rsqrt": lambda full, low, weight: low.rsqrt(),
    "sqrt": lambda full, low, weight: low.sqrt(),
    "softplus": lambda full, low, weight: functional.softplus(low),
    "gelu": lambda full, low, weight: functional.gelu(low),
    "silu": lambda full, low, weight: functional.silu(low),
    "tanh": lambda full, low, weight: low.tanh(),
    "sigmoid": lambda full, low, weight: low.sigmoid(),
    "add": lambda full, low, weight: full + low,
    "mul": lambda full, low, weight: low * low,
    "cat": lambda full, low, weight: torch.cat([full, low]),
    "addcmul": lambda full, low, weight: torch.addcmul(full, low, low),
    "mse_loss": lambda full, low, weight: functional.mse_loss(low, low),
    "cross_entropy": lambda full, low, weight: functional.cross_entropy(low, torch.softmax(low, 1)),
    "l1_loss": lambda full, low, weight: functional.l1_loss(low, low),
    "binary_cross_entropy_with_logits": lambda full, low, weight: functional.binary_cross_entropy_with_logits(
        low, low
    ),
    "max_pool1d": lambda full, low, weight: functional.max_pool1d(low, 2),
    "adaptive_avg_pool1d": lambda full, low, weight: functional.adaptive_avg_pool1d(low, 2),
    "interpolate": lambda full, low, weight: functional.interpolate(low, scale_factor=2),
}


def _tensors(device: str) -> tuple[Any, Any, Any]:
    full = torch.empty(4, 8, 8, device=device)
    return full, torch.empty(4, 8, 8, device=device, dtype=torch.bfloat16), torch.empty(8, 8, device=device)


@pytest.mark.parametrize("name", CALLS)
def test_results_have_the_type_cuda_autocast_gives_them(name: str) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    from planner.models.tracing.recorder import Recorder
    from planner.models.tracing.rewrites import CudaChoices
    from planner.models.tracing.step_trace import TraceVariant

    choices = CudaChoices(TraceVariant("amp", "none"), Recorder())
    with choices.imposed(), choices.autocast():
        ours = CALLS[name](*_tensors("meta")).dtype
    with FakeTensorMode():
        tensors = _tensors("cuda")
        torch.set_autocast_dtype("cuda", torch.bfloat16)
        torch.set_autocast_enabled("cuda", True)
        try:
            theirs = CALLS[name](*tensors).dtype
        finally:
            torch.set_autocast_enabled("cuda", False)
    assert ours is theirs
