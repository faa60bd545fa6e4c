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
from .memory_runs import NotCovered, Run
from .tracing import summary as summaries
from .tracing.step_trace import StepTrace
from .tracing.summary import MemoryPoint, StepSummary
from .workloads import cache
from .workloads.zoo import workload

TABLE = Path(__file__).parent / "calibration" / "data" / "memory_features.json.gz"

_REMAKE = "make it again: python -m planner.models.memory_features"

# Past this no card of any row follows. [B]
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
    }
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


def feature(run: Run) -> StepSummary:
    """The summary of `run`. Raises NotCovered where it neither ships nor can be traced here."""
    name = key(run)
    shipped = _shipped().get(name)
    if shipped is not None:
        return summaries.from_json(shipped, name)
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
            table.setdefault(key(run), summaries.to_json(feature(run)))
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
    try:
        with _softmax_of(run):
            trace = _trace(run)
    except ModelsError as error:
        raise NotCovered(f"cannot be traced: {error}") from error
    plain = summaries.summarise(trace, memory=False)
    return replace(plain, work=(), memory=tuple(_points(trace, run)))


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
        if replayed.allocated_peak_bytes > _LARGEST_BYTES:
            return
        batch *= 2


def _trace(run: Run) -> StepTrace:
    from .tracing.tracer import trace_task
    from .workloads import building

    trained, variant = run.trained, run.variant
    if trained.reference is not None:
        from .calibration import reference_tasks

        model, head = trained.reference
        return trace_task(reference_tasks.task(model, head, variant.size), variant)
    base = workload(trained.base)
    builder = replace(
        base.builder,
        config={**base.builder.config, **trained.config},
        task_class=trained.task_class or base.builder.task_class,
        recipe=trained.recipe or base.builder.recipe,
    )
    if variant.attention_kernel == "math" and builder.attention == "fused":
        builder = replace(builder, attention="eager")  # before torch 2.0 modules wrote their score matrix
    return trace_task(building.task(replace(base, builder=builder), variant.size), variant)


@contextlib.contextmanager
def _softmax_of(run: Run) -> Iterator[None]:
    """torch's softmax as it was before 1.11: autograd kept its input beside its output."""
    if not run.softmax_keeps_input:
        yield
        return
    try:
        import torch
    except ImportError as error:
        raise NotCovered("needs torch to be traced") from error

    class KeepsInput(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, scores: Any, dim: int) -> Any:
            weights = torch.softmax(scores, dim)
            context.save_for_backward(scores, weights)
            context.dim = dim
            return weights

        @staticmethod
        def backward(context: Any, *gradients: Any) -> Any:
            scores, weights = context.saved_tensors
            back = torch._softmax_backward_data
            return back(gradients[0], weights, context.dim, scores.dtype), None

    def softmax(scores: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
        # Autocast runs softmax in fp32 and autograd keeps the cast input.
        return keeps_input(scores.float(), dim)

    keeps_input: Any = KeepsInput.apply
    functional: Any = torch.nn.functional
    original = functional.softmax
    functional.softmax = softmax
    try:
        yield
    finally:
        functional.softmax = original


def main() -> None:
    """Make the table for the rows that ship, from traces made now; minutes, needs torch."""
    from .validation_memory import SHIPPED_ROWS, read_rows, runs_of

    TABLE.unlink(missing_ok=True)
    _shipped.cache_clear()
    print(f"{make_features(runs_of(read_rows(SHIPPED_ROWS)))} features in {TABLE}")


if __name__ == "__main__":
    main()
