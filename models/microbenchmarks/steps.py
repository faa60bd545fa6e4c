"""Real training steps with random weights and data, and the same steps traced: to hold predictions to."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..tracing.step_trace import AttentionKernel, PrecisionPolicy, StepTrace, TraceVariant
from ..workloads import building
from ..workloads.records import Workload
from . import environment
from .timing import Stats, stats_of

if TYPE_CHECKING:
    from torch import Tensor, nn

# Names under which transformers' configurations keep the dropout of attention weights.
_ATTENTION_DROPOUTS = (
    "attention_probs_dropout_prob", "attn_pdrop", "attention_dropout", "attention_probs_dropout",
)  # fmt: skip
_BOUNDS = {"input_ids": "vocab_size", "tokens": "vocab_size", "next_tokens": "vocab_size"}


@dataclass(frozen=True, slots=True)
class StepCase:
    """One step to run. size: tokens or pixels; optimizer: a kind of optimizer_step.py, or "none"."""

    workload: Workload
    batch: int
    size: int | None
    optimizer: str
    precision: str = "fp32"
    checkpointing: bool = False

    @property
    def name(self) -> str:
        size = "" if self.size is None else f"/s{self.size}"
        rest = "" if self.precision == "fp32" else f"/{self.precision}"
        return f"{self.workload.id}{size}/b{self.batch}{rest}{'/ckpt' if self.checkpointing else ''}"


@dataclass(frozen=True, slots=True)
class MeasuredStep:
    """Seconds of repeated steps. peak_bytes: of the allocator on a card, None on a CPU."""

    stats: Stats
    peak_bytes: int | None


def cpu_attention(workload: Workload) -> AttentionKernel:
    """Which attention a CPU runs in training: unfused where attention weights are dropped, else fused."""
    if workload.builder.attention == "none":
        return "none"
    if workload.builder.attention == "eager" or workload.builder.route != "transformers":
        return "math"
    config = building.library_config(workload.builder, workload.builder.config)
    dropped = any(float(getattr(config, name, 0.0) or 0.0) > 0 for name in _ATTENTION_DROPOUTS)
    return "math" if dropped else "efficient"


def dropout_of(workload: Workload) -> float:
    """The probability of the workload's dropouts, as its configuration has it; 0.1 where it says nothing."""
    config = workload.builder.config
    named = ("dropout", "hidden_dropout_prob", "resid_pdrop")
    return next((float(config[name]) for name in named if name in config), 0.1)


def trace_for_cpu(case: StepCase) -> StepTrace:
    """The step's ops as a CPU runs them, at exactly its batch: dropout in three ops, no optimizer."""
    from ..tracing.tracer import trace_task

    task = building.task(case.workload, case.size)
    variant = TraceVariant("fp32", cpu_attention(case.workload), case.checkpointing, "none", task.size)
    # The second batch is the one whose shapes the rows show. At a batch of one some copies fall away, so that
    # no line runs through it and others: such a step is scaled down from two and four.
    batches = (2 * case.batch, case.batch) if case.batch > 1 else (2, 4)
    return trace_task(task, variant, batches, fused_dropout=False)


def trace_for_card(case: StepCase) -> StepTrace:
    """The step's ops as a card runs them, at exactly its batch, its optimizer included."""
    from ..tracing.tracer import trace_task

    task = building.task(case.workload, case.size)
    policy: PrecisionPolicy = "amp" if case.precision.endswith("-amp") else "fp32"
    kernel: AttentionKernel = "flash" if policy == "amp" else "efficient"
    kernels: dict[str, AttentionKernel] = {"none": "none", "eager": "math", "fused": kernel}
    attention = kernels[case.workload.builder.attention]
    variant = TraceVariant(policy, attention, case.checkpointing, case.optimizer, task.size)
    batches = (2 * case.batch, case.batch) if case.batch > 1 else (2, 4)
    return trace_task(task, variant, batches)


def build_step(case: StepCase, device: str) -> Callable[[], object]:
    """The step as a call: forward, loss, backward, update, gradients set to None."""
    import torch

    torch.manual_seed(0)
    task = building.task(case.workload, case.size)
    builder = case.workload.builder
    model = building.build_module(builder, builder.task_class, case.workload.id, task.size, device)
    model.to(device).train()
    if case.checkpointing:
        model.gradient_checkpointing_enable()  # type: ignore[operator]
    inputs = real_inputs(task.inputs(case.batch), building.sized_config(builder, task.size), device)
    optimizer = optimizer_for(case.optimizer, model)
    low = {"bf16-amp": torch.bfloat16, "fp16-amp": torch.float16}.get(case.precision)

    def step() -> object:
        with torch.autocast(device, dtype=low, enabled=low is not None):
            loss = task.loss(model, inputs)
        loss.backward()  # type: ignore[no-untyped-call]
        del loss
        if optimizer is not None:
            optimizer.step()
        model.zero_grad(set_to_none=True)
        return None

    return step


def optimizer_for(kind: str, model: nn.Module) -> Any:
    """A torch optimizer of a kind such as "adamw-loop"; None for "none"."""
    import torch

    name, _, form = kind.rpartition("-")
    flags: dict[str, Any] = {"foreach": form == "foreach", "fused": form == "fused"}
    if kind == "none":
        return None
    if name == "adamw":
        return torch.optim.AdamW(model.parameters(), lr=1e-5, **flags)
    return torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, weight_decay=1e-4, **flags)


def real_inputs(shapes: Mapping[str, Tensor], config: Mapping[str, Any], device: str) -> dict[str, Tensor]:
    """Random tensors of those shapes: token ids over the whole vocabulary, labels within the classes."""
    import torch

    made = {}
    for name, shape in shapes.items():
        if shape.is_floating_point():
            made[name] = torch.randn(shape.shape, device=device)
            continue
        made[name] = torch.randint(0, _bound(name, shape.shape, config), shape.shape, device=device)
    return made


def _bound(name: str, shape: Any, config: Mapping[str, Any]) -> int:
    if name in _BOUNDS:
        return int(config[_BOUNDS[name]])
    if name == "labels" and len(shape) > 1:
        return int(config["vocab_size"])
    if name in ("labels", "label") and "num_labels" in config:
        return int(config["num_labels"])
    return 2  # positions and small label sets: in range everywhere


def measure_step(case: StepCase, device: str, *, repeats: int, seconds: float) -> MeasuredStep:
    """Run the step until `repeats` are done or `seconds` [s] have passed, at least twice, after one warm-up.

    CPU: process CPU time, one thread, as set by the caller. CUDA: events around each step.
    """
    import torch

    from .timing import CpuClock, CudaClock

    clock = CpuClock() if device == "cpu" else CudaClock()
    before = torch.cuda.memory_allocated() if device == "cuda" else 0
    with environment.tf32(case.precision != "fp32"):
        step = build_step(case, device)
        step()
        if device == "cuda":
            step()  # the first one chose kernels and made optimizer state
            torch.cuda.reset_peak_memory_stats()
        end = time.monotonic() + seconds
        spent: list[float] = []
        while len(spent) < repeats and (len(spent) < 2 or time.monotonic() < end):
            spent.append(clock.seconds([step], 1))
    peak = torch.cuda.max_memory_allocated() - before if device == "cuda" else None
    del step
    gc.collect()
    return MeasuredStep(stats_of(spent), peak)
