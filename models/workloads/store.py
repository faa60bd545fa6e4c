"""The trace store: shipped with the package, else cached on this machine, else traced now.

Planning asks for summaries, which are small; whole traces are for the allocator's replay and for people.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import BadData
from ..tracing import step_trace
from ..tracing import summary as summaries
from ..tracing.step_trace import AttentionKernel, StepTrace, TraceVariant
from ..tracing.summary import StepSummary
from . import cache
from .records import Workload

SHIPPED = Path(__file__).parent / "traces"
SUMMARY_FILE = "summary.json"
SUMMARY_SCHEMA = 1


def variant_of(workload: Workload, asked: TraceVariant) -> TraceVariant:
    """The variant this workload really has.

    Without attention there is no kernel to choose; a module that writes its score matrix runs "math" on
    every card; without a size the default one is meant.
    """
    kernels: dict[str, AttentionKernel] = {"none": "none", "eager": "math", "fused": asked.attention_kernel}
    return replace(
        asked,
        attention_kernel=kernels[workload.builder.attention],
        activation_checkpointing=asked.activation_checkpointing and workload.builder.activation_checkpointing,
        size=workload.default_size if asked.size is None else asked.size,
    )


def summary(workload: Workload, variant: TraceVariant) -> StepSummary:
    """Work and memory of one step: shipped, else cached, else traced now (seconds, needs torch).

    A choice the workload does not have is replaced as `variant_of` says. Raises TraceUnavailable without
    torch, BadConfig for a size the workload cannot have.
    """
    variant = variant_of(workload, variant)
    shipped = _shipped_summaries(workload.id).get(variant.key) if workload.origin == "zoo" else None
    if shipped is not None:
        return summaries.from_json(shipped, f"{workload.id}/{SUMMARY_FILE}")
    name = cache.key(workload, f"summary-{variant.key}")
    try:
        return summaries.from_json(cache.read(name), name)
    except BadData:
        made = summaries.summarise(trace(workload, variant))
    cache.write(name, summaries.to_json(made))
    return made


def trace(workload: Workload, variant: TraceVariant) -> StepTrace:
    """The whole record of one step: shipped, else cached, else traced now. Raises as `summary` does."""
    variant = variant_of(workload, variant)
    path = shipped_path(workload.id, variant)
    if workload.origin == "zoo" and path.is_file():
        return step_trace.read(path)
    name = cache.key(workload, f"trace-{variant.key}")
    try:
        return step_trace.from_json(cache.read(name), name)
    except BadData:
        made = trace_now(workload, variant)
    cache.write(name, step_trace.to_json(made))
    return made


def prepare(workload: Workload, variants: Iterable[TraceVariant]) -> None:
    """Make and cache what `summary` will be asked for.

    Saves nothing for the zoo; a factory's variants are traced in one child process instead of one each.
    """
    missing = [
        variant
        for variant in dict.fromkeys(variant_of(workload, asked) for asked in variants)
        if workload.origin != "zoo" and cache.read(cache.key(workload, f"summary-{variant.key}")) is None
    ]
    if workload.origin == "factory" and missing:
        from .factories import trace_factory

        for variant, made in zip(missing, trace_factory(workload, missing), strict=True):
            cache.write(cache.key(workload, f"trace-{variant.key}"), step_trace.to_json(made))
    for variant in missing:
        summary(workload, variant)


def trace_now(workload: Workload, variant: TraceVariant) -> StepTrace:
    """Trace without looking at any store."""
    if workload.origin == "factory":
        from .factories import trace_factory

        return trace_factory(workload, [variant])[0]
    from ..tracing.tracer import trace_task
    from .building import task

    return trace_task(task(workload, variant.size), variant)


def shipped_path(workload_id: str, variant: TraceVariant) -> Path:
    return SHIPPED / workload_id / f"{variant.key}.json.gz"


def shipped_variants(workload: Workload) -> tuple[TraceVariant, ...]:
    """The variants whose summaries ship."""
    return tuple(TraceVariant(**body["variant"]) for body in _shipped_summaries(workload.id).values())


@functools.lru_cache(maxsize=8)
def _shipped_summaries(workload_id: str) -> dict[str, Any]:
    """Variant key -> summary as JSON. Empty where nothing ships for that workload."""
    path = SHIPPED / workload_id / SUMMARY_FILE
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BadData(f"{path}: not readable as JSON ({error}); make it again: make traces") from error
    if not isinstance(body, dict) or body.get("schema_version") != SUMMARY_SCHEMA:
        raise BadData(f"{path}: not a summary file of schema {SUMMARY_SCHEMA}; make it again: make traces")
    variants = body["variants"]
    assert isinstance(variants, dict)
    return variants
