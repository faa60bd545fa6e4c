"""The door to speed and memory: one workload at one size, on any card and in any setting."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .models.hardware.catalogue import Gpu
    from .models.input_pipeline import InputPipeline
    from .models.throughput import StepEstimate
    from .models.tracing.step_trace import TraceVariant
    from .models.tracing.summary import StepSummary
    from .models.vram import MemoryEstimate
    from .models.workloads.zoo import Workload


@dataclass(frozen=True, slots=True)
class Setting:
    """How one optimizer step is run. micro_batch: samples per replica and micro-step.

    gpu_count: in all, and replicas × micro_batch × accumulation = global batch.
    node_count: machines they stand in.
    adapter: what is trained instead of all weights, as AdapterSpec.key writes it; "": all.
    tensor_parallel, pipeline_parallel: GPUs that hold one replica between them.
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
    adapter: str = ""
    compiled: bool = False
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    input_pipeline: InputPipeline | None = None

    @property
    def replicas(self) -> int:
        """Copies of the model that train on different samples."""
        return self.gpu_count // (self.tensor_parallel * self.pipeline_parallel)


class Estimator(Protocol):
    """Speed and memory of one workload. Errors are those of planner.models (ModelsError)."""

    can_checkpoint: bool

    def memory(self, gpu: Gpu, setting: Setting) -> MemoryEstimate:
        """Peak memory of each process."""
        ...

    def step(self, gpu: Gpu, setting: Setting, power_limit_watts: float | None) -> StepEstimate:
        """Seconds of one optimizer step."""
        ...

    def flops(self, gpu: Gpu, setting: Setting) -> tuple[tuple[str, float], ...]:
        """(op class, FLOP of one optimizer step on all GPUs together), most first."""
        ...


class TracedEstimator:
    """Reads the workload's step summaries; one per precision policy, attention kernel and checkpointing."""

    def __init__(self, workload: Workload, size: int | None, optimizer: str) -> None:
        self._workload = workload
        self._size = size
        self._optimizer = optimizer
        self.can_checkpoint = workload.builder.activation_checkpointing
        self._summary = cache(self._read)
        self._work = cache(self._flops_of)

    def _read(self, policy: str, attention: str, checkpointing: bool, adapter: str = "") -> StepSummary:
        from .models.workloads.zoo import summary

        return summary(self._workload, self._variant(policy, attention, checkpointing, adapter))

    def _variant(self, policy: str, attention: str, checkpointing: bool, adapter: str = "") -> TraceVariant:
        from .models.tracing.step_trace import TraceVariant

        return TraceVariant(
            precision_policy=policy,  # type: ignore[arg-type]  # what policy_of returns
            attention_kernel=attention,  # type: ignore[arg-type]  # what Gpu.attention_kernel returns
            activation_checkpointing=checkpointing,
            optimizer=self._optimizer,
            size=self._size,
            adapter=adapter,
        )

    def prepare(self, cards: Iterable[Gpu], precisions: Iterable[str]) -> None:
        """Trace what a factory's plan will ask for in one child process instead of one each."""
        if self._workload.origin != "factory":
            return
        from .models.precision import policy_of
        from .models.workloads.zoo import prepare

        precisions = tuple(precisions)
        asked = dict.fromkeys(
            (policy_of(name), card.attention_kernel(name)) for card in cards for name in precisions
        )
        flags = (False, True) if self.can_checkpoint else (False,)
        prepare(self._workload, [self._variant(*choice, flag) for choice in asked for flag in flags])

    def summary(self, gpu: Gpu, precision: str, checkpointing: bool, adapter: str = "") -> StepSummary:
        """The step as this card would run it. Raises UnknownName, TraceUnavailable."""
        from .models.precision import policy_of

        return self._summary(policy_of(precision), gpu.attention_kernel(precision), checkpointing, adapter)

    def flops(self, gpu: Gpu, setting: Setting) -> tuple[tuple[str, float], ...]:
        from .models.precision import policy_of

        kernel = gpu.attention_kernel(setting.precision)
        work = self._work(policy_of(setting.precision), kernel, setting.activation_checkpointing)
        steps = setting.accumulation * setting.replicas
        found = [
            (op_class, steps * (fixed + per_sample * setting.micro_batch) + setting.replicas * update)
            for op_class, fixed, per_sample, update in work
        ]
        return tuple(sorted(found, key=lambda part: (-part[1], part[0])))

    def _flops_of(
        self, policy: str, attention: str, checkpointing: bool
    ) -> tuple[tuple[str, float, float, float], ...]:
        """Per op class with arithmetic: FLOP of a micro-step, fixed and per sample, and of the update."""
        found: dict[str, list[float]] = {}
        for work in self._summary(policy, attention, checkpointing).work:
            if not work.flops.constant and not work.flops.per_sample:
                continue
            parts = found.setdefault(work.op_class, [0.0, 0.0, 0.0])
            if work.phase == "optimizer":
                parts[2] += work.flops.constant
            else:
                parts[0] += work.flops.constant
                parts[1] += work.flops.per_sample
        return tuple((op_class, p[0], p[1], p[2]) for op_class, p in found.items())

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
        from .models.workloads.blocks import blocks_of

        split = setting.tensor_parallel * setting.pipeline_parallel > 1
        return estimate_step(
            self.summary(gpu, setting.precision, setting.activation_checkpointing, setting.adapter),
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
            compiled=setting.compiled,
            input_pipeline=setting.input_pipeline,
            tensor_parallel=setting.tensor_parallel,
            pipeline_parallel=setting.pipeline_parallel,
            blocks=blocks_of(self._workload, self._size) if split else None,
        )
