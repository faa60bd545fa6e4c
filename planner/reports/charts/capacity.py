"""GPU-hours by month: what runs use on each hardware, beside what the rigs could give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .theme import CONTRAST, PALETTE, drawn, figures

Row = Mapping[str, Any]


def capacity(used: Sequence[Row], owned: Sequence[Row]) -> dict[str, Any]:
    """used: month, place, gpu_hours [GPU-h]. owned: month, gpu_hours that owned rigs could give [GPU-h]."""
    import altair as alt

    places = sorted(
        {str(row["place"]) for row in used}, key=lambda place: (not place.startswith("own"), place)
    )
    x = alt.X("month:O", title=None, axis=alt.Axis(labelAngle=-45))
    bars = (
        alt.Chart(alt.Data(values=list(used)))
        .mark_bar(stroke="#888888", strokeWidth=0.8)
        .encode(
            x=x,
            y=alt.Y(
                "gpu_hours:Q",
                title="GPU-hours",
                axis=alt.Axis(format=figures(max((row["gpu_hours"] for row in used), default=0))),
            ),
            color=alt.Color(
                "place:N",
                title="stacked in this order, top first",
                sort=places,
                scale=alt.Scale(
                    domain=places, range=[PALETTE[at % len(PALETTE)] for at in range(len(places))]
                ),
            ),
            tooltip=[
                alt.Tooltip("month:O"),
                alt.Tooltip("place:N", title="on"),
                alt.Tooltip("gpu_hours:Q", title="GPU-hours", format=",.1f"),
            ],
        )
    )
    if not owned:
        return drawn(alt.layer(bars), 240)
    marks = (
        alt.Chart(alt.Data(values=list(owned)))
        .mark_tick(thickness=3, color=CONTRAST, bandSize=26)
        .encode(
            x=x,
            y=alt.Y("gpu_hours:Q"),
            tooltip=[
                alt.Tooltip("month:O"),
                alt.Tooltip("gpu_hours:Q", title="owned GPU-hours", format=",.1f"),
            ],
        )
    )
    return drawn(alt.layer(bars, marks), 240)
