"""What would make it fit: each change alone with its new peak, and the fewest together that are enough.

Memory only. What a change costs in time depends on card and link; `Lever.setting` says what to ask the
throughput estimate for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from .errors import ModelsError, TraceUnavailable
from .model_parallel import Blocks, Split
from .precision import policy_of
from .sharding import Offload
from .tracing.adapter_spec import USUAL_ADAPTER
from .tracing.step_trace import TraceVariant
from .tracing.summary import StepSummary
from .vram import MemoryEstimate, estimate_memory, max_micro_batch

if TYPE_CHECKING:
    from .hardware.catalogue import Gpu
    from .workloads.records import Workload

# (variant) -> summary; the zoo's `summary` bound to a workload. Raises a ModelsError where there is none.
SummaryOf = Callable[[TraceVariant], StepSummary]

_FUSED = {
    "adamw-foreach": "adamw-fused",
    "adamw-loop": "adamw-fused",
    "adam-foreach": "adam-fused",
}
_SHARDS = (2, 4, 8)
_SMALLER, _SHARDED = "smaller micro-batch", "fully sharded data parallel"


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


@dataclass(frozen=True, slots=True)
class Lever:
    """One change, or several, and the peak it leads to.

    names: of the changes.   setting: the step with them made.   estimate: its memory.
    saved_bytes: process P95 before less after; negative where the change costs memory.
    """

    names: tuple[str, ...]
    setting: Setting
    estimate: MemoryEstimate
    saved_bytes: int

    @property
    def fits(self) -> bool:
        return self.estimate.fits == "yes"

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dict of name, verdict, peaks and the setting that leads there."""
        return {
            "name": " + ".join(self.names),
            "fits": self.estimate.fits,
            "process_bytes": {"p50": self.estimate.process_bytes.p50, "p95": self.estimate.process_bytes.p95},
            "saved_bytes": self.saved_bytes,
            "precision": self.setting.precision,
            "micro_batch": self.setting.micro_batch,
            "accumulation": self.setting.accumulation,
            "activation_checkpointing": self.setting.activation_checkpointing,
            "optimizer": self.setting.optimizer,
            "gpu_count": self.setting.gpu_count,
            "strategy": self.setting.strategy,
            "adapter": self.setting.adapter,
            "offload": self.setting.offload,
            "tensor_parallel": self.setting.tensor_parallel,
        }


def shipped_only(workload: Workload) -> SummaryOf:
    """Summaries of `workload` that need no tracing: a page of levers should not take a minute.

    The function raises TraceUnavailable for any other variant.
    """
    from .workloads import store

    keys = {variant.key for variant in store.shipped_variants(workload)}

    def summary_of(variant: TraceVariant) -> StepSummary:
        real = store.variant_of(workload, variant)
        if real.key not in keys:
            raise TraceUnavailable(f"{workload.id}: the variant {real.key} does not ship")
        return store.summary(workload, real)

    return summary_of


def summaries_of(workload: Workload, gpu: Gpu, setting: Setting) -> SummaryOf:
    """Where levers look: at what ships, where the setting itself ships; else at whatever can be traced."""
    from .workloads import store

    shipped = shipped_only(workload)
    try:
        shipped(setting.variant(gpu))
    except TraceUnavailable:
        return lambda variant: store.summary(workload, variant)
    return shipped


def estimate(summary_of: SummaryOf, gpu: Gpu, setting: Setting) -> MemoryEstimate:
    """Memory of one setting. Raises as `summary_of` and estimate_memory do."""
    return estimate_memory(
        summary_of(setting.variant(gpu)), gpu, micro_batch=setting.micro_batch, **shape_of(setting)
    )


def levers(summary_of: SummaryOf, gpu: Gpu, setting: Setting) -> tuple[Lever, ...]:
    """Each change alone that lowers the peak, those that are enough first, then by what they save.

    A change whose variant neither ships nor can be traced here is left out.
    """
    before = estimate(summary_of, gpu, setting).process_bytes.p95
    found = []
    for name, change in (*_CHANGES.items(), *_ADAPTERS.items()):
        lever = _pulled(summary_of, gpu, setting, (name,), change(summary_of, gpu, setting), before)
        if lever is not None and lever.saved_bytes > 0:
            found.append(lever)
    return tuple(sorted(found, key=lambda lever: (not lever.fits, -lever.saved_bytes)))


def smallest_combination(
    summary_of: SummaryOf, gpu: Gpu, setting: Setting, *, same_gpus: bool = False
) -> Lever | None:
    """The fewest changes that fit together, the gentlest first; None where it fits already or nothing helps.

    Gentle to harsh: fused optimizer, mixed precision, smaller micro-batch, checkpointing, sharding.
    same_gpus: instead of sharding over more of them, train adapters only, then with a packed base.
    """
    changes = {name: change for name, change in _CHANGES.items() if not (same_gpus and name == _SHARDED)}
    if same_gpus:
        changes.update(_ADAPTERS)
    now = estimate(summary_of, gpu, setting)
    if now.fits == "yes":
        return None
    before = now.process_bytes.p95
    for count in range(1, len(changes) + 1):
        for names in combinations(changes, count):
            # The micro-batch is chosen last: it takes what room the others leave.
            ordered = sorted(names, key=lambda name: name == _SMALLER)
            changed: Setting | None = setting
            for name in ordered:
                changed = changed and changes[name](summary_of, gpu, changed)
            lever = _pulled(summary_of, gpu, setting, names, changed, before)
            if lever is not None and lever.fits:
                return lever
    return None


def _pulled(
    summary_of: SummaryOf,
    gpu: Gpu,
    setting: Setting,
    names: tuple[str, ...],
    changed: Setting | None,
    before: int,
) -> Lever | None:
    if changed is None or changed == setting:
        return None
    try:
        after = estimate(summary_of, gpu, changed)
    except ModelsError:
        return None
    traced = summary_of(changed.variant(gpu)).variant
    if changed.activation_checkpointing and not traced.activation_checkpointing:
        return None  # the workload has no checkpointing; it was given its plain variant
    return Lever(names, changed, after, before - after.process_bytes.p95)


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
    fused = _FUSED.get(setting.optimizer)
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


def _fully_sharded(summary_of: SummaryOf, gpu: Gpu, setting: Setting) -> Setting | None:
    """Over the fewest GPUs that are enough, else over the most; each keeps its micro-batch."""
    if setting.strategy == "fsdp" and setting.gpu_count > 1:
        return None
    options = [replace(setting, strategy="fsdp", gpu_count=count) for count in _SHARDS]
    for option in options:
        try:
            if estimate(summary_of, gpu, option).fits == "yes":
                return option
        except ModelsError:
            return None
    return options[-1]


def _adapters(packed: str) -> _Change:
    def change(_: SummaryOf, gpu: Gpu, setting: Setting) -> Setting | None:
        return None if setting.adapter else replace(setting, adapter=USUAL_ADAPTER + packed)

    return change


_Change = Callable[[SummaryOf, "Gpu", Setting], "Setting | None"]
_CHANGES: Mapping[str, _Change] = {
    "fused optimizer": _fused_optimizer,
    "mixed precision": _mixed_precision,
    _SMALLER: _smaller_micro_batch,
    "activation checkpointing": _checkpointing,
    _SHARDED: _fully_sharded,
}
# They train less than was asked for, so they are offered beside the rest and never as the only way.
_ADAPTERS: Mapping[str, _Change] = {
    "LoRA (adapters only)": _adapters(""),
    "QLoRA (adapters on a 4-bit base)": _adapters("-nf4-dq"),
}
