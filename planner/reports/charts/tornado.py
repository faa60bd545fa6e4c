"""What moves the cost most: each driver low and high, the widest on top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .theme import PALETTE, drawn, figures

Row = Mapping[str, Any]


def tornado(rows: Sequence[Row], base: float, currency: str) -> dict[str, Any]:
    """rows: driver, side ("low" or "high"), setting (what it is set to), cost [currency], widest first.

    base: the central estimate [currency], the line in the middle.
    """
    import altair as alt

    drivers = list(dict.fromkeys(str(row["driver"]) for row in rows))
    low, high = min([base, *(row["cost"] for row in rows)]), max([base, *(row["cost"] for row in rows)])
    room = (high - low) * 0.06 or 1.0
    values = [{**row, "base": base} for row in rows]
    x_scale = alt.Scale(domain=[low - room, high + room], zero=False, nice=False)
    bars = (
        alt.Chart(alt.Data(values=values))
        .mark_bar(height=16, stroke="#888888")
        .encode(
            y=alt.Y("driver:N", sort=drivers, title=None, axis=alt.Axis(labelOverlap=False)),
            x=alt.X(
                "base:Q",
                title=f"{currency}; dashed edge: driver low",
                scale=x_scale,
                axis=alt.Axis(format=figures(high)),
            ),
            x2="cost:Q",
            color=alt.Color(
                "side:N", title="driver", scale=alt.Scale(domain=["low", "high"], range=list(PALETTE[:2]))
            ),
            strokeDash=alt.StrokeDash(
                "side:N", legend=None, scale=alt.Scale(domain=["low", "high"], range=[[3, 2], [1, 0]])
            ),
            tooltip=[
                alt.Tooltip("driver:N"),
                alt.Tooltip("setting:N", title="set to"),
                alt.Tooltip("cost:Q", title=f"cost, {currency}", format=",.2f"),
            ],
        )
    )
    middle = (
        alt.Chart(alt.Data(values=[{"base": base}]))
        .mark_rule(strokeWidth=1.5)
        .encode(x=alt.X("base:Q", scale=x_scale))
    )
    return drawn(alt.layer(bars, middle), max(90, 30 * len(drivers)))
