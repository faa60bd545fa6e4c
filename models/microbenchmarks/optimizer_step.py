"""Optimizer steps over a mix of tensors such as models have: a few large, as many vectors. Loop, foreach, fused.

State, gradients and weights together are far above the caches, as they are when the backward has just ended.
"""

from __future__ import annotations

from collections.abc import Iterator

from .registry import Call, Case, Operands, Target, Work, suite

# (tensors, elements): half the tensors are vectors, matrices share the elements unevenly.
MIXES = ((8, 1_500_000), (40, 500_000), (60, 6_000_000), (160, 6_000_000), (30, 16_000_000))
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
        for tensors, elements in mixes[::2] if sparse else mixes:
            yield optimizer_case(kind, tensors, elements * scale)


def tensor_mix(tensors: int, elements: int) -> list[int]:
    """Sizes that add up to about `elements`: half vectors, matrices of weights 1, 1, 2, 4."""
    vectors = tensors // 2
    matrices = tensors - vectors
    weights = [(1, 1, 2, 4)[i % 4] for i in range(matrices)]
    rest = elements - vectors * _VECTOR
    return [_VECTOR] * vectors + [max(64, rest * weight // sum(weights)) for weight in weights]


def optimizer_case(kind: str, tensors: int, elements: int) -> Case:
    name, _, form = kind.rpartition("-")

    def make(take: Operands) -> Call:
        import torch

        parameters = []
        for size in tensor_mix(tensors, elements):
            parameter = torch.full((size,), 0.5, device=take.device, requires_grad=True)
            parameter.grad = torch.full((size,), 0.01, device=take.device)
            parameters.append(parameter)
        flags = {"foreach": form == "foreach", "fused": form == "fused"}
        optimizer: torch.optim.Optimizer
        if name == "adamw":
            optimizer = torch.optim.AdamW(parameters, lr=1e-6, **flags)
        else:
            optimizer = torch.optim.SGD(parameters, lr=1e-6, momentum=0.9, weight_decay=1e-4, **flags)

        def step() -> object:
            with torch.enable_grad():
                return optimizer.step()  # type: ignore[no-untyped-call]

        return step

    work = Work(
        op=kind,
        op_class="optimizer",
        shapes=((elements,),),
        flops=0.0,
        bytes_read=0.0,
        bytes_written=0.0,
        extra={"tensors": float(tensors), "elements": float(elements)},
    )
    return Case(f"{kind}/{tensors}x{elements}", "optimizer_step", "float32", kind, make, work, cold=False)
