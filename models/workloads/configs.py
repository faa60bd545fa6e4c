"""`from_config`: any `config.json` of the transformers library becomes a workload.

Only classes that ship in the library are built: no code from a hub is run, no weight is fetched, nothing
touches the network. What the file does not say (sequence length, what is trained) is assumed, and said.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import BadConfig, UnknownName
from . import cache, config_checks
from .building import build_module, count_parameters, require_torch
from .records import Attention, Builder, Kind, Workload

# The sequence a decoder is planned at, where its configuration allows it and nobody says otherwise. [tokens]
_DECODER_TOKENS = 2048
_ENCODER_TOKENS = 512
_TARGET_TOKENS = 128

# No configuration file is larger; what is, is something else.
_LARGEST_FILE_BYTES = 4 * 2**20

# Keys that describe the checkpoint or how it was loaded, not the module.
_NOT_THE_MODULE = {
    *("_name_or_path", "architectures", "auto_map", "dtype", "model_type", "quantization_config"),
    *("torch_dtype", "transformers_version", "use_cache", "_attn_implementation", "attn_implementation"),
}

# Suffix of a class -> recipe. The first that fits decides.
_RECIPE_OF_SUFFIX = {
    "ForCausalLM": "causal-lm",
    "LMHeadModel": "causal-lm",
    "ForMaskedLM": "masked-lm",
    "ForQuestionAnswering": "question-answering",
    "ForSequenceClassification": "sequence-classification",
    "ForImageClassification": "image-classification",
}

# The library's tables of classes by task, in the order asked where `architectures` settles nothing:
# an encoder also has a causal head that nobody trains, so masked comes before causal.
_TABLES = (
    ("MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES", "speech-seq2seq"),
    ("MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES", "seq2seq-lm"),
    ("MODEL_FOR_MASKED_LM_MAPPING_NAMES", "masked-lm"),
    ("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", "causal-lm"),
    ("MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES", "image-classification"),
)


def from_config(path: str | Path) -> Workload:
    """A workload from a transformers configuration: the file, or the folder that holds `config.json`.

    Raises BadConfig naming file and key; UnknownName for a model_type the library does not have, with the
    nearest; TraceUnavailable without torch or transformers.
    """
    file = _file_of(Path(path))
    values = read_values(file)
    known = cache.read(_record_name(file, values))
    if isinstance(known, Mapping) and "builder" in known:
        return _from_cached(known)
    require_torch(f"{file}: a configuration of your own")
    made = _make(file, values)
    cache.write(_record_name(file, values), _to_cached(made))
    return made


def read_values(file: Path) -> dict[str, Any]:
    """The configuration as plain values, checked. Raises BadConfig naming file and key."""
    try:
        if file.stat().st_size > _LARGEST_FILE_BYTES:
            raise BadConfig(f"{file}: {file.stat().st_size:,} bytes is no model configuration")
        values = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadConfig(f"{file}: not readable ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise BadConfig(f"{file}: not UTF-8 text ({error.reason} at byte {error.start})") from error
    except (ValueError, RecursionError) as error:
        raise BadConfig(f"{file}: broken JSON ({error})") from error
    if not isinstance(values, dict):
        raise BadConfig(f"{file}: a configuration is a JSON object, not a {type(values).__name__}")
    if not isinstance(values.get("model_type"), str):
        raise BadConfig(f'{file}: key "model_type" is missing; it says which class of transformers to build')
    config_checks.check(values, str(file))
    return values


def _file_of(path: Path) -> Path:
    file = path / "config.json" if path.is_dir() else path
    if not file.is_file():
        raise BadConfig(f"{file}: no such file; give a config.json or the folder that holds one")
    return file


def _make(file: Path, values: Mapping[str, Any]) -> Workload:
    config_class = _config_class(file, values)
    task_class, recipe = _task_class(file, values)
    builder = _builder(file, values, config_class, task_class, recipe)
    with_size = _size(builder, values)
    parameters = count_parameters(build_module(builder, task_class, str(file), with_size))
    assumptions = [f"{task_class} is trained, all weights", *_size_assumptions(builder, with_size)]
    if "quantization_config" in values:
        assumptions.append("the quantisation of the checkpoint is ignored: weights are trained")
    return Workload(
        id=(file.parent.resolve().name if file.name == "config.json" else file.stem) or "config",
        title=f"{task_class} from {file}",
        aliases=(),
        family=str(values["model_type"]),
        kind=_kind(builder),
        parameters=parameters,
        trained_parameters=parameters,
        parameters_what=task_class,
        parameters_source=f"counted from {file}",
        parameters_checked="",
        builder=builder,
        reference=None,
        default_size=with_size,
        assumptions=tuple(assumptions),
        origin="config",
    )


def _kind(builder: Builder) -> Kind:
    if builder.attention != "none":
        return "transformer"
    return "cnn" if builder.recipe == "image-classification" else "rnn"


def _config_class(file: Path, values: Mapping[str, Any]) -> str:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    model_type = values["model_type"]
    found = CONFIG_MAPPING_NAMES.get(model_type)
    if found is None:
        remote = "It names code on a hub (auto_map), which is never run. " if "auto_map" in values else ""
        raise UnknownName(
            "model_type",
            model_type,
            CONFIG_MAPPING_NAMES,
            hint=f'({file}, key "model_type"). {remote}A model outside transformers: package.module:factory.',
        )
    return str(found)


def _task_class(file: Path, values: Mapping[str, Any]) -> tuple[str, str]:
    """What is trained and how: the architecture the file names, else what the library maps the type to."""
    import transformers
    from transformers.models.auto import modeling_auto

    tables = [(dict(getattr(modeling_auto, table)), recipe) for table, recipe in _TABLES]
    for name in values.get("architectures") or ():
        for table, recipe in tables[:2]:
            if name == table.get(values["model_type"]):
                return name, recipe
        for suffix, recipe in _RECIPE_OF_SUFFIX.items():
            if str(name).endswith(suffix) and hasattr(transformers, name):
                return name, recipe
    for table, recipe in tables:
        found = table.get(values["model_type"])
        if found is not None:
            return (found if isinstance(found, str) else found[0]), recipe
    raise BadConfig(
        f'{file}: key "model_type": {values["model_type"]} has no class here for language modelling, '
        "masked or sequence-to-sequence training or image classification; use package.module:factory"
    )


def _builder(
    file: Path, values: Mapping[str, Any], config_class: str, task_class: str, recipe: str
) -> Builder:
    import transformers

    module_class = getattr(transformers, task_class)
    config = {key: value for key, value in values.items() if key not in _NOT_THE_MODULE}
    try:
        whole = getattr(transformers, config_class)(**config)
    except Exception as error:  # the library raises whatever it likes on a strange config
        reason = " ".join(str(error).split())
        raise BadConfig(f"{file}: {config_class} refuses it ({type(error).__name__}: {reason})") from error
    attention: Attention = "none"
    if getattr(whole, "num_attention_heads", None) or getattr(whole, "num_heads", None):
        attention = "fused" if getattr(module_class, "_supports_sdpa", False) else "eager"
    return Builder(
        route="transformers",
        config_class=config_class,
        model_class=task_class,
        task_class=task_class,
        recipe=recipe,
        config=config,
        inputs=_inputs(recipe, whole),
        attention=attention,
        activation_checkpointing=bool(getattr(module_class, "supports_gradient_checkpointing", False)),
        largest_size=_largest_size(recipe, whole),
    )


def _inputs(recipe: str, config: Any) -> dict[str, int]:
    if recipe == "seq2seq-lm":
        return {"target_tokens": _TARGET_TOKENS}
    if recipe == "image-classification":
        return {"channels": int(getattr(config, "num_channels", 3) or 3)}
    if recipe == "speech-seq2seq":
        return {
            "mel_bins": int(getattr(config, "num_mel_bins", 80)),
            "frames": 2 * int(getattr(config, "max_source_positions", 1500)),
        }
    return {}


def _largest_size(recipe: str, config: Any) -> int | None:
    """Length of an absolute position table; None for rotary and relative positions and for images."""
    if recipe == "image-classification":
        return None
    if recipe == "speech-seq2seq":
        return int(getattr(config, "max_target_positions", 448))
    rotary_or_relative = (
        "rope_parameters",
        "rope_theta",
        "relative_attention",
        "relative_attention_num_buckets",
    )
    if any(getattr(config, name, None) for name in rotary_or_relative):
        return None
    places = getattr(config, "max_position_embeddings", None)
    if not isinstance(places, int):
        return None
    # RoBERTa and its kin start counting after the padding id.
    starts_after_padding = getattr(config, "model_type", "") in ("roberta", "xlm-roberta", "camembert")
    return places - 2 if starts_after_padding else places


def _size(builder: Builder, values: Mapping[str, Any]) -> int:
    if builder.recipe == "image-classification":
        side = values.get("image_size", 224)
        return int(side if isinstance(side, int) else 224)
    if builder.recipe == "speech-seq2seq":
        return _TARGET_TOKENS
    usual = _DECODER_TOKENS if builder.recipe == "causal-lm" else _ENCODER_TOKENS
    stated = values.get("max_position_embeddings") or values.get("n_positions") or usual
    return min(usual, int(stated), builder.largest_size or usual)


def _size_assumptions(builder: Builder, size: int) -> list[str]:
    if builder.recipe == "image-classification":
        return [f"images of {size} pixels"]
    if builder.recipe == "speech-seq2seq":
        return [f"{builder.inputs['frames']:,} frames in, {size} tokens out"]
    if builder.recipe == "seq2seq-lm":
        return [f"{size:,} tokens in, {_TARGET_TOKENS} out"]
    return [f"sequences of {size:,} tokens, unpadded"]


def _record_name(file: Path, values: Mapping[str, Any]) -> str:
    return cache.digest({"file": str(file), "config": values, "code": cache.code_hash(), **cache.versions()})


def _to_cached(workload: Workload) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(workload)


def _from_cached(body: Mapping[str, Any]) -> Workload:
    values = dict(body)
    values["builder"] = Builder(**values["builder"])
    for name in ("aliases", "assumptions", "more_sizes"):
        values[name] = tuple(values[name])
    return Workload(**values)
