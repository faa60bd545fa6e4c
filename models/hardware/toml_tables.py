"""Reads and checks the TOML files, and resolves them into the compact form that planning loads.

Raises BadData naming file, table and key. What the checks insist on: every figure of the schema is
there, has a source that exists and a date, is a number in its range or a reason; an assumption says
why; names are unique; instances and rigs name cards and parts that exist.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from ..errors import BadData, nearest_names
from . import schema
from .names import fold
from .schema import FILES, GIB, Quantity

Table = dict[str, Any]


def read_catalogue(folder: Path) -> Table:
    """The whole catalogue of `folder`, checked, as plain JSON-able data."""
    raw = {name: _load(folder / name) for name in FILES}
    sources = {key: _source(key, table) for key, table in raw["sources.toml"].items()}
    gpus = {key: _gpu(key, table, sources) for key, table in raw["gpus.toml"].items()}
    instances: Table = {}
    for family, table in raw["instances.toml"].items():
        for key, record in _family(family, table, sources, gpus).items():
            _require(key not in instances, "instances.toml", family, key, "this instance is already defined")
            instances[key] = record
    parts = {key: _part(key, table, sources) for key, table in raw["rigs.toml"].pop("parts", {}).items()}
    rigs = {key: _rig(key, table, sources, gpus, parts) for key, table in raw["rigs.toml"].items()}
    names = {
        "gpu": _alias_table("gpus.toml", gpus),
        "instance": _alias_table("instances.toml", instances),
        "rig": _alias_table("rigs.toml", rigs),
    }
    _one_kind_per_name(names)
    return {
        "sources": sources,
        "gpus": gpus,
        "instances": instances,
        "parts": parts,
        "rigs": rigs,
        "names": names,
        **_shared_names(raw["names.toml"], gpus, names["gpu"]),
    }


def _load(path: Path) -> Table:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise BadData(f"{path}: not valid TOML: {error}") from error


def _require(condition: bool, file: str, table: str, key: str, problem: str) -> None:
    if not condition:
        raise BadData(f"{file} [{table}] {key}: {problem}")


def _require_known(value: str, known: Collection[str], file: str, table: str, key: str, where: str) -> None:
    if value not in known:
        near = nearest_names(value, known)
        hint = f'; did you mean "{near[0]}"?' if near else ""
        raise BadData(f'{file} [{table}] {key}: "{value}" is not in {where}{hint}')


def _text(file: str, name: str, table: Table, key: str, allowed: tuple[str, ...] | None = None) -> str:
    value = table.get(key)
    _require(isinstance(value, str) and bool(value), file, name, key, "a text is required here")
    text = str(value)
    if allowed is not None:
        _require(text in allowed, file, name, key, f'"{text}" is none of {", ".join(allowed)}')
    return text


def _source(key: str, table: Table) -> Table:
    record = {field: _text("sources.toml", key, table, field) for field in ("title", "url", "date")}
    return {**record, "compared": _text("sources.toml", key, table, "compared", ("yes", "part", "no"))}


def _figure(
    file: str, name: str, key: str, quantity: Quantity, table: Table, sources: Mapping[str, Any]
) -> list[Any]:
    """[value, source, checked, reason, note]; the table's `source` and `checked` are defaults."""
    given = table[key]
    parts: Table = given if isinstance(given, dict) else {"value": given}
    unknown = set(parts) - {"value", "source", "checked", "reason", "note"}
    _require(not unknown, file, name, key, f"unknown field {', '.join(sorted(unknown))}")
    value, reason, note = parts.get("value"), parts.get("reason"), parts.get("note")
    source = parts.get("source", table.get("source"))
    _require(bool(source), file, name, key, "has no source, and the table states none")
    _require_known(str(source), sources, file, name, key, "sources.toml")
    checked = parts.get("checked", table.get("checked"))
    if not isinstance(checked, date):
        raise BadData(f"{file} [{name}] {key}: has no `checked` date, and the table states none")
    if value is None:
        _require(bool(reason), file, name, key, "has no value, so it needs a `reason`")
    else:
        _require(reason is None, file, name, key, "has a value, so `reason` has no place (use `note`)")
        _check_range(file, name, key, quantity, value)
        value = float(value)
    guess_explained = source != schema.ASSUMPTION or bool(note) or bool(reason)
    _require(guess_explained, file, name, key, "an assumption needs a `note` that says why")
    return [value, source, checked.isoformat(), reason, note]


def _check_range(file: str, name: str, key: str, quantity: Quantity, value: object) -> None:
    if quantity.unit == schema.YES_NO:
        _require(isinstance(value, bool), file, name, key, "must be true or false")
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    _require(is_number, file, name, key, f"must be a number of {quantity.unit}")
    assert isinstance(value, int | float)
    in_range = quantity.low <= value <= quantity.high
    _require(
        in_range,
        file,
        name,
        key,
        f"{value} {quantity.unit} is outside {quantity.low}..{quantity.high}; "
        "is it the unit the key's name says, dense, and per GPU?",
    )


def _figures(
    file: str, name: str, table: Table, quantities: Mapping[str, Quantity], sources: Mapping[str, Any]
) -> Table:
    figures: Table = {}
    for key, quantity in quantities.items():
        if key in table:
            figures[key] = _figure(file, name, key, quantity, table, sources)
        else:
            _require(
                not quantity.required, file, name, key, "is missing; where unknown write { reason = ... }"
            )
    return figures


def _no_stray_keys(file: str, name: str, table: Table, known: set[str]) -> None:
    for key in table:
        _require_known(key, known, file, name, key, "the schema")


_COMMON = {"source", "checked", "aliases", "note"}
_GPU_FACTS = (
    "name",
    "vendor",
    "architecture",
    "silicon",
    "year",
    "form_factor",
    "product_class",
    "compute_capability",
    "first_cuda",
    "native_dtypes",
)


def _gpu(name: str, table: Table, sources: Mapping[str, Any]) -> Table:
    file = "gpus.toml"
    _no_stray_keys(file, name, table, {*_COMMON, *_GPU_FACTS, *schema.GPU_FIGURES})
    for key in ("name", "architecture", "silicon"):
        _text(file, name, table, key)
    _text(file, name, table, "vendor", schema.VENDORS)
    _text(file, name, table, "form_factor", schema.FORM_FACTORS)
    _text(file, name, table, "product_class", schema.PRODUCT_CLASSES)
    if table["vendor"] == "nvidia":
        _text(file, name, table, "compute_capability")
        _text(file, name, table, "first_cuda")
    year_fits = isinstance(table.get("year"), int) and 2010 <= table["year"] <= 2100
    _require(year_fits, file, name, "year", "a year is required here")
    dtypes = table.get("native_dtypes", ())
    dtypes_fit = bool(dtypes) and set(dtypes) <= set(schema.RATE_PRECISIONS)
    _require(dtypes_fit, file, name, "native_dtypes", f"a list out of {', '.join(schema.RATE_PRECISIONS)}")
    figures = _figures(file, name, table, schema.GPU_FIGURES, sources)
    for precision in dtypes:
        known = figures[f"{precision}_dense_tflops"][0] is not None
        _require(known, file, name, "native_dtypes", f"names {precision}, whose rate is not given")
    facts = {key: table.get(key) for key in _GPU_FACTS}
    return {**facts, "aliases": table.get("aliases", []), "note": table.get("note"), "figures": figures}


def _known_gpu(file: str, name: str, gpu: object, gpus: Mapping[str, Any]) -> str:
    _require_known(str(gpu), gpus, file, name, "gpu", "gpus.toml")
    return str(gpu)


def _family(
    family: str, table: Table, sources: Mapping[str, Any], gpus: Mapping[str, Any]
) -> dict[str, Table]:
    """The sizes of one instance family; a size inherits what the family states and may override it."""
    file = "instances.toml"
    sizes = table.get("sizes")
    _require(isinstance(sizes, dict) and bool(sizes), file, family, "sizes", "at least one size is required")
    assert isinstance(sizes, dict)
    common = {key: value for key, value in table.items() if key != "sizes"}
    return {size: _instance(family, size, {**common, **own}, sources, gpus) for size, own in sizes.items()}


def _instance(
    family: str, name: str, table: Table, sources: Mapping[str, Any], gpus: Mapping[str, Any]
) -> Table:
    file = "instances.toml"
    table = _decimal_gigabytes_to_gib(table)
    text_keys = {"provider", "gpu", "gpu_count", "link", "network"}
    _no_stray_keys(file, name, table, {*_COMMON, *text_keys, *schema.INSTANCE_FIGURES})
    count = table.get("gpu_count")
    _require(isinstance(count, int) and 1 <= count <= 64, file, name, "gpu_count", "1 to 64 GPUs")
    return {
        "provider": _text(file, name, table, "provider", schema.PROVIDERS),
        "family": family,
        "gpu": _known_gpu(file, name, table.get("gpu"), gpus),
        "gpu_count": count,
        "link": "none" if count == 1 else _text(file, name, table, "link", schema.LINKS[:-1]),
        "network": _text(file, name, table, "network", schema.NETWORKS),
        "aliases": table.get("aliases", []),
        "note": table.get("note"),
        "figures": _figures(file, name, table, schema.INSTANCE_FIGURES, sources),
    }


def _decimal_gigabytes_to_gib(table: Table) -> Table:
    """Sellers state local disks in GB; the record is in GiB."""
    table = dict(table)
    if isinstance(gigabytes := table.pop("local_ssd_gb", None), int | float):
        table["local_ssd_gib"] = gigabytes * 1e9 / GIB
    return table


def _part(name: str, table: Table, sources: Mapping[str, Any]) -> Table:
    """A part that rigs name; `rated_watts` is what a power supply delivers."""
    title = _text("rigs.toml", f"parts.{name}", table, "title")
    record: Table = {"title": title, "note": table.get("note")}
    if "rated_watts" in table:
        watts = Quantity("W", 100, 5_000)
        record["rated_watts"] = _figure("rigs.toml", f"parts.{name}", "rated_watts", watts, table, sources)
    return record


def _rig(
    name: str, table: Table, sources: Mapping[str, Any], gpus: Mapping[str, Any], parts: Mapping[str, Any]
) -> Table:
    file = "rigs.toml"
    own = {"gpu", "gpu_count", "parts", "link", "network"}
    _no_stray_keys(file, name, table, {*_COMMON, *own, *schema.RIG_FIGURES})
    gpu = _known_gpu(file, name, table.get("gpu"), gpus)
    count = table.get("gpu_count")
    _require(isinstance(count, int) and 1 <= count <= 16, file, name, "gpu_count", "1 to 16 GPUs")
    bill: Table = table.get("parts", {})
    for item, quantity in bill.items():
        _require_known(item, {*parts, *gpus}, file, name, f"parts.{item}", "rigs.toml [parts] or gpus.toml")
        quantity_fits = isinstance(quantity, int) and quantity >= 1
        _require(quantity_fits, file, name, f"parts.{item}", "a whole number, at least 1")
    _require(bill.get(gpu) == count, file, name, "parts", f"must hold {count} x {gpu}, as gpu_count says")
    figures = _figures(file, name, table, schema.RIG_FIGURES, sources)
    load, idle = figures["load_watts"][0], figures["idle_watts"][0]
    _require(load is not None and idle is not None, file, name, "load_watts", "watts are required")
    _require(idle < load, file, name, "idle_watts", "must be below load_watts")
    _supplies_carry(name, load, bill, parts)
    return {
        "gpu": gpu,
        "gpu_count": count,
        "parts": [[item, quantity] for item, quantity in bill.items()],
        "link": _text(file, name, table, "link", schema.LINKS),
        "network": _text(file, name, table, "network", schema.NETWORKS),
        "aliases": table.get("aliases", []),
        "note": table.get("note"),
        "figures": figures,
    }


def _supplies_carry(name: str, load_watts: float, bill: Table, parts: Mapping[str, Any]) -> None:
    """Power supplies want 15 % above the draw: their rating is what they deliver, and cards spike."""
    rated = sum(
        parts[item]["rated_watts"][0] * n for item, n in bill.items() if "rated_watts" in parts.get(item, {})
    )
    carries = rated >= 1.15 * load_watts
    problem = f"its power supplies deliver {rated:g} W, too little for a load of {load_watts:g} W"
    _require(carries, "rigs.toml", name, "parts", problem)


def _alias_table(file: str, records: Mapping[str, Table]) -> dict[str, str]:
    table: dict[str, str] = {}
    for key, record in records.items():
        for spelling in (key, *record["aliases"]):
            folded = fold(spelling)
            owner = table.setdefault(folded, key)
            _require(owner == key, file, key, "aliases", f'"{spelling}" already names {owner}')
    return table


def _one_kind_per_name(names: Mapping[str, Mapping[str, str]]) -> None:
    kinds: dict[str, str] = {}
    for kind, spellings in names.items():
        for folded in spellings:
            other = kinds.setdefault(folded, kind)
            problem = f'"{folded}" names both a {other} and an {kind}'
            _require(other == kind, f"{kind}s.toml", spellings[folded], "aliases", problem)


def _shared_names(raw: Table, gpus: Mapping[str, Any], resolved: Mapping[str, str]) -> Table:
    """Spellings that fit several cards, and labels that name no card here, each with its reason."""
    file = "names.toml"
    ambiguous: dict[str, list[str]] = {}
    for spelling, choices in raw.get("ambiguous", {}).items():
        folded = fold(spelling)
        _require(folded not in resolved, file, "ambiguous", spelling, f"already names {resolved.get(folded)}")
        _require(folded not in ambiguous, file, "ambiguous", spelling, "is listed twice")
        _require(len(choices) >= 2, file, "ambiguous", spelling, "needs at least two cards to choose from")
        ambiguous[folded] = [_known_gpu(file, f"ambiguous.{spelling}", choice, gpus) for choice in choices]
    labels: dict[str, str] = {}
    for label, reason in raw.get("not_a_card", {}).items():
        folded = fold(label)
        taken = folded in resolved or folded in ambiguous
        _require(not taken, file, "not_a_card", label, "this label names a card")
        _require(isinstance(reason, str) and bool(reason), file, "not_a_card", label, "needs a reason")
        labels[folded] = reason
    words = {fold(word): reason for word, reason in raw.get("not_a_card_words", {}).items()}
    return {"ambiguous": ambiguous, "not_a_card": labels, "not_a_card_words": words}
