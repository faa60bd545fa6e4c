"""The door to speed and memory: one workload at one size, on any card and in any setting."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .models.hardware.catalogue import Gpu
    from .models.throughput import StepEstimate
    from .models.tracing.summary import StepSummary
    from .models.vram import MemoryEstimate
    from .models.workloads.zoo import Workload


@dataclass(frozen=True, slots=True)
class Setting:
    """How one optimizer step is run. micro_batch: samples per GPU and micro-step.

    gpu_count: in all, and gpu_count × micro_batch × accumulation = global batch.
    node_count: machines they stand in.
    """

    precision: str
    micro_batch: int
    accumulation: int
    gpu_count: int
    node_count: int
    link: str
    network: str
    strategy: str
    activation_checkpointing: bool


class Estimator(Protocol):
    """Speed and memory of one workload. Errors are those of planner.models (ModelsError)."""

    can_checkpoint: bool

    def memory(self, gpu: Gpu, setting: Setting) -> MemoryEstimate:
        """Peak memory of each process."""
        ...

    def step(self, gpu: Gpu, setting: Setting, power_limit_watts: float | None) -> StepEstimate:
        """Seconds of one optimizer step."""
        ...


class TracedEstimator:
    """Reads the workload's step summaries; one per precision policy, attention kernel and checkpointing."""

    def __init__(self, workload: Workload, size: int | None, optimizer: str) -> None:
        self._workload = workload
        self._size = size
        self._optimizer = optimizer
        self.can_checkpoint = workload.builder.activation_checkpointing
        self._summary = cache(self._read)

    def _read(self, policy: str, attention: str, checkpointing: bool) -> StepSummary:
        from .models.tracing.step_trace import TraceVariant
        from .models.workloads.zoo import summary

        variant = TraceVariant(
            precision_policy=policy,  # type: ignore[arg-type]  # what policy_of returns
            attention_kernel=attention,  # type: ignore[arg-type]  # what Gpu.attention_kernel returns
            activation_checkpointing=checkpointing,
            optimizer=self._optimizer,
            size=self._size,
        )
        return summary(self._workload, variant)

    def summary(self, gpu: Gpu, precision: str, checkpointing: bool) -> StepSummary:
        """The step as this card would run it. Raises UnknownName, TraceUnavailable."""
        from .models.precision import policy_of

        return self._summary(policy_of(precision), gpu.attention_kernel(precision), checkpointing)

    def memory(self, gpu: Gpu, setting: Setting) -> MemoryEstimate:
        from .models.vram import estimate_memory

        return estimate_memory(
            self.summary(gpu, setting.precision, setting.activation_checkpointing),
            gpu,
            precision=setting.precision,
            micro_batch=setting.micro_batch,
            gpu_count=setting.gpu_count,
            strategy=setting.strategy,
            accumulation=setting.accumulation,
        )

    def step(self, gpu: Gpu, setting: Setting, power_limit_watts: float | None) -> StepEstimate:
        from .models.throughput import estimate_step

        return estimate_step(
            self.summary(gpu, setting.precision, setting.activation_checkpointing),
            gpu,
            precision=setting.precision,
            micro_batch=setting.micro_batch,
            gpu_count=setting.gpu_count,
            node_count=setting.node_count,
            link=setting.link,
            network=setting.network,
            strategy=setting.strategy,
            accumulation=setting.accumulation,
            power_limit_watts=power_limit_watts,
        )
