"""Optimizer steps over a mix of tensors as models have: some large, as many vectors; loop, foreach, fused.

State, gradients and weights together are far above the caches, as they are when a backward has just ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .registry import Call, Case, Operands, Target, Work, suite

# (tensors, elements, of them without gradient): half the tensors are vectors, matrices share the elements
# unevenly. The last one holds an embedding few of whose rows were looked up: zeros take AdamW twice as long
# on a CPU (9.2 against 4.3 ns an element: a square root of zero takes 5.1, any other 0.6).
MIXES = (
    (8, 1_500_000, 0),
    (40, 500_000, 0),
    (60, 6_000_000, 0),
    (160, 6_000_000, 0),
    (60, 32_000_000, 0),
    (30, 30_000_000, 20_000_000),
)
KINDS = {
    "cpu": ("adamw-loop", "adamw-foreach", "adamw-fused", "sgd-momentum-loop", "sgd-momentum-foreach"),
    "cuda": ("adamw-foreach", "adamw-fused", "adamw-loop", "sgd-momentum-foreach"),
}
_VECTOR = 700


@suite("optimizer_step")
def optimizer_step(target: Target) -> Iterator[Case]:
    mixes = MIXES[1:3] if target.tiny else MIXES
    scale = 1 if target.scale == 1 else 6
    for kind in KINDS[target.kind]:
        # On a CPU the plain loop is torch's default: give the others fewer points.
        sparse = target.kind == "cpu" and kind not in ("adamw-loop", "sgd-momentum-loop")
        for tensors, elements, untouched in mixes[::2] if sparse else mixes:
            yield optimizer_case(kind, tensors, elements * scale, untouched * scale)


def tensor_mix(tensors: int, elements: int, untouched: int = 0) -> list[int]:
    """Sizes that add up to about `elements`: half vectors, matrices of weights 1, 1, 2, 4; the first
    is the untouched one, where there is one.
    """
    vectors = tensors // 2
    matrices = tensors - vectors - (untouched > 0)
    weights = [(1, 1, 2, 4)[i % 4] for i in range(matrices)]
    rest = elements - vectors * _VECTOR - untouched
    return (
        [untouched] * (untouched > 0)
        + [_VECTOR] * vectors
        + [max(64, rest * weight // sum(weights)) for weight in weights]
    )


def optimizer_case(kind: str, tensors: int, elements: int, untouched: int = 0) -> Case:
    """One kind on one mix. Its caches are emptied before each step, as a backward leaves them."""
    name, _, form = kind.rpartition("-")
    sizes = tensor_mix(tensors, elements, untouched)

    def make(take: Operands) -> Call:
        import torch

        parameters = []
        for i, size in enumerate(sizes):
            slope = 0.0 if untouched and i == 0 else 0.01
            parameter = torch.full((size,), 0.5, device=take.device, requires_grad=True)
            parameter.grad = torch.full((size,), slope, device=take.device)
            parameters.append(parameter)
        flags: dict[str, Any] = {"foreach": form == "foreach", "fused": form == "fused"}
        optimizer: torch.optim.Optimizer
        if name == "adamw":
            optimizer = torch.optim.AdamW(parameters, lr=1e-6, **flags)
        else:
            optimizer = torch.optim.SGD(parameters, lr=1e-6, momentum=0.9, weight_decay=1e-4, **flags)

        def step() -> object:
            with torch.enable_grad():
                return optimizer.step()

        return step

    work = Work(
        op=kind,
        op_class="optimizer",
        shapes=((elements,),),
        flops=0.0,
        bytes_read=0.0,
        bytes_written=0.0,
        extra=mix_terms(sizes, untouched),
    )
    key = f"{kind}/{tensors}x{elements}/{untouched}"
    return Case(key, "optimizer_step", "float32", kind, make, work, cold=False, flush=True)


def mix_terms(sizes: Sequence[int], untouched: int) -> dict[str, float]:
    """What an optimizer step's seconds are fitted in. untouched: elements whose gradient is zero."""
    return {
        "tensors": float(len(sizes)),
        "elements": float(sum(sizes)),
        "untouched_elements": float(untouched),
    }
