"""From a workload's plain values to a module on the meta device, and to the task that is traced."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from ..errors import BadConfig, ModelsError, TraceUnavailable
from ..tracing.task import TrainingTask
from . import recipes
from .records import Builder, Workload

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ..tracing.step_trace import TraceVariant

# Without these a plan still works from what ships; see TraceUnavailable.
_TRACING_NEEDS = ("torch", "transformers")


def require_torch(what_for: str) -> None:
    """Raises TraceUnavailable, saying how to get them, where torch or transformers is not installed."""
    for name in _TRACING_NEEDS:
        if importlib.util.find_spec(name) is None:
            raise TraceUnavailable(
                f"{what_for} needs {name}, which is not installed; "
                "pip install 'training-planner[trace]' (the zoo at its reference sizes needs neither)"
            )


def task(workload: Workload, size: int | None = None) -> TrainingTask:
    """What the tracer runs for that workload at that size [tokens or pixels]; None: the reference run's.

    Raises BadConfig for a size that the workload cannot have, TraceUnavailable without torch.
    """
    require_torch(f"tracing {workload.id}")
    chosen = chosen_size(workload, size)
    builder = workload.builder
    if builder.route == "factory":
        raise BadConfig(f"{workload.id}: your own factory is traced in a process of its own, not here")

    def build(variant: TraceVariant) -> nn.Module:
        return build_module(builder, builder.task_class, workload.id, chosen).train()

    def inputs(batch: int) -> Mapping[str, Tensor]:
        if builder.recipe == "module":
            config = sized_config(builder, chosen)
            return cast(
                "Mapping[str, Tensor]", _plain_class(builder.task_class).inputs(batch, chosen or 0, config)
            )
        return recipes.inputs_of(builder.recipe, batch, chosen or 0, builder.inputs)

    return TrainingTask(
        workload=workload.id,
        build=build,
        inputs=inputs,
        loss=_own_loss if builder.recipe == "module" else _labelled_loss(builder.recipe),
        size=chosen,
        notes=("samples are taken as unpadded: no attention mask",) if builder.attention != "none" else (),
    )


def chosen_size(workload: Workload, size: int | None) -> int | None:
    """The size to trace at. Raises BadConfig where it is no size this workload can have."""
    if size is None:
        return workload.default_size
    if workload.default_size is None and workload.reference is not None:
        raise BadConfig(f"{workload.id} takes no sequence length or image size, and {size} was given")
    if size < 1:
        raise BadConfig(f"{workload.id}: a size of {size} is not positive")
    if workload.largest_size is not None and size > workload.largest_size:
        raise BadConfig(
            f"{workload.id}: its position table ends at {workload.largest_size} tokens, not {size}"
        )
    return size


def build_module(
    builder: Builder, class_name: str, where: str, size: int | None = None, device: str = "meta"
) -> nn.Module:
    """The module of that class, on the meta device unless asked otherwise: shapes, no weights.

    class_name: builder.model_class or builder.task_class. device: elsewhere it gets random weights.
    Raises BadConfig, naming `where`, when the class will not have the configuration.
    """
    import torch

    config = sized_config(builder, size)
    try:
        with torch.device(device):
            if builder.route == "module":
                return cast("nn.Module", _plain_class(class_name)(**config))
            return cast("nn.Module", _transformers_class(class_name, where)(library_config(builder, config)))
    except ModelsError:
        raise
    except Exception as error:  # the library raises whatever it likes on a strange config
        raise BadConfig(
            f"{where}: {class_name} cannot be built from this configuration ({type(error).__name__}: {error})"
        ) from error


def sized_config(builder: Builder, size: int | None) -> dict[str, Any]:
    """The configuration for that size: image side as asked, position table long enough."""
    config = dict(builder.config)
    if size is not None:
        if "image_size" in config:
            config["image_size"] = size
        if "max_seq_len" in config:
            config["max_seq_len"] = max(size, config["max_seq_len"])
    return config


def library_config(builder: Builder, values: Mapping[str, Any]) -> Any:
    """The transformers config object: no key-value cache, attention through the fused function if it can."""
    config = _transformers_class(builder.config_class, builder.config_class)(**values)
    if hasattr(config, "use_cache"):
        config.use_cache = False
    if builder.recipe in ("seq2seq-lm", "speech-seq2seq") and not hasattr(config, "decoder_start_token_id"):
        config.decoder_start_token_id = 0  # which token starts the target changes no shape
    config._attn_implementation = "sdpa" if builder.attention == "fused" else "eager"
    return config


def _transformers_class(name: str, where: str) -> Any:
    import transformers

    found = getattr(transformers, name, None)
    if found is None or not inspect.isclass(found):
        raise BadConfig(f"{where}: transformers {transformers.__version__} has no class {name}")
    return found


def _plain_class(path: str) -> Any:
    """ "mpt:Mpt" is class Mpt of modules/mpt.py."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(f"{__package__}.modules.{module}"), name)


def count_parameters(module: nn.Module) -> int:
    """All parameters, shared ones once. [1]"""
    return sum(parameter.numel() for parameter in module.parameters())


def _as_module_dtype(module: nn.Module, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Float inputs in the weights' type, as a loop in pure 16 bit hands them over."""
    dtype = next(module.parameters()).dtype
    return {name: value.to(dtype) if value.is_floating_point() else value for name, value in inputs.items()}


def _own_loss(module: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
    loss: Tensor = cast(Any, module).loss(_as_module_dtype(module, inputs))
    return loss


def _labelled_loss(recipe: str) -> Any:
    flags = recipes.FLAGS.get(recipe, {})

    def loss(module: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
        answer = module(**_as_module_dtype(module, inputs), **flags)
        scalar: Tensor = answer.loss
        return scalar

    return loss
