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


class EightBitAdam(torch.optim.Optimizer):
    """bitsandbytes' Adam8bit, block-wise: two one-byte moments and an fp32 scale for each 2,048 of them.

    Parameters below 4,096 elements keep fp32 moments; only those from 100,000 on are paged. Source:
    bitsandbytes.optim.optimizer, min_8bit_size and get_state_buffer.
    """

    BLOCK, SMALLEST, SMALLEST_PAGED = 2048, 4096, 100_000

    def __init__(
        self, parameters: Iterable[nn.Parameter], recorder: Recorder, *, bits: int = 8, paged: bool = False
    ) -> None:
        """bits: 8, or 32 for plain moments. paged: moments of large parameters lie in managed memory, outside
        the allocator, and leave the card whenever it runs short.
        """
        super().__init__(parameters, {})
        self._recorder = recorder
        self._bits = bits
        self._paged = paged

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        state_bytes = parameter_bytes = gradient_bytes = launches = 0
        for parameter in self.param_groups[0]["params"]:
            if parameter.grad is None:
                continue
            state = self.state[parameter]
            if not state:
                self._make(state, parameter)
            state_bytes += self._moment_bytes(parameter.numel())
            parameter_bytes += parameter.nbytes
            gradient_bytes += parameter.grad.nbytes
            launches += 1
        moved = parameter_bytes + state_bytes
        cost = Cost(0, gradient_bytes + moved, moved, launches, "one kernel for each parameter, in place")
        self._recorder.add_op(f"adam_{self._bits}bit_blockwise", "optimizer", ((launches,),), cost)

    def _in_32_bits(self, elements: int) -> bool:
        return self._bits == 32 or elements < self.SMALLEST

    def _moment_bytes(self, elements: int) -> int:
        """Both moments and their scales, wherever they lie. [B]"""
        each = 4 * elements if self._in_32_bits(elements) else elements + 4 * -(-elements // self.BLOCK)
        return 2 * each

    def _make(self, state: Any, parameter: nn.Parameter) -> None:
        whole = self._in_32_bits(parameter.numel())
        blocks = -(-parameter.numel() // self.BLOCK)
        paged = self._paged and parameter.numel() >= self.SMALLEST_PAGED
        state["made"] = True
        for moment in ("state1", "state2"):
            if not paged:
                dtype = torch.float32 if whole else torch.uint8
                state[moment] = torch.zeros_like(parameter, dtype=dtype)
            if not whole:  # the scales stay on the card
                state[f"absmax_{moment}"] = torch.zeros(blocks, dtype=torch.float32, device="meta")


def _adafactor_of_transformers(parameters: Parameters, _: Recorder) -> torch.optim.Optimizer:
    """As its Trainer makes it: parameter by parameter, factored second moment, no first."""
    library: Any = importlib.import_module("transformers.optimization")
    made: torch.optim.Optimizer = library.Adafactor(
        parameters, lr=1e-3, scale_parameter=False, relative_step=False
    )
    return made


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
    "adafactor-transformers": _adafactor_of_transformers,
    "adamw-8bit": EightBitAdam,
    "adamw-paged-8bit": lambda parameters, recorder: EightBitAdam(parameters, recorder, paged=True),
    "adamw-paged-32bit": lambda parameters, recorder: EightBitAdam(parameters, recorder, bits=32, paged=True),
    "lamb-fused": FusedLamb,
    "none": lambda parameters, _: None,
}


# Steps until the optimizer's state is the same in the same order after each, where it is not the first: that
# of transformers makes a new scalar for every parameter at every step.
STEPS_TO_SETTLE = {"adafactor-transformers": 2}


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
