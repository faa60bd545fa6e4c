"""How old each price is that the plan rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .theme import PALETTE, drawn

Row = Mapping[str, Any]


def price_ages(rows: Sequence[Row]) -> dict[str, Any]:
    """rows: item, age_days [d], quality, source, observed, price, oldest first."""
    import altair as alt

    items = [str(row["item"]) for row in rows]
    qualities = sorted({str(row["quality"]) for row in rows})
    base = alt.Chart(alt.Data(values=list(rows)))
    y = alt.Y("item:N", sort=items, title=None, axis=alt.Axis(labelOverlap=False))
    color = alt.Color(
        "quality:N", title="quality", scale=alt.Scale(domain=qualities, range=list(PALETTE[: len(qualities)]))
    )
    hover = [
        alt.Tooltip("item:N"),
        alt.Tooltip("price:N"),
        alt.Tooltip("age_days:Q", title="age, days"),
        alt.Tooltip("observed:N"),
        alt.Tooltip("quality:N"),
        alt.Tooltip("source:N"),
    ]
    x = alt.X("age_days:Q", title="days between the price and the plan", scale=alt.Scale(domainMin=0))
    stems = base.mark_rule(opacity=0.45, strokeWidth=1.5).encode(x=alt.X("zero:Q"), x2="age_days:Q", y=y)
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=x,
        y=y,
        color=color,
        shape=alt.Shape("quality:N", title="quality", scale=alt.Scale(domain=qualities)),
        tooltip=hover,
    )
    return drawn(alt.layer(stems, dots), max(90, 22 * len(rows)))
