"""Answers of the two estimate functions, as records and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .answer import SCHEMA_VERSION, Assumption, Room, Speed

if TYPE_CHECKING:
    from .models.levers import Setting as MemorySetting


@dataclass(frozen=True, slots=True)
class MemoryAnswer:
    """What one training step needs of one GPU. room.fits may be "no" here.

    setting: how the step is run.   host_bytes: what an offload keeps in the host's memory, for each process.
    max_micro_batch: the largest that fits on the P95; 0 where none does.
    needs: model states of one process, and what one sample more adds. [B]
    replayed: two steps under the allocator configuration asked for: whether they run, and their peaks. [B]
    levers: what would make it fit: name, the new process P95 [B] and GPU-seconds of a sample over before.
        goal: what a combination was searched for; None for a change alone.
    checkpointing: what it makes of process P95 and of GPU-seconds a sample here, as factors.
    """

    workload: str
    gpu: str
    size: int | None
    size_unit: str | None
    setting: MemorySetting
    host_bytes: int
    room: Room
    max_micro_batch: int
    needs: tuple[int, int]
    replayed: Mapping[str, Any] | None
    levers: tuple[Mapping[str, Any], ...]
    checkpointing: Mapping[str, float | None] | None
    assumptions: tuple[Assumption, ...]

    @property
    def precision(self) -> str:
        return self.setting.precision

    @property
    def micro_batch_size(self) -> int:
        return self.setting.micro_batch

    def to_json(self) -> dict[str, Any]:
        setting, (states, per_sample) = self.setting, self.needs
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "memory",
            "workload": self.workload,
            "gpu": self.gpu,
            "precision": setting.precision,
            "micro_batch_size": setting.micro_batch,
            "size": self.size,
            "size_unit": self.size_unit,
            "accumulation": setting.accumulation,
            "activation_checkpointing": setting.activation_checkpointing,
            "strategy": setting.strategy,
            "gpus": setting.gpu_count,
            "tensor_parallel": setting.tensor_parallel,
            "optimizer": setting.optimizer,
            "adapter": setting.adapter or None,
            "offload": setting.offload,
            "host_bytes": self.host_bytes,
            **self.room.to_json(),
            "max_micro_batch": self.max_micro_batch,
            "model_state_bytes": states,
            "bytes_per_sample": per_sample,
            "replayed": None if self.replayed is None else dict(self.replayed),
            "levers": [dict(lever) for lever in self.levers],
            "checkpointing": None if self.checkpointing is None else dict(self.checkpointing),
            "assumptions": [assumption.to_json() for assumption in self.assumptions],
        }


@dataclass(frozen=True, slots=True)
class ThroughputAnswer:
    """How fast one machine trains. speed.steps is 0: no run was named."""

    workload: str
    hardware: str
    gpu: str
    gpus: int
    size: int | None
    size_unit: str | None
    speed: Speed
    assumptions: tuple[Assumption, ...]

    def to_json(self) -> dict[str, Any]:
        speed = self.speed.to_json()
        value = {key: speed.pop(key) for key in ("value", "low", "high", "unit")}
        speed.pop("steps")
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "throughput",
            "workload": self.workload,
            "hardware": self.hardware,
            "gpu": self.gpu,
            "gpus": self.gpus,
            "size": self.size,
            "size_unit": self.size_unit,
            "throughput": value,
            **speed,
            "assumptions": [assumption.to_json() for assumption in self.assumptions],
        }
