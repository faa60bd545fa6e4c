"""The two estimates as pages: the answer in the first line, then what adds up to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.reports import figures
from planner.reports.figures import gib, rate
from planner.reports.lists import listing, sentence
from planner.reports.look import Look

_VERDICTS = {"yes": "fits", "no": "does not fit", "too_close": "too close to call"}


def memory_page(document: Mapping[str, Any], look: Look) -> str:
    """Verdict, the three footprints against the card, what fills the peak, what would make room."""
    capacity = document["capacity_bytes"]
    process = document["process_bytes"]
    about = [
        f"{document['workload']} on {document['gpu']}",
        document["precision"],
        f"micro-batch {document['micro_batch_size']}",
        _size(document),
        f"{document['gpus']} GPUs, {document['strategy']}" if document["gpus"] > 1 else "",
        f"accumulation {document['accumulation']}" if document["accumulation"] > 1 else "",
        "activation checkpointing" if document["activation_checkpointing"] else "",
    ]
    lines = [
        " · ".join(part for part in about if part),
        f"{_VERDICTS[document['fits']].capitalize()}: {gib(process['p50'])} of {gib(capacity)} GiB "
        f"(P95 {gib(process['p95'])}); largest micro-batch that fits: {document['max_micro_batch']}",
    ]
    footprints = [
        {"what": key, **{part: gib(document[f"{key}_bytes"][part]) for part in ("p50", "p95")}}
        for key in ("allocated", "reserved", "process")
    ]
    total = sum(document["breakdown"].values())
    parts = [
        {"part": part.replace("_", " "), "gib": gib(size), "share": figures.share(size / total)}
        for part, size in sorted(document["breakdown"].items(), key=lambda pair: -pair[1])
        if size
    ]
    page = "".join(sentence(line, look) for line in lines)
    page += "\n" + listing(footprints, {"what": "FOOTPRINT", "p50": "GIB, P50", "p95": "GIB, P95"}, look)
    page += "\n" + listing(parts, {"part": "AT THE PEAK", "gib": "GIB", "share": "SHARE"}, look)
    peak = f"Peak in {document['peak_phase']}, at {document['peak_op']} (tier: {document['tier']})"
    page += "\n" + sentence(peak, look)
    if document["levers"]:
        page += "\nTo make room:\n" + "".join(
            sentence(f"  {_lever(lever)}", look) for lever in document["levers"]
        )
    return page + _assumed(document["assumptions"], look)


def throughput_page(document: Mapping[str, Any], look: Look) -> str:
    """Samples per second with the band, then where the time of a step goes."""
    speed = document["throughput"]
    about = [
        f"{document['workload']} on {document['gpus']}× {document['gpu']}",
        document["precision"],
        f"micro-batch {document['micro_batch_size']}",
        _size(document),
        f"accumulation {document['accumulation']}" if document["accumulation"] > 1 else "",
        f"link {document['link']}" if document["gpus"] > 1 else "",
    ]
    lines = [
        " · ".join(part for part in about if part),
        f"{rate(speed['value'])} {speed['unit']} (80 % band {rate(speed['low'])}–{rate(speed['high'])}); "
        f"one step {rate(document['step_seconds'] * 1000)} ms (tier: {document['tier']})",
    ]
    step = document["step_seconds"]
    parts = [
        {
            "work": part["op_class"].replace("_", " "),
            "phase": part["phase"],
            "ms": f"{part['seconds'] * 1000:,.3f}",
            "share": figures.share(part["seconds"] / step),
        }
        for part in sorted(document["breakdown"], key=lambda part: -part["seconds"])
        if part["seconds"]
    ]
    page = "".join(sentence(line, look) for line in lines)
    page += "\n" + listing(parts, {"work": "WORK", "phase": "PHASE", "ms": "MS", "share": "SHARE"}, look)
    return page + _assumed([*document["assumptions"], *({"text": note} for note in document["notes"])], look)


def _size(document: Mapping[str, Any]) -> str:
    return "" if document["size"] is None else f"{document['size']:,} {document['size_unit']}"


def _lever(lever: Mapping[str, Any]) -> str:
    """A lever's own words, in the order the estimate gives them."""
    said = {key: value for key, value in lever.items() if value is not None}
    name = str(said.pop("name", said.pop("lever", "")))
    sizes = {key: f"{gib(value)} GiB" for key, value in said.items() if key.endswith("_bytes")}
    rest = [
        f"{key.removesuffix('_bytes').replace('_', ' ')} {value}" for key, value in (said | sizes).items()
    ]
    return ", ".join([name.replace("_", " "), *rest])


def _assumed(assumptions: Sequence[Mapping[str, Any]], look: Look) -> str:
    if not assumptions:
        return ""
    return "\n" + "".join(sentence(f"Assumed: {assumption['text']}", look) for assumption in assumptions)
