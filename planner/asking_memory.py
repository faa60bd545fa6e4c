"""The memory of one step on one kind of card: does it fit, why not, and what would make it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .answer import Assumption
from .asking import (
    adapter_of,
    as_assumptions,
    card_of,
    check_checkpointing,
    optimizer_of,
    said_of,
    setting_of,
)
from .assemble import room_of
from .errors import UsageError
from .estimates import MemoryAnswer
from .models.errors import ModelsError
from .own_rigs import usual_link
from .work import sample_size, size_unit

if TYPE_CHECKING:
    from .models import levers as memory_levers
    from .models.hardware.catalogue import Gpu
    from .models.tracing.summary import StepSummary
    from .models.workloads.zoo import Workload

_CHANGEABLE = (
    *("precision", "micro_batch", "accumulation", "activation_checkpointing", "optimizer", "gpu_count"),
    *("strategy", "adapter", "offload"),
)
# What each search for a combination is allowed to change beside the step itself.
GOALS = ("all weights, same GPUs", "adapters, same GPUs", "all weights, more GPUs")


def memory_of(workload: Workload, gpu: str, seq_len: int | None, asked: Mapping[str, Any]) -> MemoryAnswer:
    """See api.estimate_memory. asked: its other arguments."""
    from .models import levers, vram

    card = card_of(gpu)
    size = sample_size(workload, seq_len)
    setting, told = _memory_setting(workload, card, size, asked)
    summary = _summary(workload, setting, card)
    shape = levers.shape_of(setting)
    found = vram.estimate_memory(summary, card, micro_batch=setting.micro_batch, **shape)
    fits = found.fits == "yes"
    summary_of = levers.summaries_of(workload, card, setting)  # what ships, where it does: no tracing
    return MemoryAnswer(
        workload=workload.id,
        gpu=card.id,
        size=size,
        size_unit=size_unit(workload),
        setting=setting,
        host_bytes=found.host_bytes,
        room=room_of(found),
        max_micro_batch=vram.max_micro_batch(summary, card, **shape),
        needs=vram.fixed_and_per_sample(summary, card, **shape),
        replayed=_replayed(workload, card, setting, asked["alloc_conf"]),
        levers=() if fits else _levers(workload, summary_of, card, setting),
        checkpointing=None if fits else _checkpointing(summary_of, card, setting),
        assumptions=(*said_of(asked, setting, workload), *told, *as_assumptions(found.assumptions)),
    )


def _memory_setting(
    workload: Workload, card: Gpu, size: int | None, asked: Mapping[str, Any]
) -> tuple[memory_levers.Setting, tuple[Assumption, ...]]:
    """How the step is run, defaults filled in, and what was taken for them.

    Without a batch size it is the reference run's global batch; where that does not fit, its largest part
    that does, accumulated, or one sample.
    Raises UsageError, and ModelsError for names nobody knows.
    """
    from .models import levers
    from .models.workloads.blocks import blocks_of

    base = setting_of(workload, card, asked, "none")
    check_checkpointing(workload, base.activation_checkpointing)
    setting = levers.Setting(
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
    if asked["batch_size"] is not None:
        return setting, ()
    source = workload.reference.source if workload.reference else "default"
    parted = levers.part_that_fits(lambda variant: _summary_of(workload, variant), card, setting)
    text = f"micro-batch {parted.micro_batch}: the reference run's global batch over the GPUs"
    if parted.micro_batch < setting.micro_batch:
        text = (
            f"micro-batch {parted.micro_batch}, accumulated {parted.accumulation} times: the reference run's "
            f"global batch of {setting.micro_batch * setting.accumulation} does not fit at once"
        )
    return parted, (Assumption("batch_size", text, source),)


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
    return _summary_of(workload, setting.variant(card))


def _summary_of(workload: Workload, variant: Any) -> StepSummary:
    from .models.workloads.zoo import summary

    return summary(workload, variant)


def _levers(
    workload: Workload, summary_of: memory_levers.SummaryOf, card: Gpu, start: memory_levers.Setting
) -> tuple[Mapping[str, Any], ...]:
    """The cheapest that fits for each goal, then each change alone; all with their price in time."""
    from .models import levers

    usual = _usual_adapter(workload) if not start.adapter else ""
    price = _price(summary_of, card)
    goals = [GOALS[0], *([GOALS[1]] if usual else []), GOALS[2]]
    found = []
    for goal in goals:
        together = levers.cheapest_combination(
            *(summary_of, card, start, price),
            more_gpus=goal == GOALS[2],
            adapter=usual if goal == GOALS[1] else "",
        )
        trains_adapters = together is not None and bool(together.setting.adapter) and not start.adapter
        if together is not None and trains_adapters == (goal == GOALS[1]):
            found.append({**_lever(together, start), "goal": goal})
    alone = levers.levers(summary_of, card, start, price, usual)
    return (*found, *({**_lever(lever, start), "goal": None} for lever in alone))


def _usual_adapter(workload: Workload) -> str:
    try:
        return adapter_of(workload, "lora")
    except UsageError:
        return ""


def _lever(lever: memory_levers.Lever, start: memory_levers.Setting) -> dict[str, Any]:
    """Name, verdict, new process P95 [B], GPU-seconds of a sample over those before, and what is changed."""
    body = lever.to_json()
    return {
        "name": body["name"],
        "fits": lever.estimate.fits,
        "process_bytes": lever.estimate.process_bytes.p95,
        "saved_bytes": lever.saved_bytes,
        "time_factor": body["time_factor"],
        **{key: body[key] for key in _CHANGEABLE if body[key] != getattr(start, key)},
    }


def _checkpointing(
    summary_of: memory_levers.SummaryOf, card: Gpu, start: memory_levers.Setting
) -> Mapping[str, float | None] | None:
    """What checkpointing makes of process P95 and of GPU-seconds a sample, as factors."""
    from .models import levers

    found = levers.checkpointing_alone(summary_of, card, start, _price(summary_of, card))
    if found is None:
        return None
    after = found.estimate.process_bytes.p95
    return {"memory_factor": after / (after + found.saved_bytes), "time_factor": found.time_factor}


def _price(summary_of: memory_levers.SummaryOf, card: Gpu) -> memory_levers.Price:
    """GPU-seconds of one sample; None where no speed can be told, as for what moves over the host's link."""
    from .models.throughput import estimate_step

    def seconds(setting: memory_levers.Setting) -> float | None:
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

    return seconds
