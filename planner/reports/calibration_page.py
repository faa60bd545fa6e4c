"""What a calibration found, and two of them compared, as pages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from planner.reports.lists import listing, sentence
from planner.reports.look import Look
from planner.reports.tabular import Cell

_GIGA = 1e9


def suite_rows(profile: Mapping[str, Any]) -> list[dict[str, Cell]]:
    """One row a suite: points, median spread, and the best rate that any of its points reached."""
    by_suite: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for point in profile["points"]:
        by_suite[point["suite"]].append(point)
    rows: list[dict[str, Cell]] = []
    for name, points in by_suite.items():
        spreads = sorted(float(point["hot"]["spread"]) for point in points)
        rates = [point["flops"] / point["hot"]["median"] / _GIGA for point in points if point["flops"]]
        moved = [
            (point["bytes_read"] + point["bytes_written"]) / point["hot"]["median"] / _GIGA
            for point in points
            if point["bytes_read"] and not point["flops"]
        ]
        rows.append(
            {
                "suite": name,
                "points": len(points),
                "spread": spreads[len(spreads) // 2],
                "best_gflop_per_second": max(rates) if rates else None,
                "best_gb_per_second": max(moved) if moved else None,
            }
        )
    return rows


def calibration_page(profile: Mapping[str, Any], look: Look) -> str:
    """Device and software, a line a suite, how noisy it was, the model's step where one was asked for."""
    device, software, protocol = profile["device"], profile["software"], profile["protocol"]
    about = f"{device['name']} · torch {software['torch']} · {protocol['clock']} · {software['allocator']}"
    quality = profile["quality"]
    page = sentence(about, look) + "\n"
    page += sentence(
        f"{quality['points']} points in {protocol['wall_seconds']} s, {protocol['rounds']} rounds; "
        f"median spread {quality['median_spread']:.0%}",
        look,
    )
    page += "\n"
    rows = [{key: _figure(key, value) for key, value in row.items()} for row in suite_rows(profile)]
    headings = {
        "suite": "SUITE",
        "points": "POINTS",
        "spread": "SPREAD",
        "best_gflop_per_second": "BEST GFLOP/S",
        "best_gb_per_second": "BEST GB/S",
    }
    page += listing(rows, headings, look)
    for step in profile.get("anchors", ()):
        page += "\n" + sentence(_step_line(step), look)
    learned = profile["fits"].get("multipliers")
    if learned is not None:
        page += "\n" + sentence(_learned_line(learned), look)
    warnings = [*quality["warnings"], *(f"{key}: {why}" for key, why in quality["failed"].items())]
    return page + "".join(sentence(f"note: {warning}", look) for warning in warnings)


def _learned_line(learned: Mapping[str, Any]) -> str:
    """What the anchors taught, or why it is not used."""
    before = f"{learned['error_before']:.0%} off as priced"
    if not learned["accepted"]:
        return f"anchors: {before}; nothing learned from them: {learned['reason']}"
    values = ", ".join(f"{name} × {value:.2f}" for name, value in learned["values"].items())
    return f"anchors: {before}, {learned['error_left_out']:.0%} each from the others; {values}"


def _step_line(step: Mapping[str, Any]) -> str:
    if "measured_seconds" in step:
        ran = f"measured {step['measured_seconds']:.3g} s (spread {step['spread']:.0%} of {step['repeats']})"
        return f"{step['name']}: priced {step['priced_seconds']:.3g} s, {ran}"
    return (
        f"{step['name']}: {step['step_seconds']:.3g} s a step "
        f"({step['low_seconds']:.3g} to {step['high_seconds']:.3g}, tier {step['tier']}, "
        f"{step['coverage']:.0%} of it measured ops)"
    )


def comparison_page(document: Mapping[str, Any], look: Look) -> str:
    """Ratios by suite, and what differs between the two beside the device."""
    rows = [
        {**row, **{key: f"{row[key]:.2f}" for key in ("ratio", "low", "high")}} for row in document["suites"]
    ]
    headings = {"suite": "SUITE", "points": "POINTS", "ratio": "B / A", "low": "P10", "high": "P90"}
    page = sentence("Seconds of B over A: below 1, B is faster.", look) + "\n"
    page += listing(rows, headings, look)
    notes = [f"differs: {line}" for line in document["differing"]]
    if document["only_first"] or document["only_second"]:
        notes.append(
            f"not compared: {document['only_first']} points only in A, {document['only_second']} only in B"
        )
    return page + "".join("\n" + sentence(note, look) for note in notes)


def _figure(key: str, value: Cell) -> Cell:
    if not isinstance(value, float):
        return value
    return f"{value:.0%}" if key == "spread" else f"{value:,.1f}"
