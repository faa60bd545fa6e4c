"""How right the estimates are, as a page: headline errors, groups, and what was not covered."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planner.reports.lists import listing, sentence
from planner.reports.look import Look
from planner.reports.tabular import Cell

_FIGURES = ("scored", "median_ape", "mean_ape", "p90_ape", "interval_coverage", "median_band_width")


def report_body(report: Any) -> dict[str, Any]:
    """The keys of a validation's answer, whether the report makes them or holds them."""
    body: dict[str, Any] = report.body if hasattr(report, "body") else report.to_json()
    return body


def report_rows(file: Path, report: Any) -> list[dict[str, Cell]]:
    """Each row of the file as it was, with predicted, low, high, tier, ape or why it was not covered."""
    if not hasattr(report, "body"):
        return list(report.rows())
    with file.open(encoding="utf-8", newline="") as lines:
        given = list(csv.DictReader(lines))
    return [
        {
            **{name: value for name, value in row.items() if name},
            "predicted": result.predicted,
            "low": result.low,
            "high": result.high,
            "tier": result.tier,
            "ape": result.ape,
            "not_covered": result.reason,
        }
        for row, result in zip(given, report.rows, strict=True)
    ]


def group_rows(document: Mapping[str, Any]) -> list[dict[str, Cell]]:
    """The headline figures and those of every group and kind as rows; errors and coverages are fractions."""
    rows = [_row("all", "all", document)]
    for of in ("by_kind", "groups", "baselines"):
        rows += [_row(of, name, figured) for name, figured in document.get(of, {}).items()]
    return rows


def validation_page(document: Mapping[str, Any], look: Look) -> str:
    """The same for a reader, errors in percent."""
    rows = [{key: _shown(key, value) for key, value in row.items()} for row in group_rows(document)]
    headings = {
        "of": "OF",
        "name": "NAME",
        "scored": "ROWS",
        "median_ape": "MEDIAN ERROR",
        "mean_ape": "MEAN",
        "p90_ape": "P90",
        "interval_coverage": "IN BAND",
        "median_band_width": "BAND ±",
    }
    page = sentence(f"{document['scored']} of {document['rows']} rows scored", look) + "\n"
    page += listing(rows, headings, look, drop=("of", "median_band_width", "mean_ape"))
    if document["not_covered"]:
        page += "\nNot covered:\n"
        page += "".join(
            sentence(f"  {times} {reason}", look) for reason, times in document["not_covered"].items()
        )
    return page


def _row(of: str, name: str, figured: Mapping[str, Any]) -> dict[str, Cell]:
    scored = figured.get("scored", figured.get("rows"))
    return {"of": of, "name": name, **{key: figured.get(key) for key in _FIGURES}, "scored": scored}


def _shown(key: str, value: Any) -> Any:
    is_share = isinstance(value, float) and key not in ("of", "name", "scored")
    return f"{value:.1%}".replace("%", " %") if is_share else value
