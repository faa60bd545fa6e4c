"""What a published run's step needs, as a summary: shipped, else cached on this machine, else traced now.

A feature is a StepSummary made under the run's own rules (when gradients are freed, what softmax saves). It
does not depend on card or batch, so one feature serves all rows of a model. `make_features` writes the table
that ships.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from .allocator import replay
from .errors import BadData, ModelsError
from .memory_runs import NotCovered, Run, Trained
from .sharding import STATES
from .tracing import summary as summaries
from .tracing.step_trace import StepTrace, TraceVariant
from .tracing.summary import MemoryPoint, StepSummary
from .tracing.task import TrainingTask
from .workloads import cache
from .workloads.zoo import workload

TABLE = Path(__file__).parent / "calibration" / "data" / "memory_features.json.gz"

_REMAKE = "make it again: python -m planner.models.memory_features"

# Activations past this fit no card of any row. [B]
_LARGEST_BYTES = 200 * 2**30
_LARGEST_BATCH = 1024


def key(run: Run) -> str:
    """Identity of the feature of `run`."""
    body = {
        "trained": asdict(run.trained),
        "variant": run.variant.key,
        "keeps_gradients": run.keeps_gradients,
        "late_zero_grad": run.late_zero_grad,
        "softmax_keeps_input": run.softmax_keeps_input,
        "fused_loss": run.fused_loss,
        "gathers_in_half": run.gathers_in_half,
    }
    if run.whole_gradients:
        body["whole_gradients"] = True
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


def feature(run: Run) -> StepSummary:
    """The summary of `run`. Raises NotCovered where it neither ships nor can be traced here."""
    name = key(run)
    shipped = _shipped().get(name)
    if shipped is not None:
        return summaries.from_json(shipped, name)
    return _traced(run, name)


def _traced(run: Run, name: str) -> StepSummary:
    """The feature from this machine's cache, else from a trace made now."""
    stored = cache.key(workload(run.trained.base or "bert-base"), f"memory-{name}")
    try:
        return summaries.from_json(cache.read(stored), stored)
    except BadData:
        made = make(run)
    cache.write(stored, summaries.to_json(made))
    return made


def make_features(runs: Iterable[Run], path: Path = TABLE) -> int:
    """Write the table of all `runs` that can be traced; returns how many it holds."""
    table: dict[str, Any] = {}
    for run in runs:
        with contextlib.suppress(NotCovered):
            name = key(run)
            if name not in table:
                table[name] = summaries.to_json(_traced(run, name))
    packed = gzip.compress(json.dumps(dict(sorted(table.items())), separators=(",", ":")).encode(), mtime=0)
    path.write_bytes(packed)
    return len(table)


@functools.cache
def _shipped() -> Mapping[str, Any]:
    try:
        table: dict[str, Any] = json.loads(gzip.decompress(TABLE.read_bytes()))
    except FileNotFoundError:
        return {}
    except (OSError, EOFError, ValueError) as error:
        raise BadData(f"{TABLE}: not readable as gzip JSON ({error}); {_REMAKE}") from error
    return table


def make(run: Run) -> StepSummary:
    """Trace `run` now and replay its memory. Raises NotCovered where that cannot be done."""
    half = replace(run.variant, precision_policy="half")
    try:
        with _functions_of(run):
            trace = _trace(run, half if run.gathers_in_half else run.variant)
    except ModelsError as error:
        raise NotCovered(f"cannot be traced: {error}") from error
    plain = summaries.summarise(trace, memory=False)
    # Of the work only the attention launches are read: layers, for the units that FSDP gathers.
    attention = tuple(work for work in plain.work if work.op_class.startswith("attention_"))
    made = replace(plain, work=attention, memory=tuple(_points(trace, run)))
    if run.whole_gradients:
        made = _with_whole_gradients(made, run)
    return _with_fp32_states(made, run.variant) if run.gathers_in_half else made


def _with_whole_gradients(made: StepSummary, run: Run) -> StepSummary:
    """The summary with a gradient beside every weight of the wrapped blocks, frozen or not."""
    from .calibration.reference_networks import litgpt

    assert run.trained.reference is not None
    size = 2 * litgpt.wrapped_parameters(*run.trained.reference)  # in bf16
    points = tuple(
        replace(
            point,
            allocated_bytes=point.allocated_bytes + size,
            reserved_bytes=point.reserved_bytes + size,
            breakdown={**point.breakdown, "whole_gradients": size},
        )
        for point in made.memory
    )
    return replace(made, memory=points)


def _with_fp32_states(made: StepSummary, variant: TraceVariant) -> StepSummary:
    """The summary of a 16-bit step whose weights, gradients and moments are kept in twice the bytes."""
    points = []
    for point in made.memory:
        states = {name: point.breakdown.get(name, 0) for name in STATES}
        more = sum(states.values())
        points.append(
            replace(
                point,
                allocated_bytes=point.allocated_bytes + more,
                reserved_bytes=point.reserved_bytes + more,
                breakdown={**point.breakdown, **{name: 2 * size for name, size in states.items() if size}},
            )
        )
    return replace(made, variant=variant, gradient_bytes=2 * made.gradient_bytes, memory=tuple(points))


def _points(trace: StepTrace, run: Run) -> Iterator[MemoryPoint]:
    """The grid of the product's summaries, for the one way this run zeroes its gradients."""
    batch = 1
    while batch <= _LARGEST_BATCH:
        replayed = replay(
            trace, batch, accumulating=run.keeps_gradients, late_zero_grad=run.late_zero_grad, steps=2
        )
        yield MemoryPoint(
            batch=batch,
            accumulating=run.keeps_gradients,
            allocated_bytes=replayed.allocated_peak_bytes,
            reserved_bytes=replayed.reserved_peak_bytes,
            breakdown=replayed.breakdown,
            phase=replayed.phase,
            op=replayed.op,
        )
        states = sum(replayed.breakdown.get(name, 0) for name in STATES)
        if replayed.allocated_peak_bytes - states > _LARGEST_BYTES and batch > 1:
            return
        batch *= 2


def _trace(run: Run, variant: TraceVariant) -> StepTrace:
    from .tracing.tracer import trace_task

    return trace_task(task_of(run.trained, variant), variant)


def task_of(trained: Trained, variant: TraceVariant) -> TrainingTask:
    """What a published run trained, as the tracer takes it. Raises ModelsError where it cannot be built."""
    from .workloads import building

    if trained.reference is not None:
        from .calibration import reference_tasks
        from .calibration.reference_networks import litgpt, vision

        model, head = trained.reference
        if model in litgpt.SHAPES:
            return litgpt.task(model, head, variant.size)
        if model in vision.NETWORKS:
            return vision.task(model, variant.size)
        return reference_tasks.task(model, head, variant.size)
    base = workload(trained.base)
    builder = replace(
        base.builder,
        config={**base.builder.config, **trained.config},
        task_class=trained.task_class or base.builder.task_class,
        recipe=trained.recipe or base.builder.recipe,
    )
    if variant.attention_kernel == "math" and builder.attention == "fused":
        builder = replace(builder, attention="eager")  # before torch 2.0 modules wrote their score matrix
    return building.task(replace(base, builder=builder), variant.size)


@contextlib.contextmanager
def _functions_of(run: Run) -> Iterator[None]:
    """torch's functions as this run had them, by attribute so that recomputation sees them too."""
    if not (run.softmax_keeps_input or run.fused_loss):
        yield
        return
    try:
        from . import memory_functions
    except ImportError as error:
        raise NotCovered("needs torch to be traced") from error
    with contextlib.ExitStack() as stack:
        if run.softmax_keeps_input:
            stack.enter_context(memory_functions.softmax_that_keeps_its_input())
        if run.fused_loss:
            stack.enter_context(memory_functions.fused_cross_entropy())
        yield


def main() -> None:
    """Make the table for the rows that ship, from traces made now; minutes, needs torch."""
    from .validation_memory import SHIPPED_ROWS, read_rows, runs_of

    print(f"{make_features(runs_of(read_rows(SHIPPED_ROWS)))} features in {TABLE}")


if __name__ == "__main__":
    main()
