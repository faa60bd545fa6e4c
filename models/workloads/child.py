"""The process that a user's factory runs in: `python -P -m planner.models.workloads.child REQUEST ANSWER`.

Reads a JSON request, writes a JSON answer: descriptions and traces, or {"error": one line}. Whatever the
user's code prints goes nowhere.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import resource
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..errors import BadConfig, ModelsError
from ..tracing import step_trace
from ..tracing.step_trace import TraceVariant
from ..tracing.task import TrainingTask

if TYPE_CHECKING:
    from torch import Tensor, nn

# Names of forward() that say what they want; anything else needs --input-shape.
_TOKEN_NAMES = ("input_ids", "tokens", "token_ids", "ids", "idx")
_IMAGE_NAMES = ("pixel_values", "images", "image")
_USUAL_TOKENS = 512
_USUAL_PIXELS = 224


def main(request_path: str, answer_path: str) -> None:
    request = json.loads(Path(request_path).read_text(encoding="utf-8"))

    def write(answer: Mapping[str, Any]) -> None:
        partial = Path(answer_path + ".partial")
        partial.write_text(json.dumps(answer), encoding="utf-8")
        partial.replace(answer_path)

    def write_error(kind: type[BaseException], error: BaseException, trail: TracebackType | None) -> None:
        # Their code may raise anything at all; ours says what and where itself.
        place = "" if isinstance(error, ModelsError) else _where(trail, request["directory"])
        name = "" if isinstance(error, ModelsError) else f"{kind.__name__}: "
        write({"error": " ".join(f"{name}{error}{place}".split())[:500]})

    sys.excepthook = write_error
    write(answer_to(request))


def answer_to(request: Mapping[str, Any]) -> dict[str, Any]:
    """Traces of the asked variants, and what the planner must know of the module."""
    from ..tracing.tracer import trace_task

    factory = _load(request["spec"], request["directory"])
    assumptions: list[str] = []
    traces = []
    for body in request["variants"]:
        variant = TraceVariant(**body)
        made = _made(factory, request["spec"])
        task = _task(made, request, variant, assumptions)
        traces.append(trace_task(task, variant))
    last = _made(factory, request["spec"]).module
    return {
        "description": {
            "class": type(last).__name__,
            "activation_checkpointing": hasattr(last, "gradient_checkpointing_enable")
            and getattr(last, "supports_gradient_checkpointing", True) is not False,
            "size": _usual_size(request, _signature(last)),
            "assumptions": list(dict.fromkeys(assumptions)),
            "sources": _sources_hash(request["directory"]),
        },
        "traces": [step_trace.to_json(trace) for trace in traces],
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


@dataclass
class _Made:
    """What a factory returned."""

    module: nn.Module
    inputs: Callable[[int], Any] | None = None
    loss: Callable[[nn.Module, Any], Tensor] | None = None
    notes: list[str] = field(default_factory=list)


def _load(spec: str, directory: str) -> Callable[[], Any]:
    module_name, _, name = spec.partition(":")
    sys.path.insert(0, directory)
    found = getattr(importlib.import_module(module_name), name, None)
    if not callable(found):
        raise BadConfig(f"module {module_name} has no function {name}")
    factory: Callable[[], Any] = found
    return factory


def _made(factory: Callable[[], Any], spec: str) -> _Made:
    import torch
    from torch import nn

    with torch.device("meta"):
        returned = factory()
    parts = returned if isinstance(returned, tuple) else (returned,)
    if not 1 <= len(parts) <= 3 or not isinstance(parts[0], nn.Module):
        kinds = ", ".join(type(part).__name__ for part in parts)
        raise BadConfig(f"it must return an nn.Module or (module, inputs_fn, loss_fn), not {kinds}")
    made = _Made(*parts)
    # A factory that names a device of its own still builds on the CPU; only the shapes are needed.
    made.module.to("meta")
    if not any(parameter.requires_grad for parameter in made.module.parameters()):
        raise BadConfig(f"{type(made.module).__name__} has no parameter that is trained")
    return made


def _task(
    made: _Made, request: Mapping[str, Any], variant: TraceVariant, assumptions: list[str]
) -> TrainingTask:
    signature = _signature(made.module)
    make_inputs = made.inputs

    def inputs(batch: int) -> dict[str, Tensor]:
        if make_inputs is not None:
            return _named(make_inputs(batch), signature)
        return _assumed_inputs(batch, request, signature, variant.size, assumptions)

    def loss(module: nn.Module, values: Mapping[str, Tensor]) -> Tensor:
        if made.loss is not None:
            return made.loss(module, values)
        return _assumed_loss(module(**values), assumptions)

    module = made.module
    return TrainingTask(request["spec"], lambda _: module, inputs, loss, variant.size)


def _signature(module: nn.Module) -> list[str]:
    names = []
    for name, parameter in inspect.signature(module.forward).parameters.items():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        names.append(name)
    return names


def _named(given: Any, signature: list[str]) -> dict[str, Tensor]:
    """Their inputs as keyword tensors on the meta device."""
    import torch

    if isinstance(given, torch.Tensor):
        given = (given,)
    if not isinstance(given, Mapping):
        given = dict(zip(signature, given, strict=False))
    return {
        name: value.to("meta") if isinstance(value, torch.Tensor) else value for name, value in given.items()
    }


def _assumed_inputs(
    batch: int, request: Mapping[str, Any], signature: list[str], size: int | None, assumptions: list[str]
) -> dict[str, Tensor]:
    import torch

    first = signature[0] if signature else ""
    shape: list[int] | None = request["shape"]
    tokens = request["vocab_size"] is not None or first in _TOKEN_NAMES
    if shape is None and not tokens and first not in _IMAGE_NAMES:
        raise BadConfig(
            f"forward({', '.join(signature)}) does not say what it takes: "
            'give --input-shape, such as "3x224x224", or return (module, inputs_fn)'
        )
    if tokens:
        length = size or (shape[0] if shape else _USUAL_TOKENS)
        assumptions.append(f"inputs: sequences of {length:,} token ids")
        ids = torch.empty(batch, length, dtype=torch.long, device="meta")
        labels = {"labels": torch.empty_like(ids)} if "labels" in signature else {}
        return {first: ids, **labels}
    sides = shape or [3, _USUAL_PIXELS, _USUAL_PIXELS]
    if size is not None and len(sides) == 3:
        sides = [sides[0], size, size]
    assumptions.append(f"inputs: floats of shape {'x'.join(map(str, sides))}")
    labels = {"labels": torch.empty(batch, dtype=torch.long, device="meta")} if "labels" in signature else {}
    return {first: torch.empty(batch, *sides, device="meta"), **labels}


def _assumed_loss(output: Any, assumptions: list[str]) -> Tensor:
    """The loss a module gives itself, else cross entropy over the last axis, else a mean square."""
    import torch
    from torch.nn import functional

    own = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if isinstance(own, torch.Tensor):
        return own
    if isinstance(output, tuple | list):
        output = output[0]
    if not isinstance(output, torch.Tensor):
        output = getattr(output, "logits", None)
    if not isinstance(output, torch.Tensor):
        raise BadConfig("forward() returns no tensor and no .loss: return (module, inputs_fn, loss_fn)")
    if output.dim() == 0:
        return output
    if output.dim() in (2, 3) and output.shape[-1] > 1:
        assumptions.append("loss: cross entropy over the last axis of the output")
        flat = output.reshape(-1, output.shape[-1])
        return functional.cross_entropy(flat, torch.empty(flat.shape[0], dtype=torch.long, device="meta"))
    assumptions.append("loss: mean square of the output")
    return output.square().mean()


def _usual_size(request: Mapping[str, Any], signature: list[str]) -> int | None:
    shape = request["shape"]
    first = signature[0] if signature else ""
    if request["vocab_size"] is not None or first in _TOKEN_NAMES:
        return shape[0] if shape else _USUAL_TOKENS
    if shape is None and first in _IMAGE_NAMES:
        return _USUAL_PIXELS
    return shape[-1] if shape and len(shape) == 3 and shape[1] == shape[2] else None


def _sources_hash(directory: str) -> str:
    """sha256 over their loaded source files, so that a cached trace is not read after an edit."""
    content = hashlib.sha256()
    root = Path(directory)
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    for path in sorted(Path(file) for file in files if file):
        if path.is_relative_to(root) and path.suffix == ".py":
            content.update(str(path).encode() + path.read_bytes())
    return content.hexdigest()


def _where(trail: TracebackType | None, directory: str) -> str:
    """ " (net.py, line 12)" of the innermost frame in their directory."""
    place = ""
    while trail is not None:
        path = Path(trail.tb_frame.f_code.co_filename)
        if path.is_absolute() and path.is_relative_to(directory):
            place = f" ({path.relative_to(directory)}, line {trail.tb_lineno})"
        trail = trail.tb_next
    return place


if __name__ == "__main__":
    main(*sys.argv[1:])
