"""GPUs, instances and rigs by name. Facts come from data/*.toml; each figure keeps its source and date.

>>> gpu("RTX 4090").id
'rtx-4090-24gb'
>>> gpu("a100-sxm4-40gb").rate("tf32") / 1e12
156.0
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from datetime import date
from functools import cache
from types import MappingProxyType
from typing import Any

from ..errors import UnknownName, nearest_names
from . import schema
from .compile import COMPILED, fingerprint
from .names import AmbiguousName, fold
from .records import Figure, Gpu, Hardware, Instance, Part, Rig, Source
from .schema import GIB, MIB

__all__ = [
    "AmbiguousName",
    "Figure",
    "Gpu",
    "Hardware",
    "Instance",
    "Part",
    "Rig",
    "Source",
    "candidates",
    "gpu",
    "gpus",
    "hardware",
    "instance",
    "instances",
    "part_title",
    "rig",
    "rigs",
    "source",
    "why_not",
]

_HINT = "All names: planner hardware list"


@cache
def _tables() -> Mapping[str, Any]:
    with contextlib.suppress(OSError, ValueError):  # absent or cut short: as good as stale
        tables: dict[str, Any] = json.loads(COMPILED.read_bytes())
        if tables.get("made_from") == fingerprint():
            return tables
    from .toml_tables import read_catalogue  # only when the data was edited and not compiled yet

    return read_catalogue(COMPILED.parent)


def gpu(name: str, *, memory_only: bool = False) -> Gpu:
    """The card of that id or spelling.

    memory_only: accept a spelling that leaves the form open ("A100-80GB") when every card it fits has the
        same memory, and return the first of them; for questions where nothing else about the card matters.
    Raises AmbiguousName when several cards fit, UnknownName when none does, with the nearest ids.
    """
    folded = fold(name)
    tables = _tables()
    if folded in tables["names"]["gpu"]:
        return _gpu(tables["names"]["gpu"][folded])
    choices = tables["ambiguous"].get(folded)
    if choices is None:
        reason = why_not(name)
        raise UnknownName("GPU", name, _near("gpu", name), f"({reason}.) {_HINT}" if reason else _HINT)
    cards = [_gpu(choice) for choice in choices]
    if memory_only and len({card.memory_bytes for card in cards}) == 1:
        return cards[0]
    raise AmbiguousName("GPU", name, choices)


def candidates(name: str) -> tuple[Gpu, ...]:
    """Every card a spelling may mean: one, several where it leaves form or memory open, or none."""
    folded = fold(name)
    tables = _tables()
    known = tables["names"]["gpu"].get(folded)
    choices = [known] if known else tables["ambiguous"].get(folded, [])
    return tuple(_gpu(choice) for choice in choices)


def why_not(name: str) -> str | None:
    """Why a label that is in nobody's aliases names no card here, where the catalogue knows; else None."""
    folded = fold(name)
    tables = _tables()
    if folded in tables["not_a_card"]:
        return str(tables["not_a_card"][folded])
    words = set(folded.split("-"))
    for word, reason in tables["not_a_card_words"].items():
        if word in words:
            return str(reason)
    return None


def instance(name: str) -> Instance:
    """The cloud instance of that id or spelling; raises UnknownName."""
    return _instance(_resolve("instance", name))


def rig(name: str) -> Rig:
    """The rig of that id or spelling; raises UnknownName."""
    return _rig(_resolve("rig", name))


def hardware(name: str) -> Hardware:
    """A GPU, an instance or a rig, whichever the name is of; raises UnknownName (or AmbiguousName)."""
    folded = fold(name)
    names = _tables()["names"]
    if folded in names["instance"]:
        return instance(name)
    if folded in names["rig"]:
        return rig(name)
    if candidates(name) or why_not(name):
        return gpu(name)
    near = [*_near("gpu", name), *_near("instance", name), *_near("rig", name)]
    raise UnknownName("hardware", name, near, _HINT)


@cache
def gpus() -> tuple[Gpu, ...]:
    """Every card, in the order of the data file."""
    return tuple(_gpu(key) for key in _tables()["gpus"])


@cache
def instances() -> tuple[Instance, ...]:
    """Every cloud instance, in the order of the data file."""
    return tuple(_instance(key) for key in _tables()["instances"])


@cache
def rigs() -> tuple[Rig, ...]:
    """Every rig, in the order of the data file."""
    return tuple(_rig(key) for key in _tables()["rigs"])


@cache
def source(key: str) -> Source:
    """The document behind a source key; raises UnknownName."""
    sources = _tables()["sources"]
    if key not in sources:
        raise UnknownName("source", key, sources)
    return Source(key=key, **sources[key])


def part_title(item: str) -> str:
    """What a rig's part is, in words; a GPU id gives the card's name. Raises UnknownName."""
    tables = _tables()
    if item in tables["parts"]:
        return str(tables["parts"][item]["title"])
    if item in tables["gpus"]:
        return str(tables["gpus"][item]["name"])
    raise UnknownName("rig part", item, [*tables["parts"], *tables["gpus"]])


def _resolve(kind: str, name: str) -> str:
    key = _tables()["names"][kind].get(fold(name))
    if key is None:
        raise UnknownName(kind, name, _near(kind, name), _HINT)
    return str(key)


def _near(kind: str, name: str) -> list[str]:
    """Ids whose id or one of whose spellings is close to `name`, best first."""
    names: Mapping[str, str] = _tables()["names"][kind]
    return list(dict.fromkeys(names[close] for close in nearest_names(fold(name), names)))


def _figures(record: Mapping[str, Any], quantities: Mapping[str, schema.Quantity]) -> Mapping[str, Figure]:
    return MappingProxyType(
        {
            key: Figure(value, quantities[key].unit, source_key, date.fromisoformat(checked), reason, note)
            for key, (value, source_key, checked, reason, note) in record["figures"].items()
        }
    )


def _value(record: Mapping[str, Any], key: str) -> float | None:
    figure = record["figures"].get(key)
    return None if figure is None else figure[0]


def _known(record: Mapping[str, Any], key: str) -> float:
    value = _value(record, key)
    if value is None:
        raise UnknownName("figure", key, record["figures"])
    return value


def _scaled(value: float | None, factor: int) -> int | None:
    return None if value is None else round(value * factor)


@cache
def _gpu(key: str) -> Gpu:
    record = _tables()["gpus"][key]
    flops = {precision: _value(record, f"{precision}_dense_tflops") for precision in schema.RATE_PRECISIONS}
    return Gpu(
        id=key,
        name=record["name"],
        vendor=record["vendor"],
        architecture=record["architecture"],
        silicon=record["silicon"],
        year=record["year"],
        form_factor=record["form_factor"],
        product_class=record["product_class"],
        compute_capability=record["compute_capability"],
        first_cuda=record["first_cuda"],
        memory_bytes=round(_known(record, "memory_gib") * GIB),
        memory_total_bytes=_scaled(_value(record, "memory_total_mib"), MIB),
        torch_total_bytes=_scaled(_value(record, "torch_total_gib"), GIB),
        bandwidth_bytes_per_second=_known(record, "bandwidth_gb_per_second") * 1e9,
        sm_count=round(_known(record, "sm_count")),
        boost_clock_hz=_known(record, "boost_clock_mhz") * 1e6,
        l2_bytes=round(_known(record, "l2_mib") * MIB),
        tdp_watts=_known(record, "tdp_watts"),
        dense_flops=MappingProxyType({k: None if v is None else v * 1e12 for k, v in flops.items()}),
        fp32_accumulate_halved=bool(_known(record, "fp32_accumulate_halved")),
        nvlink=record["vendor"] == "nvidia" and _known(record, "nvlink_gb_per_second") > 0,
        pcie_generation=round(_known(record, "pcie_generation")),
        peer_to_peer=bool(_known(record, "peer_to_peer")),
        native_dtypes=tuple(record["native_dtypes"]),
        aliases=tuple(record["aliases"]),
        note=record["note"],
        figures=_figures(record, schema.GPU_FIGURES),
    )


@cache
def _instance(key: str) -> Instance:
    record = _tables()["instances"][key]
    vcpus = _value(record, "vcpus")
    return Instance(
        id=key,
        provider=record["provider"],
        family=record["family"],
        gpu=record["gpu"],
        gpu_count=record["gpu_count"],
        vcpus=None if vcpus is None else round(vcpus),
        ram_gib=_value(record, "ram_gib"),
        local_ssd_gib=_value(record, "local_ssd_gib"),
        link=record["link"],
        network=record["network"],
        network_gbps=_value(record, "network_gbps"),
        aliases=tuple(record["aliases"]),
        note=record["note"],
        figures=_figures(record, schema.INSTANCE_FIGURES),
    )


@cache
def _rig(key: str) -> Rig:
    record = _tables()["rigs"][key]
    return Rig(
        id=key,
        gpu=record["gpu"],
        gpu_count=record["gpu_count"],
        parts=tuple(Part(item, quantity) for item, quantity in record["parts"]),
        idle_watts=_known(record, "idle_watts"),
        load_watts=_known(record, "load_watts"),
        power_limit_watts=_value(record, "power_limit_watts"),
        life_years=_known(record, "life_years"),
        link=record["link"],
        network=record["network"],
        aliases=tuple(record["aliases"]),
        note=record["note"],
        figures=_figures(record, schema.RIG_FIGURES),
    )
