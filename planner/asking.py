"""The two estimate functions: one step on one kind of card, its memory and its speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .answer import Assumption
from .assemble import room_of, speed_of
from .errors import UsageError
from .estimates import MemoryAnswer, ThroughputAnswer
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
    from .models.tracing.summary import StepSummary
    from .models.workloads.zoo import Workload


_CHANGEABLE = (
    "precision",
    "micro_batch",
    "accumulation",
    "activation_checkpointing",
    "optimizer",
    "gpu_count",
    "strategy",
    "adapter",
    "offload",
)


def memory_of(workload: Workload, gpu: str, seq_len: int | None, asked: Mapping[str, Any]) -> MemoryAnswer:
    """See api.estimate_memory. asked: its other arguments."""
    from .models import levers, vram

    card = _card(gpu)
    size = sample_size(workload, seq_len)
    setting = _memory_setting(workload, card, size, asked)
    summary = _summary(workload, setting, card)
    shape = levers.shape_of(setting)
    found = vram.estimate_memory(summary, card, micro_batch=setting.micro_batch, **shape)
    return MemoryAnswer(
        workload=workload.id,
        gpu=card.id,
        precision=setting.precision,
        micro_batch_size=setting.micro_batch,
        size=size,
        size_unit=size_unit(workload),
        accumulation=setting.accumulation,
        activation_checkpointing=setting.activation_checkpointing,
        strategy=setting.strategy,
        gpus=setting.gpu_count,
        optimizer=setting.optimizer,
        adapter=setting.adapter,
        offload=setting.offload,
        tensor_parallel=setting.tensor_parallel,
        host_bytes=found.host_bytes,
        room=room_of(found),
        max_micro_batch=vram.max_micro_batch(summary, card, **shape),
        replayed=_replayed(workload, card, setting, asked["alloc_conf"]),
        levers=() if found.fits == "yes" else _levers(workload, card, setting),
        assumptions=(*_said(asked, setting, workload), *_as_assumptions(found.assumptions)),
    )


def _memory_setting(
    workload: Workload, card: Gpu, size: int | None, asked: Mapping[str, Any]
) -> memory_levers.Setting:
    """How the step is run, defaults filled in. Raises UsageError, and ModelsError for names nobody knows."""
    from .models import levers
    from .models.workloads.blocks import blocks_of

    base = _setting(workload, card, asked, "none")
    _check_checkpointing(workload, base.activation_checkpointing)
    return levers.Setting(
        precision=base.precision,
        micro_batch=base.micro_batch,
        accumulation=base.accumulation,
        activation_checkpointing=base.activation_checkpointing,
        optimizer=asked["optimizer"] or optimizer_of(workload),
        gpu_count=base.gpu_count,
        strategy=base.strategy,
        size=size,
        adapter=adapter_of(workload, asked["adapter"]),
        offload=asked["offload"],
        tensor_parallel=int(asked["tensor_parallel"]),
        blocks=blocks_of(workload, size),
    )


def _replayed(
    workload: Workload, card: Gpu, setting: memory_levers.Setting, alloc_conf: str | None
) -> Mapping[str, Any] | None:
    """The step replayed under an allocator configuration within what context leaves of the card."""
    from .models import allocator, caching_allocator, memory_terms
    from .models.workloads.store import trace

    if alloc_conf is None:
        return None
    if setting.gpu_count > 1 or setting.offload != "none":
        raise UsageError(
            "alloc_conf replays a whole step of one GPU; give one GPU and no offload", "alloc_conf"
        )
    try:
        settings = caching_allocator.settings_of(alloc_conf)
    except ModelsError as error:
        raise UsageError(f"alloc_conf: {error}", "alloc_conf") from error
    terms = memory_terms.card_terms(card)
    room = terms.capacity_bytes - terms.outside_p50 - terms.cublas_workspace.p50_bytes
    made = allocator.replay(
        trace(workload, setting.variant(card)),
        setting.micro_batch,
        capacity_bytes=room,
        accumulating=setting.accumulation > 1,
        settings=settings,
        steps=2,
    )
    return {
        "alloc_conf": alloc_conf,
        "runs": not made.out_of_memory,
        "allocated_bytes": made.allocated_peak_bytes,
        "reserved_bytes": made.reserved_peak_bytes,
        "capacity_bytes": room,
        "retries": made.retries,
    }


def _summary(workload: Workload, setting: memory_levers.Setting, card: Gpu) -> StepSummary:
    from .models.workloads.zoo import summary

    return summary(workload, setting.variant(card))


def throughput_of(
    workload: Workload, hardware: str, seq_len: int | None, asked: Mapping[str, Any]
) -> ThroughputAnswer:
    """See api.estimate_throughput. asked: its other arguments."""
    machine = _machine(hardware)
    card = machine if isinstance(machine, catalogue.Gpu) else catalogue.gpu(machine.gpu)
    place, told_of_place = _place(machine, card, asked)
    size = sample_size(workload, seq_len)
    setting = replace(
        _setting(workload, card, {**asked, "gpus": place.gpus}, place.link),
        node_count=place.nodes,
        network=place.network,
        adapter=adapter_of(workload, asked["adapter"]),
        compiled=bool(asked["torch_compile"]),
        input_pipeline=_fed(machine, place, asked),
    )
    step = _estimator(workload, size, setting).step(card, setting, place.power_limit_watts)
    told = (*_said(asked, setting, workload), *told_of_place)
    return ThroughputAnswer(
        workload=workload.id,
        hardware=machine.id,
        gpu=card.id,
        gpus=place.gpus,
        size=size,
        size_unit=size_unit(workload),
        speed=speed_of(step, setting, steps=0),
        assumptions=(*told, *_as_assumptions(step.assumptions)),
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


def _card(name: str) -> Gpu:
    """The card of that name, or that of an instance or rig."""
    machine = _machine(name)
    return machine if isinstance(machine, catalogue.Gpu) else catalogue.gpu(machine.gpu)


def _setting(workload: Workload, card: Gpu, asked: Mapping[str, Any], link: str) -> Setting:
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
    _check_checkpointing(workload, setting.activation_checkpointing)
    return TracedEstimator(workload, size, optimizer_of(workload))


def _check_checkpointing(workload: Workload, asked: bool) -> None:
    if asked and not workload.builder.activation_checkpointing:
        raise UsageError(f"{workload.id} cannot recompute activations", "activation_checkpointing")


def optimizer_of(workload: Workload) -> str:
    """The optimizer of the reference run, AdamW where there is none."""
    return workload.reference.optimizer if workload.reference else "adamw-foreach"


def _levers(workload: Workload, card: Gpu, start: memory_levers.Setting) -> tuple[Mapping[str, Any], ...]:
    """Each change that would lower the peak, and what fits together, with their price in time."""
    from .models import levers

    summary_of = levers.summaries_of(workload, card, start)  # what ships, where it does: no tracing
    found = list(levers.levers(summary_of, card, start))
    for same_gpus in (True, False):
        together = levers.smallest_combination(summary_of, card, start, same_gpus=same_gpus)
        known = {lever.names for lever in found}
        if together is not None and together.names not in known:
            found.insert(0, together)
    before = _seconds_per_sample(summary_of, card, start)
    return tuple(_lever(summary_of, card, lever, start, before) for lever in found)


def _lever(
    summary_of: memory_levers.SummaryOf,
    card: Gpu,
    lever: memory_levers.Lever,
    start: memory_levers.Setting,
    before: float | None,
) -> Mapping[str, Any]:
    """Name, verdict, new process P95 [B], GPU-seconds of a sample over those before, and what is changed."""
    after = _seconds_per_sample(summary_of, card, lever.setting)
    body = lever.to_json()
    return {
        "name": body["name"],
        "fits": lever.estimate.fits,
        "process_bytes": lever.estimate.process_bytes.p95,
        "saved_bytes": lever.saved_bytes,
        "time_factor": None if before is None or after is None else round(after / before, 3),
        **{key: body[key] for key in _CHANGEABLE if body[key] != getattr(start, key)},
    }


def _seconds_per_sample(
    summary_of: memory_levers.SummaryOf, card: Gpu, setting: memory_levers.Setting
) -> float | None:
    """GPU-seconds of one sample; None where no speed can be told, as for what moves over the host's link."""
    from .models.throughput import estimate_step

    if setting.offload != "none" or "-paged-" in setting.optimizer:
        return None
    try:
        step = estimate_step(
            summary_of(setting.variant(card)),
            card,
            precision=setting.precision,
            micro_batch=setting.micro_batch,
            accumulation=setting.accumulation,
            gpu_count=setting.gpu_count,
            link="none" if setting.gpu_count == 1 else usual_link(card),
            strategy=setting.strategy,
            tensor_parallel=setting.tensor_parallel,
            blocks=setting.blocks,
        )
    except ModelsError:
        return None
    return setting.gpu_count / step.samples_per_second


def _said(
    asked: Mapping[str, Any], setting: Setting | memory_levers.Setting, workload: Workload
) -> tuple[Assumption, ...]:
    """What was taken for the arguments the user left open."""
    found = []
    source = workload.reference.source if workload.reference else "default"
    if asked["precision"] is None:
        found.append(Assumption("precision", f"precision {setting.precision}: usual here", source))
    if asked["batch_size"] is None:
        text = f"micro-batch {setting.micro_batch}: the reference run's global batch over the GPUs"
        found.append(Assumption("batch_size", text, source))
    if not asked.get("optimizer"):
        found.append(Assumption("optimizer", f"optimizer {optimizer_of(workload)}", source))
    return tuple(found)


def _as_assumptions(texts: tuple[str, ...]) -> tuple[Assumption, ...]:
    return tuple(Assumption("estimate", text, "estimators") for text in dict.fromkeys(texts))
