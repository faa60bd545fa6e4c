"""Named workloads, and the doors for your own.

    workload("bert-base")                 one of the zoo, by id or by any usual spelling
    from_config("path/to/config.json")    any config of the transformers library
    from_factory("package.module:build")  a function of yours that returns an nn.Module

Reading a named workload needs no torch; building one does.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import BadData, UnknownName
from .compile_zoo import COMPILED, spelling
from .records import Builder, ReferenceRun, Workload, from_record
from .store import prepare, summary, trace, variant_of

if TYPE_CHECKING:
    from ..tracing.task import TrainingTask

__all__ = [
    "Builder",
    "ReferenceRun",
    "Workload",
    "from_config",
    "from_factory",
    "names",
    "prepare",
    "summary",
    "task",
    "trace",
    "variant_of",
    "workload",
    "workloads",
]


def workload(name: str) -> Workload:
    """The workload of that id or alias; case, spaces and underscores do not matter.

    Raises UnknownName with the nearest names.

    >>> workload("bert-base-uncased").parameters
    109482240
    """
    compiled = _compiled()
    found = compiled["aliases"].get(spelling(name))
    if found is None:
        raise UnknownName(
            "workload",
            name,
            names(),
            hint="All names: planner workloads list. Your own: a config.json or package.module:factory.",
        )
    return _record(found)


def workloads() -> tuple[Workload, ...]:
    """Every workload of the zoo, by id."""
    return tuple(_record(identifier) for identifier in _compiled()["workloads"])


def names() -> tuple[str, ...]:
    """Every id and alias, as the data files spell them."""
    found: list[str] = []
    for identifier, record in _compiled()["workloads"].items():
        found += [identifier, *record.get("aliases", ())]
    return tuple(found)


def from_config(path: str | Path) -> Workload:
    """Any transformers configuration as a workload; see `configs.from_config`."""
    from . import configs

    return configs.from_config(path)


def from_factory(
    spec: str,
    *,
    input_shape: str | None = None,
    vocab_size: int | None = None,
    optimizer: str = "adamw-foreach",
    directory: str | Path | None = None,
    time_limit_seconds: float = 300.0,
) -> Workload:
    """A function of yours as a workload; see `factories.from_factory`."""
    from . import factories

    return factories.from_factory(
        spec,
        input_shape=input_shape,
        vocab_size=vocab_size,
        optimizer=optimizer,
        directory=directory,
        time_limit_seconds=time_limit_seconds,
    )


def task(workload: Workload, size: int | None = None) -> TrainingTask:
    """What the tracer runs for that workload; see `building.task`."""
    from . import building

    return building.task(workload, size)


@functools.cache
def _record(identifier: str) -> Workload:
    return from_record(_compiled()["workloads"][identifier], f"{identifier}.toml")


@functools.cache
def _compiled() -> dict[str, Any]:
    try:
        body: dict[str, Any] = json.loads(COMPILED.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadData(
            f"{COMPILED}: not readable as JSON ({error}); "
            "make it again: python -m planner.models.workloads.compile_zoo"
        ) from error
    return body
