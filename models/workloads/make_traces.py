"""Trace the zoo and write what ships: `python -m planner.models.workloads.make_traces [--missing] [ID …]`.

Per workload: `traces/<id>/summary.json` with every variant that planning asks for, and the whole traces
beside it. About 10 s per variant of a large model; all of it takes a quarter of an hour on two cores.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from ..tracing import step_trace
from ..tracing import summary as summaries
from ..tracing.adapter_spec import USUAL_ADAPTER
from ..tracing.step_trace import AttentionKernel, PrecisionPolicy, TraceVariant
from . import cache, store, zoo
from .records import Workload

# Above this, fp32 training needs more than 50 GB for weights, gradients and moments, and nobody does it.
_LARGEST_FP32_PARAMETERS = 3_500_000_000
# From here on pure 16-bit training is usual. [parameters]
_SMALLEST_HALF_PARAMETERS = 1_000_000_000
# Whole traces of the largest models are 30 to 75 kB each; two of them ship, and all summaries.
_ALL_TRACES_PARAMETERS = 3_500_000_000

# Decoders whose attention has the q_proj and v_proj that adapters go to, all weights in nn.Linear.
_SPLIT_ATTENTION = ("LlamaConfig", "MistralConfig", "Qwen2Config")

_KERNELS: dict[PrecisionPolicy, tuple[AttentionKernel, ...]] = {
    "fp32": ("efficient",),
    "amp": ("flash", "efficient"),
    "half": ("flash", "efficient"),
}


def variants_of(workload: Workload) -> tuple[TraceVariant, ...]:
    """The variants that ship: what a plan on any card asks for at the workload's usual sizes."""
    reference = workload.reference
    assert reference is not None
    found = {
        store.variant_of(
            workload,
            TraceVariant(policy, kernel, checkpointing, reference.optimizer, size),
        ): None
        for size in (workload.default_size, *workload.more_sizes)
        for policy in _policies(workload)
        for kernel in _KERNELS[policy]
        for checkpointing in (False, True)
    }
    return (*found, *_adapted(workload), *_lean(workload))


def _adapted(workload: Workload) -> Iterator[TraceVariant]:
    """LoRA and QLoRA of models too large to train whole on one card, as levers offer them."""
    if workload.parameters < _ALL_TRACES_PARAMETERS or workload.builder.config_class not in _SPLIT_ATTENTION:
        return
    assert workload.reference is not None
    for packed in ("", "-nf4-dq"):
        for checkpointing in (False, True):
            yield TraceVariant(
                "half",
                "flash",
                checkpointing,
                workload.reference.optimizer,
                workload.default_size,
                USUAL_ADAPTER + packed,
            )


def _lean(workload: Workload) -> Iterator[TraceVariant]:
    """Optimizers that need less memory, for models whose states fill a card, as levers offer them."""
    reference = workload.reference
    if workload.parameters < _ALL_TRACES_PARAMETERS or reference is None:
        return
    if reference.optimizer != "adamw-foreach":
        return
    for optimizer in ("adamw-fused", "adamw-8bit"):
        for checkpointing in (False, True):
            yield store.variant_of(
                workload, TraceVariant("half", "flash", checkpointing, optimizer, workload.default_size)
            )


def _policies(workload: Workload) -> Iterator[PrecisionPolicy]:
    if workload.parameters <= _LARGEST_FP32_PARAMETERS:
        yield "fp32"
    yield "amp"
    if workload.parameters >= _SMALLEST_HALF_PARAMETERS:
        yield "half"


def ships_whole(workload: Workload, variant: TraceVariant) -> bool:
    """Whether the trace ships, beside the summary that always does."""
    if variant.size != workload.default_size or variant.adapter or variant in _lean(workload):
        return False
    if workload.parameters <= _ALL_TRACES_PARAMETERS:
        return True
    return variant.precision_policy == "half" and variant.attention_kernel != "efficient"


def make(workload: Workload, only_missing: bool = False, folder: Path = store.SHIPPED) -> int:
    """Trace that workload and write its files, replacing what was there. Returns the bytes there now.

    only_missing: keep the variants that ship already, and trace the others.
    """
    target = folder / workload.id
    target.mkdir(parents=True, exist_ok=True)
    shipped = set(store.shipped_variants(workload)) if only_missing else set()
    kept = {store.SUMMARY_FILE}
    bodies: list[str] = []
    for variant in variants_of(workload):
        path = target / f"{variant.key}.json.gz"
        if variant in shipped:
            summary = store.summary(workload, variant)
        else:
            trace = store.trace_now(workload, variant)
            summary = summaries.summarise(trace)
            if ships_whole(workload, variant):
                step_trace.write(trace, path)
        kept.add(path.name)
        body = json.dumps(summaries.to_json(summary), separators=(",", ":"))
        bodies.append(f"{json.dumps(variant.key)}: {body}")
    head = {"schema_version": store.SUMMARY_SCHEMA, "versions": cache.versions()}
    # One line per variant: a change of one is one line of a diff.
    text = json.dumps(head)[:-1] + ', "variants": {\n' + ",\n".join(bodies) + "\n}}\n"
    partial = target / (store.SUMMARY_FILE + ".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(target / store.SUMMARY_FILE)
    for path in target.iterdir():
        if path.name not in kept:
            path.unlink()
    return sum(path.stat().st_size for path in target.iterdir())


def changed(workload: Workload, variants: Iterable[TraceVariant]) -> list[str]:
    """Keys of those variants whose step, traced and replayed again, is not the one that ships."""
    shipped = {body.key: body for body in store.shipped_variants(workload)}
    found: list[str] = []
    for variant in variants:
        again = summaries.summarise(store.trace_now(workload, variant))
        if variant.key not in shipped or store.summary(workload, variant) != again:
            found.append(variant.key)
    return found


def _make_named(identifier: str, only_missing: bool) -> int:
    return make(zoo.workload(identifier), only_missing)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", nargs="*", help="workloads to trace (default: all)")
    parser.add_argument("--missing", action="store_true", help="keep what ships, trace only what does not")
    parser.add_argument("--jobs", type=int, default=2, help="processes; each needs about 1 GiB")
    asked = parser.parse_args()
    chosen = [zoo.workload(name) for name in asked.ids] or list(zoo.workloads())
    total, failed = 0, 0
    with ProcessPoolExecutor(asked.jobs) as pool:
        running = {pool.submit(_make_named, workload.id, asked.missing): workload.id for workload in chosen}
        for done in as_completed(running):
            error = done.exception()
            if error is None:
                total += done.result()
                print(f"{running[done]}: {done.result() / 1000:,.0f} kB", flush=True)
            else:
                failed += 1
                print(f"{running[done]}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} workloads, {total / 1e6:.1f} MB")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
