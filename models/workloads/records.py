"""What a workload is, and the checks its data file must pass.

A data file (`data/<id>.toml`) is one workload: the published parameter count, how the module is built from
plain values, and the reference run a plan assumes when it is told nothing else. Every figure has its source.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from ..errors import BadData

Kind = Literal["transformer", "cnn", "rnn", "mlp"]
KINDS = ("transformer", "cnn", "rnn", "mlp")
Route = Literal["transformers", "module", "factory"]
ROUTES = ("transformers", "module", "factory")
Attention = Literal["fused", "eager", "none"]
ATTENTIONS = ("fused", "eager", "none")
Origin = Literal["zoo", "config", "factory"]
SizeUnit = Literal["tokens", "pixels"]
SIZE_UNITS = ("tokens", "pixels")

# What a micro-batch holds and which loss is taken; recipes.py makes them.
RECIPES = (
    "causal-lm",
    "masked-lm",
    "question-answering",
    "sequence-classification",
    "seq2seq-lm",
    "image-classification",
    "speech-seq2seq",
    "image-text-contrastive",
    "module",  # the module says itself: `inputs(batch, size)` and `loss(inputs)`
)

# A figure nobody would mean: past the largest model, data set or batch that was ever trained.
_LARGEST_COUNT = 10**14


@dataclass(frozen=True, slots=True)
class Builder:
    """How the module is made, as plain values.

    route: "transformers" (config_class and classes of that library), "module" (a class in `modules/`) or
        "factory" ("package.module:function" of the user's, run in a child process).
    model_class: the plain published model, which `Workload.parameters` counts.
    task_class: what is trained: the model with the head of the reference task.
    config: keyword arguments of config_class, or of the module's class.
    inputs: what the recipe needs beside batch and size, such as target_tokens or label_count.
    attention: "fused" (through scaled_dot_product_attention), "eager" (writes the score matrix), "none".
    activation_checkpointing: whether the module can recompute activations in backward.
    largest_size: longest sequence the position table holds; None where any size will do. [tokens]
    """

    route: Route
    config_class: str
    model_class: str
    task_class: str
    recipe: str
    config: Mapping[str, Any]
    inputs: Mapping[str, Any]
    attention: Attention
    activation_checkpointing: bool
    largest_size: int | None = None


@dataclass(frozen=True, slots=True)
class ReferenceRun:
    """The run that is planned for where the user names no data of their own; always shown as an assumption.

    size: sequence length [tokens] or image side [pixels]; None where samples have neither.
    tokens_per_sample: what one sample counts for when a run is asked for in tokens; None without tokens.
    precisions: what people use for this workload, most usual first.
    text: the assumption in one line.
    """

    task: str
    dataset: str
    dataset_samples: int
    size: int | None
    size_unit: SizeUnit | None
    tokens_per_sample: int | None
    global_batch_size: int
    epochs: int
    optimizer: str
    precisions: tuple[str, ...]
    text: str
    source: str
    checked: str


@dataclass(frozen=True, slots=True)
class Workload:
    """One thing to train.

    parameters: of the plain published model, tied weights once. [1]
    trained_parameters: of the module that is traced, with the head of its task. [1]
    parameters_what, parameters_source: what exactly is counted, and who published it.
    parameters_checked: when the count was last made again from the published configuration.
    reference: None where the user brought the model and only they know the data.
    more_sizes: other usual sizes, whose summaries ship as well, so that they need no torch either.
    assumptions: what was settled without being asked, one line each; shown with every answer.
    origin: "zoo", "config" or "factory"; traces of the zoo ship, those of the others are cached.
    """

    id: str
    title: str
    aliases: tuple[str, ...]
    family: str
    kind: Kind
    parameters: int
    trained_parameters: int
    parameters_what: str
    parameters_source: str
    parameters_checked: str
    builder: Builder
    reference: ReferenceRun | None
    default_size: int | None
    more_sizes: tuple[int, ...] = ()
    assumptions: tuple[str, ...] = ()
    origin: Origin = "zoo"

    def __hash__(self) -> int:
        """Of the name alone: equality still compares everything, and answers can be cached by workload."""
        return hash((self.origin, self.id))

    @property
    def largest_size(self) -> int | None:
        """Longest sequence the position table holds; None where any size will do. [tokens]"""
        return self.builder.largest_size


def from_record(record: Mapping[str, Any], where: str) -> Workload:
    """A Workload from the record of a data file. Raises BadData naming `where` and the key."""
    read = _Reader(record, where)
    parameters = read.table("parameters")
    reference = _reference(read.table("reference"))
    return Workload(
        id=read.text("id"),
        title=read.text("title"),
        aliases=read.texts("aliases"),
        family=read.text("family"),
        kind=cast(Kind, read.choice("kind", KINDS)),
        parameters=parameters.count("value"),
        trained_parameters=parameters.count("trained"),
        parameters_what=parameters.text("what"),
        parameters_source=parameters.text("source"),
        parameters_checked=parameters.date("checked"),
        builder=_builder(read.table("builder")),
        reference=reference,
        default_size=reference.size,
        more_sizes=read.counts("more_sizes"),
    )


def _builder(read: _Reader) -> Builder:
    return Builder(
        route=cast(Route, read.choice("route", ROUTES)),
        config_class=read.text("config_class", ""),
        model_class=read.text("model_class"),
        task_class=read.text("task_class"),
        recipe=read.choice("recipe", RECIPES),
        config=read.table("config").plain(),
        inputs=read.table("inputs").plain(),
        attention=cast(Attention, read.choice("attention", ATTENTIONS)),
        activation_checkpointing=read.flag("activation_checkpointing"),
        largest_size=read.count("largest_size") if read.has("largest_size") else None,
    )


def _reference(read: _Reader) -> ReferenceRun:
    sized = read.has("size")
    unit = cast(SizeUnit, read.choice("size_unit", SIZE_UNITS)) if sized else None
    size = read.count("size") if sized else None
    return ReferenceRun(
        task=read.text("task"),
        dataset=read.text("dataset"),
        dataset_samples=read.count("dataset_samples"),
        size=size,
        size_unit=unit,
        tokens_per_sample=size if unit == "tokens" else None,
        global_batch_size=read.count("global_batch_size"),
        epochs=read.count("epochs"),
        optimizer=read.text("optimizer"),
        precisions=read.texts("precisions", at_least=1),
        text=read.text("text"),
        source=read.text("source"),
        checked=read.date("checked"),
    )


class _Reader:
    """One table of a data file; every complaint names the file and the whole key."""

    def __init__(self, values: Mapping[str, Any], where: str, prefix: str = "") -> None:
        self._values = values
        self._where = where
        self._prefix = prefix

    def has(self, key: str) -> bool:
        return key in self._values

    def table(self, key: str) -> _Reader:
        value = self._values.get(key, {})
        if not isinstance(value, Mapping):
            raise self._wrong(key, "a table", value)
        return _Reader(value, self._where, f"{self._prefix}{key}.")

    def plain(self) -> dict[str, Any]:
        return dict(self._values)

    def text(self, key: str, default: str | None = None) -> str:
        value = self._values.get(key, default)
        if not isinstance(value, str) or (not value.strip() and value != default):
            raise self._wrong(key, "a text", value)
        return value

    def texts(self, key: str, at_least: int = 0) -> tuple[str, ...]:
        value = self._values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
            raise self._wrong(key, "a list of texts", value)
        if len(value) < at_least:
            raise self._wrong(key, f"at least {at_least} text", value)
        return tuple(value)

    def choice(self, key: str, known: tuple[str, ...]) -> str:
        value = self._values.get(key)
        if value not in known:
            raise self._wrong(key, f"one of {', '.join(known)}", value)
        return cast(str, value)

    def flag(self, key: str) -> bool:
        value = self._values.get(key)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false", value)
        return value

    def counts(self, key: str) -> tuple[int, ...]:
        values = self._values.get(key, [])
        if not isinstance(values, list):
            raise self._wrong(key, "a list of whole numbers", values)
        return tuple(self.count(key, value) for value in values)

    def count(self, key: str, value: object = None) -> int:
        value = self._values.get(key) if value is None else value
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self._wrong(key, "a whole number", value)
        if value != int(value) or not 0 < value <= _LARGEST_COUNT:
            raise self._wrong(key, f"a whole number between 1 and {_LARGEST_COUNT:.0e}", value)
        return int(value)

    def date(self, key: str) -> str:
        """ISO date; TOML dates arrive as `datetime.date`, the compiled file holds text."""
        value = self._values.get(key)
        text = value if isinstance(value, str) else getattr(value, "isoformat", lambda: "")()
        if len(text) != len("2026-12-01"):
            raise self._wrong(key, "a date such as 2026-12-01", value)
        return text

    def _wrong(self, key: str, wanted: str, value: object) -> BadData:
        return BadData(f'{self._where}: key "{self._prefix}{key}" must be {wanted}, not {value!r}')
