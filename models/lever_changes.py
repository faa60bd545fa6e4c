"""The changes that make a step smaller, each a function of the setting it is made to. Read by levers.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .errors import ModelsError
from .model_parallel import Blocks, Split
from .precision import policy_of
from .sharding import Offload
from .tracing.step_trace import TraceVariant
from .tracing.summary import StepSummary
from .vram import MemoryEstimate, estimate_memory, max_micro_batch

if TYPE_CHECKING:
    from .hardware.catalogue import Gpu

# (variant) -> summary; the zoo's `summary` bound to a workload. Raises a ModelsError where there is none.
SummaryOf = Callable[[TraceVariant], StepSummary]

_FUSED_KINDS = {
    "adamw-foreach": "adamw-fused",
    "adamw-loop": "adamw-fused",
    "adam-foreach": "adam-fused",
}
SMALLER, FUSED = "smaller micro-batch", "fused optimizer"
CHECKPOINTING = "activation checkpointing"
EIGHT_BIT, OFFLOADED = "8-bit optimizer", "optimizer state in host memory"


@dataclass(frozen=True, slots=True)
class Setting:
    """How a step is run; what levers change.

    size: tokens or pixels, None for the workload's own. adapter: what is trained instead of all weights, as
    AdapterSpec.key writes it. micro_batch x accumulation is kept by every lever. tensor_parallel: GPUs that
    hold one replica; blocks: what they share out of it.
    """

    precision: str
    micro_batch: int
    accumulation: int = 1
    activation_checkpointing: bool = False
    optimizer: str = "adamw-foreach"
    gpu_count: int = 1
    strategy: str = "ddp"
    size: int | None = None
    adapter: str = ""
    offload: Offload = "none"
    tensor_parallel: int = 1
    blocks: Blocks | None = None

    def variant(self, gpu: Gpu) -> TraceVariant:
        """What must be traced for this setting on `gpu`."""
        return TraceVariant(
            precision_policy=policy_of(self.precision),
            attention_kernel=gpu.attention_kernel(self.precision),
            activation_checkpointing=self.activation_checkpointing,
            optimizer=self.optimizer,
            size=self.size,
            adapter=self.adapter,
        )


Change = Callable[[SummaryOf, "Gpu", Setting], "Setting | None"]


def estimate(summary_of: SummaryOf, gpu: Gpu, setting: Setting) -> MemoryEstimate:
    """Memory of one setting. Raises as `summary_of` and estimate_memory do."""
    return estimate_memory(
        summary_of(setting.variant(gpu)), gpu, micro_batch=setting.micro_batch, **shape_of(setting)
    )


def shape_of(setting: Setting) -> dict[str, Any]:
    """The arguments of estimate_memory and max_micro_batch that a setting decides, but its batch."""
    return {
        "precision": setting.precision,
        "gpu_count": setting.gpu_count,
        "strategy": setting.strategy,
        "accumulation": setting.accumulation,
        "offload": setting.offload,
        "split": Split(setting.tensor_parallel, 1, setting.blocks),
    }


def _fused_optimizer(_: SummaryOf, gpu: Gpu, setting: Setting) -> Setting | None:
    fused = _FUSED_KINDS.get(setting.optimizer)
    return replace(setting, optimizer=fused) if fused else None


def _mixed_precision(_: SummaryOf, gpu: Gpu, setting: Setting) -> Setting | None:
    if policy_of(setting.precision) != "fp32":
        return None
    native = gpu.dense_flops.get("bf16") is not None
    return replace(setting, precision="bf16-amp" if native else "fp16-amp")


def _smaller_micro_batch(summary_of: SummaryOf, gpu: Gpu, setting: Setting) -> Setting | None:
    """The largest micro-batch that divides this one and fits; one sample where none does."""
    accumulating = replace(setting, accumulation=max(2, setting.accumulation))
    try:
        summary = summary_of(accumulating.variant(gpu))
        ceiling = max_micro_batch(summary, gpu, **shape_of(accumulating))
    except ModelsError:
        return None
    for micro_batch in _divisors(setting.micro_batch):
        if micro_batch < setting.micro_batch and (micro_batch <= ceiling or micro_batch == 1):
            parts = setting.micro_batch // micro_batch
            return replace(setting, micro_batch=micro_batch, accumulation=setting.accumulation * parts)
    return None


def _divisors(number: int) -> Iterator[int]:
    return (divisor for divisor in range(number, 0, -1) if number % divisor == 0)


def _checkpointing(_: SummaryOf, gpu: Gpu, setting: Setting) -> Setting | None:
    return None if setting.activation_checkpointing else replace(setting, activation_checkpointing=True)


def _sharded_over(gpu_count: int) -> Change:
    def change(_: SummaryOf, gpu: Gpu, setting: Setting) -> Setting | None:
        if setting.gpu_count > 1:
            return None
        return replace(setting, strategy="fsdp", gpu_count=gpu_count)

    return change


def grown(summary_of: SummaryOf, gpu: Gpu, setting: Setting) -> Setting:
    """`setting` in the largest equal parts of its accumulated batch that fit: room left over saves time."""
    try:
        ceiling = max_micro_batch(summary_of(setting.variant(gpu)), gpu, **shape_of(setting))
    except ModelsError:
        return setting
    whole = setting.micro_batch * setting.accumulation
    part = next(divisor for divisor in _divisors(whole) if divisor <= max(ceiling, setting.micro_batch))
    return replace(setting, micro_batch=part, accumulation=whole // part)


def _eight_bit(_: SummaryOf, gpu: Gpu, setting: Setting) -> Setting | None:
    if not setting.optimizer.startswith("adam") or "bit" in setting.optimizer:
        return None
    return replace(setting, optimizer="adamw-8bit")


def _offloaded(_: SummaryOf, gpu: Gpu, setting: Setting) -> Setting | None:
    return replace(setting, offload="optimizer") if setting.offload == "none" else None


def _adapter(spec: str) -> Change:
    def change(_: SummaryOf, gpu: Gpu, setting: Setting) -> Setting | None:
        return None if setting.adapter else replace(setting, adapter=spec)

    return change


CHANGES: Mapping[str, Change] = {
    FUSED: _fused_optimizer,
    "mixed precision": _mixed_precision,
    SMALLER: _smaller_micro_batch,
    CHECKPOINTING: _checkpointing,
    EIGHT_BIT: _eight_bit,
    OFFLOADED: _offloaded,
}


SHARDED: Mapping[str, Change] = {
    f"sharded over {gpu_count} GPUs (FSDP)": _sharded_over(gpu_count) for gpu_count in (2, 4, 8)
}


def adapters(spec: str) -> Mapping[str, Change]:
    """They train less than was asked for, so they are offered beside the rest and never as the only way."""
    if not spec:
        return {}
    return {
        "LoRA (adapters only)": _adapter(spec),
        "QLoRA (adapters on a 4-bit base)": _adapter(f"{spec}-nf4-dq"),
    }
