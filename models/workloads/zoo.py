"""Named workloads, and the doors for your own.

    workload("bert-base")                 one of the zoo, by id or by any usual spelling
    from_config("path/to/config.json")    any config of the transformers library
    from_factory("package.module:build")  a function of yours that returns an nn.Module

Reading a named workload needs no torch; building one does.
"""

from __future__ import annotations

import functools
import json
from typing import Any

from ..errors import BadData, UnknownName
from .building import task
from .compile_zoo import COMPILED, spelling
from .configs import from_config
from .factories import from_factory
from .records import Builder, ReferenceRun, Workload, from_record
from .store import prepare, summary, trace, variant_of

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
