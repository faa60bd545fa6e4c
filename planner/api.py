"""The public functions: everything the command line and the service can do is one of these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .plan import Plan
from .request import OptimizeRequest

if TYPE_CHECKING:
    from .estimates import MemoryAnswer, ThroughputAnswer
    from .listings import Listing
    from .models.hardware.catalogue import Gpu, Instance, Rig
    from .models.workloads.zoo import Workload


def optimize(model: str | OptimizeRequest, **values: Any) -> Plan:
    """What training `model` costs and takes, on everything that could run it.

    model: a workload id, a config.json, "package.module:factory", or a whole request.
    values: the other keys of OptimizeRequest.
    Raises UsageError, Infeasible, NoPrice, NothingStored, and the errors of models and pricing.
    """
    raise NotImplementedError


def estimate_memory(
    model: str,
    gpu: str,
    *,
    precision: str | None = None,
    batch_size: int | None = None,
    seq_len: int | None = None,
    gpus: int = 1,
    accumulation: int = 1,
    activation_checkpointing: bool = False,
    strategy: str = "ddp",
) -> MemoryAnswer:
    """Whether one training step fits on `gpu`, and what fills it. batch_size: of one GPU, the micro-batch.

    precision: default the workload's most usual. Raises the errors of models and UsageError.
    """
    raise NotImplementedError


def estimate_throughput(
    model: str,
    gpu: str,
    *,
    precision: str | None = None,
    batch_size: int | None = None,
    seq_len: int | None = None,
    gpus: int = 1,
    accumulation: int = 1,
    activation_checkpointing: bool = False,
    strategy: str = "ddp",
    link: str | None = None,
) -> ThroughputAnswer:
    """How fast `model` trains on `gpus` cards in one machine. batch_size: of one GPU, the micro-batch.

    gpu: a GPU, an instance or a rig; the last two bring their own link and count.
    link: a link class; None: the usual one of that card.
    """
    raise NotImplementedError


def list_prices(
    *,
    item: str | None = None,
    provider: str | None = None,
    region: str | None = None,
    contract: str | None = None,
    kind: str | None = None,
    as_of: str | None = None,
) -> Listing:
    """Stored offers, the latest of each key as of that moment."""
    raise NotImplementedError


def list_hardware(kind: str | None = None) -> Listing:
    """Every GPU, instance and rig of the catalogue. kind: "gpu", "instance" or "rig"; None: all."""
    raise NotImplementedError


def show_hardware(name: str) -> Gpu | Instance | Rig:
    """One GPU, instance or rig, with source and date of each figure. Raises UnknownName."""
    raise NotImplementedError


def list_workloads() -> Listing:
    """Every named workload."""
    raise NotImplementedError


def show_workload(name: str) -> Workload:
    """One named workload, with its reference run. Raises UnknownName."""
    raise NotImplementedError
