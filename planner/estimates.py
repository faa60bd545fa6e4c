"""Answers of the two estimate functions, as records and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .answer import SCHEMA_VERSION, Assumption, Room, Speed


@dataclass(frozen=True, slots=True)
class MemoryAnswer:
    """What one training step needs of one GPU. room.fits may be "no" here.

    max_micro_batch: the largest that fits on the P95; 0 where none does.
    adapter: what is trained instead of all weights, as models writes it; "" trains all.
    host_bytes: what an offload keeps in the host's memory, for each process.
    replayed: two steps under the allocator configuration asked for: whether they run, and their peaks. [B]
    levers: what would make it fit: name, the new process P95 [B] and GPU-seconds of a sample over before.
    """

    workload: str
    gpu: str
    precision: str
    micro_batch_size: int
    size: int | None
    size_unit: str | None
    accumulation: int
    activation_checkpointing: bool
    strategy: str
    gpus: int
    optimizer: str
    adapter: str
    offload: str
    tensor_parallel: int
    host_bytes: int
    room: Room
    max_micro_batch: int
    replayed: Mapping[str, Any] | None
    levers: tuple[Mapping[str, Any], ...]
    assumptions: tuple[Assumption, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "memory",
            "workload": self.workload,
            "gpu": self.gpu,
            "precision": self.precision,
            "micro_batch_size": self.micro_batch_size,
            "size": self.size,
            "size_unit": self.size_unit,
            "accumulation": self.accumulation,
            "activation_checkpointing": self.activation_checkpointing,
            "strategy": self.strategy,
            "gpus": self.gpus,
            "optimizer": self.optimizer,
            "adapter": self.adapter or None,
            "offload": self.offload,
            "tensor_parallel": self.tensor_parallel,
            "host_bytes": self.host_bytes,
            **self.room.to_json(),
            "max_micro_batch": self.max_micro_batch,
            "replayed": None if self.replayed is None else dict(self.replayed),
            "levers": [dict(lever) for lever in self.levers],
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
