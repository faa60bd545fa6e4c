"""How charts look, on light and on dark paper: one configuration that every specification shares."""

from __future__ import annotations

from typing import Any, Literal

Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")

# Okabe and Ito's colours that are told apart by readers with any kind of colour vision, on both papers.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8A8A8A", "#B5A900")
MAIN = PALETTE[0]
CONTRAST = PALETTE[5]
_INK = {"light": "#1b1f24", "dark": "#e8eaed"}
_GRID = {"light": "#dfe3e8", "dark": "#3a4048"}
PAPER = {"light": "#ffffff", "dark": "#15181c"}


def config(theme: Theme) -> dict[str, Any]:
    """The `config` of a specification on that paper."""
    ink, grid = _INK[theme], _GRID[theme]
    return {
        "background": PAPER[theme],
        "font": "system-ui, sans-serif",
        "axis": {
            "labelColor": ink,
            "titleColor": ink,
            "titleFontWeight": "normal",
            "gridColor": grid,
            "domainColor": ink,
            "tickColor": ink,
            "labelOverlap": "greedy",
            "labelLimit": 200,
        },
        "legend": {
            "labelColor": ink,
            "titleColor": ink,
            "orient": "bottom",
            "columns": 3,
            "labelLimit": 150,
            "titleFontWeight": "normal",
        },
        "title": {"color": ink, "anchor": "start"},
        "view": {"stroke": None},
        "range": {"category": list(PALETTE)},
        "text": {"color": ink},
        "rule": {"color": ink},
        "line": {"strokeWidth": 2.5},
    }


def figures(largest: float) -> str:
    """The d3 format of an axis of amounts: 12k above a thousand, else three digits (never 260m for 0.26)."""
    return "~s" if abs(largest) >= 1000 else ",.3~r"


def drawn(chart: Any, height: int) -> dict[str, Any]:
    """The specification of an Altair chart that is as wide as its container. height: of the plot [px]"""
    wide = chart.properties(
        width="container", height=height, autosize={"type": "fit-x", "contains": "padding"}
    )
    found: dict[str, Any] = wide.to_dict()
    found.pop("config", None)
    return found
