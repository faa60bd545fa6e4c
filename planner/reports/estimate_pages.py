"""The two estimates as pages: the answer in the first line, then what adds up to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.reports import figures
from planner.reports.figures import gib, rate
from planner.reports.lists import listing, sentence
from planner.reports.look import Look

_FITS = {"yes": "yes", "no": "no", "too_close": "too close"}
_VERDICTS = {"yes": "fits", "no": "does not fit", "too_close": "too close to call"}


def memory_page(document: Mapping[str, Any], look: Look) -> str:
    """Verdict and why, what would make room and its price, what fills the peak."""
    about = [
        f"{document['workload']} on {document['gpu']}",
        document["precision"],
        f"micro-batch {document['micro_batch_size']}",
        _size(document),
        f"{document['gpus']} GPUs, {document['strategy']}" if document["gpus"] > 1 else "",
        f"tensor parallel {document['tensor_parallel']}" if document["tensor_parallel"] > 1 else "",
        f"accumulation {document['accumulation']}" if document["accumulation"] > 1 else "",
        "activation checkpointing" if document["activation_checkpointing"] else "",
        document["adapter"] or "",
        f"{document['offload']} in host memory" if document["offload"] != "none" else "",
    ]
    page = sentence(" · ".join(part for part in about if part), look) + sentence(_verdict(document), look)
    if document["fits"] != "yes":
        page += sentence(_why(document), look)
        page += _room(document, look)
    total = sum(document["breakdown"].values())
    parts = [
        {"part": part.replace("_", " "), "gib": gib(size), "share": figures.share(size / total)}
        for part, size in sorted(document["breakdown"].items(), key=lambda pair: -pair[1])
        if size >= 0.005 * 2**30
    ]
    where = f"Peak in {document['peak_phase']}, at {document['peak_op']} (tier: {document['tier']})"
    page += "\n" + listing(parts, {"part": "AT THE PEAK", "gib": "GIB", "share": "SHARE"}, look)
    page += sentence(f"{where}; GiB as P50, P95: {_footprints(document)}", look)
    if document["replayed"] is not None:
        page += sentence(_replayed(document["replayed"]), look)
    if document["host_bytes"]:
        page += sentence(f"In the host's memory: {gib(document['host_bytes'])} GiB for each process", look)
    return page + _assumed(document["assumptions"], look)


def _verdict(document: Mapping[str, Any]) -> str:
    process, largest = document["process_bytes"], document["max_micro_batch"]
    fits = f"largest micro-batch that fits: {largest}" if largest else "not one sample fits"
    return (
        f"{_VERDICTS[document['fits']].capitalize()}: {gib(process['p50'])} of "
        f"{gib(document['capacity_bytes'])} GiB (P95 {gib(process['p95'])}); {fits}"
    )


def _why(document: Mapping[str, Any]) -> str:
    states, per_sample = gib(document["model_state_bytes"]), gib(document["bytes_per_sample"])
    if document["model_state_bytes"] > document["capacity_bytes"]:
        return (
            f"Why: weights, gradients and optimizer state take {states} GiB whatever the batch, more than "
            f"the card has; each sample adds {per_sample} GiB"
        )
    return (
        f"Why: weights, gradients and optimizer state take {states} GiB whatever the batch, and each of "
        f"{document['micro_batch_size']} samples adds {per_sample} GiB"
    )


def _room(document: Mapping[str, Any], look: Look) -> str:
    """Each change alone; then what fits together for each goal; what checkpointing trades here."""
    columns = {"name": "ONE CHANGE", "gib": "GIB, P95", "time": "TIME", "fits": "FITS"}
    alone = [_row(lever) for lever in document["levers"] if lever["goal"] is None]
    page = "\n" + listing(alone, columns, look) if alone else ""
    together = [lever for lever in document["levers"] if lever["goal"] is not None]
    page += "\nCheapest that fits:\n" if together else "\nNo combination of these fits.\n"
    for lever in together:
        price = f"{gib(lever['process_bytes'])} GiB, time {_times(lever['time_factor'])}"
        page += sentence(f"  {lever['goal']} ({price}): {_named(lever)}", look)
    trade = document["checkpointing"]
    if trade is not None:
        saved = figures.share(1 - trade["memory_factor"])
        costs = trade["time_factor"]
        price = "a time not known" if costs is None else f"{figures.share(costs - 1)} more time"
        page += sentence(f"Activation checkpointing alone trades {price} for {saved} less memory here", look)
    if alone or together:
        page += sentence("TIME: GPU-seconds of one sample, over those of the step as asked", look)
    return page


def _row(lever: Mapping[str, Any]) -> dict[str, str]:
    return {
        "name": _named(lever),
        "gib": gib(lever["process_bytes"]),
        "time": _times(lever["time_factor"]),
        "fits": _FITS[lever["fits"]],
    }


def _named(lever: Mapping[str, Any]) -> str:
    """The changes by name, with the micro-batch they lead to where it is another."""
    changes = [change for change in lever["name"].split(" + ") if change != "smaller micro-batch"]
    if "micro_batch" in lever:
        changes.append(f"micro-batch {lever['micro_batch']}")
    return " + ".join(changes)


def _times(factor: float | None) -> str:
    return "not known" if factor is None else f"×{factor:,.2f}"


def _footprints(document: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{key} {gib(document[f'{key}_bytes']['p50'])}, {gib(document[f'{key}_bytes']['p95'])}"
        for key in ("allocated", "reserved", "process")
    )


def _replayed(made: Mapping[str, Any]) -> str:
    runs = "runs" if made["runs"] else "runs out of memory"
    return (
        f"Replayed with {made['alloc_conf']}: {runs} in {gib(made['capacity_bytes'])} GiB; allocated "
        f"{gib(made['allocated_bytes'])}, reserved {gib(made['reserved_bytes'])} GiB, cached segments given "
        f"back {made['retries']} times"
    )


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


def _assumed(assumptions: Sequence[Mapping[str, Any]], look: Look) -> str:
    if not assumptions:
        return ""
    return "\n" + "".join(sentence(f"Assumed: {assumption['text']}", look) for assumption in assumptions)
