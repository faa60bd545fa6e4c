"""Precisions: what each is made of, and which of a card's arithmetic units it runs on.

Facts about numerics, not about speed: fp32 and TF32 run the same ops at other rates; `-amp` is autocast
with fp32 master weights; plain fp16 and bf16 keep weights, gradients and moments in 16 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .errors import ModelsError, UnknownName
from .tracing.step_trace import PrecisionPolicy

if TYPE_CHECKING:
    from .hardware.catalogue import Gpu

# Which units of the card do the matrix products.
Unit = Literal["fp32", "tf32", "half", "half_on_fp32"]


class PrecisionUnsupported(ModelsError):
    """The card cannot run this precision at a speed worth planning; the message says which it can."""


@dataclass(frozen=True, slots=True)
class Precision:
    """compute_bytes, weight_bytes, gradient_bytes: per element. [B]"""

    id: str
    policy: PrecisionPolicy
    compute_bytes: int
    weight_bytes: int
    gradient_bytes: int
    rate_key: str


PRECISIONS: dict[str, Precision] = {
    p.id: p
    for p in (
        Precision("fp32", "fp32", 4, 4, 4, "fp32"),
        Precision("tf32", "fp32", 4, 4, 4, "tf32"),
        Precision("fp16-amp", "amp", 2, 4, 4, "fp16"),
        Precision("bf16-amp", "amp", 2, 4, 4, "bf16"),
        Precision("fp16", "half", 2, 2, 2, "fp16"),
        Precision("bf16", "half", 2, 2, 2, "bf16"),
    )
}
# Known to the catalogue, priced by nobody yet: no training rows to learn from.
NOT_COVERED = frozenset({"fp8"})


def precision(name: str) -> Precision:
    """The precision called `name`. Raises UnknownName, or PrecisionUnsupported for fp8."""
    if name in NOT_COVERED:
        raise PrecisionUnsupported(
            f'precision "{name}" is not covered: no published training runs to learn its speed from. '
            f"Covered: {', '.join(PRECISIONS)}"
        )
    found = PRECISIONS.get(name)
    if found is None:
        raise UnknownName("precision", name, PRECISIONS, f"Known: {', '.join(PRECISIONS)}")
    return found


def policy_of(name: str) -> PrecisionPolicy:
    """The trace policy that `name` runs under.

    >>> [policy_of(p) for p in ("tf32", "bf16-amp", "fp16")]
    ['fp32', 'amp', 'half']
    """
    return precision(name).policy


def has_tensor_cores(gpu: Gpu) -> bool:
    """Whether 16-bit products run on matrix units: NVIDIA since Volta, AMD CDNA."""
    if gpu.vendor.casefold() != "nvidia":
        return True
    return gpu.compute_capability is not None and _version(gpu.compute_capability) >= (7, 0)


def unit_of(gpu: Gpu, name: str) -> Unit:
    """The units of `gpu` that do the products of precision `name`.

    TF32 falls to true fp32 where the card has none; half before Volta runs on the fp32 units.
    Raises PrecisionUnsupported for bf16 where the card only emulates it: measured bf16 products reach
    10.3 TFLOPS on V100 and 2.3 on T4, against 94.8 and 41.9 in fp16 (achieved_matmul.csv).
    """
    wanted = precision(name)
    if wanted.rate_key == "fp32":
        return "fp32"
    if wanted.rate_key == "tf32":
        return "tf32" if gpu.dense_flops.get("tf32") is not None else "fp32"
    if wanted.rate_key == "bf16" and gpu.dense_flops.get("bf16") is None:
        other = name.replace("bf16", "fp16")
        raise PrecisionUnsupported(
            f'{gpu.id} has no bf16 units: "{name}" would be emulated, several times slower. Use "{other}"'
        )
    return "half" if has_tensor_cores(gpu) else "half_on_fp32"


def peak_flops(gpu: Gpu, name: str) -> float:
    """Datasheet peak of the units that precision `name` uses: dense, fp32 accumulate. [FLOP/s]

    Raises UnknownFigure where nobody has published it.
    """
    unit = unit_of(gpu, name)
    if unit in ("fp32", "half_on_fp32"):
        return gpu.rate("fp32")
    return gpu.rate(precision(name).rate_key)


def _version(capability: str) -> tuple[int, int]:
    major, _, minor = capability.partition(".")
    return int(major), int(minor or 0)
