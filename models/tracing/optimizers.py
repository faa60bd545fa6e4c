"""Optimizers as CUDA runs them, named by kind and implementation: "adamw-foreach", "adamw-fused", …

On meta torch would pick the for-loop; the implementation is therefore always asked for by name, never left
to torch's default. Imports torch: imported inside functions only.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import nn

from ..errors import UnknownName
from .op_rules import Cost
from .recorder import Recorder

Parameters = list[nn.Parameter]


class FusedLamb(torch.optim.Optimizer):
    """LAMB in two multi-tensor kernels, as apex's FusedLAMB: moments in fp32 beside each parameter."""

    def __init__(self, parameters: Iterable[nn.Parameter], recorder: Recorder) -> None:
        super().__init__(parameters, {})
        self._recorder = recorder

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        elements = gradient_bytes = parameter_bytes = 0
        for parameter in self.param_groups[0]["params"]:
            if parameter.grad is None:
                continue
            state = self.state[parameter]
            if not state:
                for moment in ("exp_avg", "exp_avg_sq"):
                    state[moment] = torch.zeros_like(parameter, dtype=torch.float32)
            elements += parameter.numel()
            gradient_bytes += parameter.grad.nbytes
            parameter_bytes += parameter.nbytes
        # Gradient norm; then stage 1: gradient, weight and moments in, update (over the gradient) and moments
        # out; then stage 2: update and weight in, weight out.
        read = 3 * gradient_bytes + 2 * parameter_bytes + 8 * elements
        written = gradient_bytes + parameter_bytes + 8 * elements
        cost = Cost(0, read, written, 4, "two-stage multi-tensor kernel")
        self._recorder.add_op("fused_lamb", "optimizer", ((elements,),), cost)


def _adafactor(parameters: Parameters, _: Recorder) -> torch.optim.Optimizer:
    return torch.optim.Adafactor(parameters, foreach=True)


OPTIMIZERS: dict[str, Callable[[Parameters, Recorder], torch.optim.Optimizer | None]] = {
    "adamw-foreach": lambda parameters, _: torch.optim.AdamW(parameters, foreach=True),
    "adamw-fused": lambda parameters, _: torch.optim.AdamW(parameters, fused=True),
    "adamw-loop": lambda parameters, _: torch.optim.AdamW(parameters, foreach=False),
    "adam-foreach": lambda parameters, _: torch.optim.Adam(parameters, foreach=True),
    "adam-fused": lambda parameters, _: torch.optim.Adam(parameters, fused=True),
    "sgd-foreach": lambda parameters, _: torch.optim.SGD(parameters, lr=0.1, foreach=True),
    "sgd-momentum-foreach": lambda parameters, _: torch.optim.SGD(
        parameters, lr=0.1, momentum=0.9, weight_decay=1e-4, foreach=True
    ),
    "adafactor": _adafactor,
    "lamb-fused": FusedLamb,
    "none": lambda parameters, _: None,
}


def build(name: str, parameters: Parameters, recorder: Recorder) -> torch.optim.Optimizer | None:
    """The optimizer, or None for "none" (forward and backward only). Raises UnknownName."""
    if name not in OPTIMIZERS:
        raise UnknownName("optimizer", name, OPTIMIZERS, f"All names: {', '.join(OPTIMIZERS)}")
    return OPTIMIZERS[name](parameters, recorder)


@contextlib.contextmanager
def fused_on_meta() -> Iterator[None]:
    """Let fused kernels be asked for on meta: their meta kernels exist, the device list omits them."""
    module: Any = importlib.import_module("torch.optim.optimizer")

    original = module._get_fused_kernels_supported_devices
    module._get_fused_kernels_supported_devices = lambda: [*original(), "meta"]
    try:
        yield
    finally:
        module._get_fused_kernels_supported_devices = original
