"""trace_task: run one training step on the meta device and write it down as a StepTrace.

The step is run three times with one model: once to create the optimizer's state, then recorded at each of two
batches. Both recordings must be the same sequence of ops and of allocations; sizes are then affine in batch.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..errors import BadConfig, TraceUnavailable
from . import adapter_spec, assemble
from .step_trace import StepTrace, TraceVariant
from .task import TrainingTask

if TYPE_CHECKING:
    import torch
    from torch import nn

    from .recorder import Recorder, Recording
    from .rewrites import CudaChoices


def trace_task(
    task: TrainingTask,
    variant: TraceVariant,
    batches: tuple[int, int] = (2, 4),
    *,
    fused_dropout: bool = True,
) -> StepTrace:
    """Trace one steady training step of `task` under `variant`.

    batches: the two micro-batches traced; a step's sizes are taken to be affine between and beyond them.
    fused_dropout: as CUDA runs it, with a mask of one byte per element. False leaves CPU's three ops, whose
        mask has the input's type: for comparing with tools that trace those (torch's MemTracker).
    Loop modelled: load inputs, forward, loss, backward, optimizer step, zero_grad(set_to_none=True).
    Raises TraceUnavailable without torch, BadConfig where the step depends on its data or on the batch,
    UnknownName for an optimizer nobody knows.
    """
    try:
        import torch
    except ImportError as error:
        raise TraceUnavailable(
            f'"{task.workload}" has no stored trace for this variant and torch is not installed: '
            "pip install 'training-planner[trace]'"
        ) from error
    from . import adapters, optimizers
    from .recorder import SCALAR_POLICY, Recorder
    from .rewrites import CudaChoices

    recorder = Recorder()
    choices = CudaChoices(variant, recorder, fused_dropout)
    with _no_collection(), optimizers.fused_on_meta(), choices.imposed(), torch.device("meta"):
        model = _prepared(task.build(variant), variant)
        if variant.adapter:
            adapters.apply(model, adapter_spec.parse(variant.adapter))
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        with recorder:
            _track_model(model, recorder)
            optimizer = optimizers.build(variant.optimizer, parameters, recorder)
            recordings: list[Recording] = []
            gradient_bytes = 0
            with _values_are_missing(task.workload):
                for _ in range(optimizers.STEPS_TO_SETTLE.get(variant.optimizer, 1)):
                    _step(task, model, optimizer, batches[0], recorder, choices)
                _file_survivors(optimizer, recorder)
                _collect_cycles(recorder)
                for batch in batches:
                    recorder.start()
                    gradient_bytes = _step(task, model, optimizer, batch, recorder, choices)
                    recordings.append(recorder.stop())
                    _collect_cycles(recorder)
    if variant.activation_checkpointing and not choices.checkpointed:
        raise BadConfig(f"{type(model).__name__} never calls torch.utils.checkpoint: nothing to recompute")
    notes = [*task.notes]
    if recorder.scalars_answered:
        notes.append(SCALAR_POLICY)
    return assemble.affine_trace(
        task.workload,
        variant,
        batches,
        recordings,
        parameters=adapters.counted_parameters(model),
        trainable_parameters=sum(parameter.numel() for parameter in parameters),
        gradient_bytes=gradient_bytes,
        rewrites=sorted(choices.applied),
        notes=notes,
    )


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the cycle collector out: frees must come from reference counts, at the same place twice."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _collect_cycles(recorder: Recorder) -> None:
    """Between steps, let go of what only reference cycles keep; slow, so only where something is left."""
    if any(record.category not in ("weights", "optimizer_state") for record in recorder.alive()):
        gc.collect()


@contextlib.contextmanager
def _values_are_missing(workload: str) -> Iterator[None]:
    """Say so plainly where the step asks a tensor for values (`.numpy()`, `.tolist()`, a copy to the CPU)."""
    try:
        yield
    except (NotImplementedError, RuntimeError, TypeError) as error:
        first_line = str(error).split("\n", 1)[0]
        if "meta" not in first_line.lower():
            raise
        raise BadConfig(
            f"{workload}: the step depends on its data, which a trace does not have ({first_line[:200]}); "
            "choose a code path with fixed shapes"
        ) from error


def _prepared(model: nn.Module, variant: TraceVariant) -> nn.Module:
    """Cast for the policy and switch activation checkpointing on."""
    import torch

    model.train()
    if variant.precision_policy == "half":
        model.to(torch.bfloat16)
    if variant.activation_checkpointing:
        enable = getattr(model, "activation_checkpointing_enable", None)  # the name from transformers 5 on
        enable = enable or getattr(model, "gradient_checkpointing_enable", None)
        if enable is None:
            raise BadConfig(
                f"{type(model).__name__} has no gradient_checkpointing_enable(); trace it without "
                "activation_checkpointing or give it that method"
            )
        if getattr(model, "supports_gradient_checkpointing", True) is False:
            raise BadConfig(f"{type(model).__name__} does not support activation checkpointing")
        config = getattr(model, "config", None)
        if getattr(config, "use_cache", False):
            config.use_cache = False  # type: ignore[union-attr]  # transformers would, with a warning
        enable()
    return model


def _track_model(model: nn.Module, recorder: Recorder) -> None:
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if tensor.device.type != "meta":
            raise BadConfig(
                f"{name} of {type(model).__name__} is on {tensor.device}; build it on the meta device"
            )
        recorder.track(tensor, "load")
        recorder.categorise([tensor], "weights")


def _step(
    task: TrainingTask,
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None,
    batch: int,
    recorder: Recorder,
    choices: CudaChoices,
) -> int:
    """One training step; returns the bytes of its gradients."""
    import torch

    recorder.enter("forward")
    inputs = task.inputs(batch)
    if choices.variant.precision_policy == "half":
        inputs = {k: v.to(torch.bfloat16) if v.is_floating_point() else v for k, v in inputs.items()}
    for tensor in inputs.values():
        recorder.track(tensor, "load")
    recorder.categorise(inputs.values(), "inputs")
    with choices.autocast():
        loss = task.loss(model, inputs)
    for record in recorder.alive():  # what forward made and backward still needs
        if not record.category:
            record.category = "activations"
    recorder.enter("backward")
    loss.backward()  # type: ignore[no-untyped-call]
    del loss
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    recorder.categorise(gradients, "gradients")
    gradient_bytes = sum(gradient.nbytes for gradient in gradients)
    del gradients
    recorder.enter("optimizer")
    if optimizer is not None:
        optimizer.step()
    model.zero_grad(set_to_none=True)
    return gradient_bytes


def _file_survivors(optimizer: torch.optim.Optimizer | None, recorder: Recorder) -> None:
    """What the first step leaves behind is optimizer state, or something the model keeps."""
    import torch

    if optimizer is not None:
        for state in optimizer.state.values():
            recorder.categorise(
                [value for value in state.values() if isinstance(value, torch.Tensor)], "optimizer_state"
            )
    for record in recorder.alive():
        if record.category not in ("weights", "optimizer_state"):
            record.category = "temporaries"
