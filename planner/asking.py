"""The speed of one step on one kind of card; what both estimate functions read out of a question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .answer import Assumption
from .assemble import speed_of
from .errors import UsageError
from .estimates import ThroughputAnswer
from .estimator import Setting, TracedEstimator
from .feeding import Feeding
from .models.errors import ModelsError, UnknownName
from .models.hardware import catalogue
from .own_rigs import usual_link
from .work import sample_size, size_unit, usual_precisions

if TYPE_CHECKING:
    from .models import levers as memory_levers
    from .models.hardware.catalogue import Gpu
    from .models.input_pipeline import InputPipeline
    from .models.workloads.zoo import Workload


def throughput_of(
    workload: Workload, hardware: str, seq_len: int | None, asked: Mapping[str, Any]
) -> ThroughputAnswer:
    """See api.estimate_throughput. asked: its other arguments."""
    machine = _machine(hardware)
    card = machine if isinstance(machine, catalogue.Gpu) else catalogue.gpu(machine.gpu)
    place, told_of_place = _place(machine, card, asked)
    size = sample_size(workload, seq_len)
    setting = replace(
        setting_of(workload, card, {**asked, "gpus": place.gpus}, place.link),
        node_count=place.nodes,
        network=place.network,
        adapter=adapter_of(workload, asked["adapter"]),
        compiled=bool(asked["torch_compile"]),
        input_pipeline=_fed(machine, place, asked),
    )
    step = _estimator(workload, size, setting).step(card, setting, place.power_limit_watts)
    told = (*said_of(asked, setting, workload), *_told_of_batch(asked, setting, workload), *told_of_place)
    return ThroughputAnswer(
        workload=workload.id,
        hardware=machine.id,
        gpu=card.id,
        gpus=place.gpus,
        size=size,
        size_unit=size_unit(workload),
        speed=speed_of(step, setting, steps=0),
        assumptions=(*told, *as_assumptions(step.assumptions)),
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a step runs: GPUs in all, machines, what joins them."""

    gpus: int
    nodes: int
    link: str
    network: str
    power_limit_watts: float | None


def _place(
    machine: catalogue.Hardware, card: Gpu, asked: Mapping[str, Any]
) -> tuple[_Place, tuple[Assumption, ...]]:
    """The GPUs asked for, or all of the machines; and what of their links was taken from the catalogue."""
    nodes, gpus = int(asked["nodes"]), int(asked["gpus"])
    power_limit, link, network = None, asked["link"], asked["network"]
    if not isinstance(machine, catalogue.Gpu):
        most = machine.gpu_count * nodes
        gpus = most if gpus == 1 else gpus
        if gpus > most:
            raise UsageError(f"gpus = {gpus}: {nodes} x {machine.id} has {most}", "gpus")
        link, network = link or machine.link, network or machine.network
        power_limit = machine.power_limit_watts if isinstance(machine, catalogue.Rig) else None
    if gpus % nodes:
        raise UsageError(f"nodes = {nodes}: {gpus} GPUs do not divide over them", "nodes")
    if nodes > 1 and network is None:
        raise UsageError("network is needed with several nodes: a network class such as efa", "network")
    joined = "none" if gpus == nodes else (link or usual_link(card))
    told: tuple[Assumption, ...] = ()
    if gpus > nodes and link is None:
        told = (Assumption("link", f"link {joined}: usual for this card", "hardware catalogue"),)
    return _Place(gpus, nodes, joined, network if nodes > 1 else "none", power_limit), told


def _fed(machine: catalogue.Hardware, place: _Place, asked: Mapping[str, Any]) -> InputPipeline | None:
    feeding = Feeding.of(asked)
    if feeding is None:
        return None
    vcpus = machine.vcpus if isinstance(machine, catalogue.Instance) else None
    try:
        return feeding.pipeline(machine.id, place.gpus // place.nodes, vcpus)
    except ModelsError as error:
        raise UsageError(str(error), "cores_per_gpu") from error


def adapter_of(workload: Workload, name: str | None) -> str:
    """The adapter a user names: "lora" or "qlora" on the model's usual layers, or a whole spec; "" for none.

    Raises UsageError for a name that is neither, or a model without usual layers.
    """
    from .models.workloads import adapters

    try:
        return adapters.adapter_of(workload, name or "")
    except ModelsError as error:
        raise UsageError(f"adapter = {name}: {error}; or say lora or qlora", "adapter") from error


def _machine(name: str) -> catalogue.Hardware:
    try:
        return catalogue.hardware(name)
    except UnknownName as error:
        raise UsageError(str(error), "gpu") from error


def card_of(name: str) -> Gpu:
    """The card of that name, or that of an instance or rig."""
    machine = _machine(name)
    return machine if isinstance(machine, catalogue.Gpu) else catalogue.gpu(machine.gpu)


def setting_of(workload: Workload, card: Gpu, asked: Mapping[str, Any], link: str) -> Setting:
    gpus = int(asked["gpus"])
    tensor, pipeline = (int(asked.get(key, 1)) for key in ("tensor_parallel", "pipeline_parallel"))
    precision = asked["precision"] or _usual(workload, card)
    batch = asked["batch_size"]
    if batch is None:
        if workload.reference is None:
            raise UsageError(f"batch_size is needed: {workload.id} has no reference run", "batch_size")
        replicas = max(1, gpus // (tensor * pipeline))
        batch = max(1, workload.reference.global_batch_size // (replicas * int(asked["accumulation"])))
    return Setting(
        precision=precision,
        micro_batch=int(batch),
        accumulation=int(asked["accumulation"]),
        gpu_count=gpus,
        node_count=1,
        link=link,
        network="none",
        strategy=str(asked["strategy"]),
        activation_checkpointing=bool(asked["activation_checkpointing"]),
        tensor_parallel=tensor,
        pipeline_parallel=pipeline,
    )


def _usual(workload: Workload, card: Gpu) -> str:
    """The workload's most usual precision that the card runs."""
    from .models.precision import unit_of

    names = usual_precisions(workload)
    for name in names:
        try:
            unit_of(card, name)
        except ModelsError:
            continue
        return name
    raise UsageError(f"{card.id} runs none of {', '.join(names)}; give --precision", "precision")


def _estimator(workload: Workload, size: int | None, setting: Setting) -> TracedEstimator:
    check_checkpointing(workload, setting.activation_checkpointing)
    return TracedEstimator(workload, size, optimizer_of(workload))


def check_checkpointing(workload: Workload, asked: bool) -> None:
    if asked and not workload.builder.activation_checkpointing:
        raise UsageError(f"{workload.id} cannot recompute activations", "activation_checkpointing")


def optimizer_of(workload: Workload) -> str:
    """The optimizer of the reference run, AdamW where there is none."""
    return workload.reference.optimizer if workload.reference else "adamw-foreach"


def said_of(
    asked: Mapping[str, Any], setting: Setting | memory_levers.Setting, workload: Workload
) -> tuple[Assumption, ...]:
    """What was taken for the arguments the user left open."""
    found = []
    source = workload.reference.source if workload.reference else "default"
    if asked["precision"] is None:
        found.append(Assumption("precision", f"precision {setting.precision}: usual here", source))
    if not asked.get("optimizer"):
        found.append(Assumption("optimizer", f"optimizer {optimizer_of(workload)}", source))
    return tuple(found)


def _told_of_batch(asked: Mapping[str, Any], setting: Setting, workload: Workload) -> tuple[Assumption, ...]:
    if asked["batch_size"] is not None:
        return ()
    source = workload.reference.source if workload.reference else "default"
    text = f"micro-batch {setting.micro_batch}: the reference run's global batch over the GPUs"
    return (Assumption("batch_size", text, source),)


def as_assumptions(texts: tuple[str, ...]) -> tuple[Assumption, ...]:
    return tuple(Assumption("estimate", text, "estimators") for text in dict.fromkeys(texts))
