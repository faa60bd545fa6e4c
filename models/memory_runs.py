"""A row of measured memory, read as a run that can be traced, or the reason why it cannot.

The rows span seven years of torch; what its defaults did to memory is decided by version here, never by
looking at the measured figure. Which model, loop and versions a source used where its columns do not say:
calibration/data/memory_runs.toml.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from .errors import ModelsError, UnknownName
from .precision import policy_of
from .tracing.step_trace import AttentionKernel, TraceVariant

_FILE = Path(__file__).parent / "calibration" / "data" / "memory_runs.toml"

Figure = Literal["allocated", "reserved", "nvml", "bracket", "fits", "oom"]


@dataclass(frozen=True, slots=True)
class Trained:
    """What is trained: a workload of the zoo with what differs, or a reference network (model, head)."""

    base: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    task_class: str = ""
    recipe: str = ""
    reference: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One published run. figure: what its source states; failed_batch: the next rung of a bracket.

    keeps_gradients: they live through the whole step (accumulation, or zeroed in place before torch 2.0).
    softmax_keeps_input: autograd saved softmax's input beside its output, torch before 1.11
        (pytorch/pytorch#64000, mended by #65242).
    fused_loss: cross-entropy in one kernel that saves the logits as they are.
    gathers_in_half: FSDP's MixedPrecision hands 16-bit weights to the forward, so that activations are
        16-bit throughout, while shards, gradients and moments stay fp32.
    whole_gradients: FSDP's no_sync while accumulating: each unit's gradient is kept unsharded, and it spans
        the frozen weights that share a flat parameter with trained ones.
    adapters: only adapters are trained.
    """

    trained: Trained
    variant: TraceVariant
    gpu: str
    gpu_count: int
    strategy: str
    precision: str
    batch: int
    failed_batch: int | None
    figure: Figure
    cuda: str
    keeps_gradients: bool
    late_zero_grad: bool
    softmax_keeps_input: bool
    fused_loss: bool
    gathers_in_half: bool
    whole_gradients: bool = False
    adapters: bool = False


class NotCovered(ModelsError):
    """A row that is not scored; the text is the reason it is listed under. Never leaves validation."""


def read_run(row: Mapping[str, str]) -> Run:
    """The run behind a row of vram.csv. Raises NotCovered."""
    era = _era(row)
    gpu_count, strategy = _parallelism(row["parallelism"])
    _check_scope(row, era.framework)
    precision = _precision(row["precision"])
    adapted = _adapted(row, era)
    trained = adapted or _trained(row["model"])
    modern = era.torch >= (2, 0)
    sharded_adapters = era.adapters_with_no_sync and strategy == "fsdp"
    accumulates = "accumulation" in f"{row['notes']} {row['batch_per_gpu']}".casefold() or sharded_adapters
    return Run(
        trained=trained,
        variant=TraceVariant(
            precision_policy=policy_of(precision),
            attention_kernel=_kernel(row, precision) if modern else "math",
            activation_checkpointing=_checkpointing(row["grad_checkpointing"]) or sharded_adapters,
            optimizer=era.optimizer or _optimizer(row["optimizer"], modern),
            size=_size(row["seq_or_image"]),
        ),
        gpu=_gpu(row),
        gpu_count=gpu_count,
        strategy=strategy,
        precision=precision,
        batch=_count(row["batch_per_gpu"], "batch size not stated"),
        failed_batch=_failed_batch(row["fits"]),
        figure=era.figure or _figure(row),
        cuda=era.cuda,
        keeps_gradients=accumulates or not modern,
        late_zero_grad=era.late_zero_grad,
        softmax_keeps_input=era.torch < (1, 11),
        fused_loss=era.fused_loss,
        gathers_in_half=strategy == "fsdp" and policy_of(precision) == "amp",
        whole_gradients=sharded_adapters,
        adapters=adapted is not None,
    )


@dataclass(frozen=True, slots=True)
class _Era:
    torch: tuple[int, ...]
    cuda: str
    framework: str
    optimizer: str
    late_zero_grad: bool
    fused_loss: bool
    figure: Figure | None
    adapters: Mapping[str, str]
    adapters_with_no_sync: bool


def _era(row: Mapping[str, str]) -> _Era:
    framework = row["framework"]
    said: Mapping[str, Any] = _table()["source"].get(row["source_group"]) or next(
        (known for text, known in _table()["framework"].items() if text in framework), {}
    )
    torch = said.get("torch") or _first(r"torch[ ~=]*(\d+\.\d+)", framework) or "2.6"
    version = tuple(int(part) for part in torch.split("."))
    cuda = said.get("cuda") or _first(r"CUDA (\d+\.\d+)", framework) or _wheel(framework)
    if not cuda:
        cuda = "12.4" if version >= (2, 1) else "11.7" if version >= (1, 13) else "11.3"
    return _Era(
        torch=version,
        cuda=cuda,
        framework=framework,
        optimizer=said.get("optimizer", ""),
        late_zero_grad=said.get("late_zero_grad", False),
        fused_loss=said.get("fused_loss", False),
        figure=said.get("figure"),
        adapters=said.get("adapters", {}),
        adapters_with_no_sync=said.get("adapters_with_no_sync", False),
    )


def _wheel(framework: str) -> str:
    found = re.search(r"cu(\d\d)(\d)\b", framework)
    return f"{found[1]}.{found[2]}" if found else ""


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.IGNORECASE)
    return found[1] if found else ""


def _check_scope(row: Mapping[str, str], framework: str) -> None:
    if "tensorflow" in framework.casefold():
        raise NotCovered("TensorFlow")
    if "compile" in framework.casefold():
        raise NotCovered("torch.compile changes what is saved for backward")


def _parallelism(text: str) -> tuple[int, str]:
    """GPUs and strategy; a run "on 1 and 8 GPUs" is held to the 8."""
    if re.search(r"TP|PP|CP|offload", text):
        raise NotCovered("tensor, pipeline or context parallelism, or offload")
    counts = [int(count) for count in re.findall(r"\d+", re.sub(r"ZeRO-?\d", "ZeRO", text))]
    if re.search(r"ZeRO-?[12]", text):
        raise NotCovered("ZeRO stages 1 and 2 are not estimated yet")
    sharded = re.search(r"FSDP|FULL_SHARD|ZeRO", text)
    return max(counts, default=1), "fsdp" if sharded else "ddp"


_METHODS = (("adapter v2", "adapter_v2"), ("adapter", "adapter"), ("lora", "lora"))


def _adapted(row: Mapping[str, str], era: _Era) -> Trained | None:
    """The network and method of a row that trains adapters; None where it trains all weights."""
    said = row["method"].casefold()
    method = next((name for text, name in _METHODS if text in said), None)
    if method is None:
        return None
    if row["model"] not in era.adapters:
        raise NotCovered("adapters whose rank and targets are not known")
    packed = _first(r"bnb\.(nf4-dq|nf4)", row["precision"])
    return Trained(reference=(era.adapters[row["model"]], f"{method}+{packed}" if packed else method))


_PRECISIONS = (
    (r"bf16-true \+ bnb\.nf4", "bf16"),  # packed weights, products in bf16
    (r"nf4|int8|4bit|8bit", ""),
    (r"float8|fp8|nvfp4|mxfp8", ""),
    (r"tf32", "tf32"),
    (r"bf16 pure", "bf16-amp"),  # llm-foundry: FSDP reduces in 16 bits, its shards are still fp32
    (r"bf16.?true|^bf16$|pure bf16", "bf16"),
    (r"fp16.?true|^fp16 \(pure", "fp16"),
    (r"bf16", "bf16-amp"),
    (r"fp16|amp|mixed", "fp16-amp"),
    (r"fp32|float32", "fp32"),
)


def _precision(text: str) -> str:
    for pattern, precision in _PRECISIONS:
        if re.search(pattern, text.casefold()):
            if not precision:
                raise NotCovered("quantised or 8-bit arithmetic")
            return precision
    raise NotCovered("precision not stated")


def _kernel(row: Mapping[str, str], precision: str) -> AttentionKernel:
    from .hardware.catalogue import gpu

    return gpu(_gpu(row)).attention_kernel(precision)


def _checkpointing(text: str) -> bool:
    said = text.casefold()
    if said.startswith("selective"):
        raise NotCovered("selective checkpointing is not traced yet")
    return said.startswith(("yes", "full", "true"))


def _optimizer(text: str, modern: bool) -> str:
    said = text.casefold()
    if "8bit" in said or "8-bit" in said:
        return "adamw-8bit"
    for name, optimizer in (
        *(("fusedlamb", "lamb-fused"), ("fusedadam", "adam-fused"), ("adafactor", "adafactor-transformers")),
        *(("adamw", "adamw-foreach" if modern else "adamw-loop"), ("sgd", "sgd-foreach")),
        ("adam", "adam-foreach" if modern else "adamw-loop"),
    ):
        if name in said:
            return optimizer
    raise NotCovered(f"optimizer not known: {text}" if text else "optimizer not stated")


def _size(text: str) -> int:
    longest = _first(r"longest (\d+) tokens", text)
    if longest:
        return int(longest)
    sides = re.fullmatch(r"(\d+)x(\d+)", text.strip())
    if sides:
        if sides[1] != sides[2]:
            raise NotCovered("images that are not square")
        return int(sides[1])
    return _count(text, "sequence length or image size not stated")


def _count(text: str, reason: str) -> int:
    found = re.fullmatch(r"(\d+)(\D.*)?", text.strip())
    if not found or (found[2] and found[2].lstrip().startswith(("or", "-"))):
        raise NotCovered(reason)
    return int(found[1])


def _failed_batch(text: str) -> int | None:
    found = re.search(r"(\d+) failed", text)
    return int(found[1]) if found else None


def _figure(row: Mapping[str, str]) -> Figure:
    kind, what = row["kind"], row["what_is_measured"].casefold()
    if kind == "max_batch_bracket":
        return "bracket"
    if kind in ("fits", "max_batch"):
        return "fits"
    if kind == "oom":
        return "oom"
    if kind != "measured":
        raise NotCovered(f"kind of row not known: {kind}")
    if "nvml" in what or "nvidia-smi" in what:
        return "nvml"
    if "reserved" in what:
        return "reserved"
    if "allocated" in what or "active" in what or "training memory" in what:
        return "allocated"
    raise NotCovered("what was measured is not known")


def _trained(label: str) -> Trained:
    from .workloads.zoo import workload

    said = _table()["model"].get(label)
    if said is not None:
        reference = said.get("reference")
        return Trained(
            base=said.get("base", ""),
            config=said.get("config", {}),
            task_class=said.get("task_class", ""),
            recipe=said.get("recipe", ""),
            reference=(reference[0], reference[1]) if reference else None,
        )
    try:
        return Trained(base=workload(label).id)
    except UnknownName as error:
        raise NotCovered(f"no class for the model: {label}") from error


def _gpu(row: Mapping[str, str]) -> str:
    from .hardware.catalogue import gpu

    try:
        return gpu(_table()["card"].get(row["gpu"], row["gpu"])).id
    except UnknownName as error:
        raise NotCovered(f"card not in the catalogue: {row['gpu']}") from error


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))
