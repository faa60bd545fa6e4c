"""When each run runs, and on what: a bar a run, a row a place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .theme import PALETTE, drawn

Row = Mapping[str, Any]
_ROW = 24
MOST_ROWS = 60


def gantt(rows: Sequence[Row]) -> dict[str, Any]:
    """rows: job, place (hardware and purchase model), kind ("owned" or "rented"), start, end, deadline (local
    RFC 3339 text without offset, deadline None where there is none), hours [h], workload, cost_text.
    """
    import altair as alt

    base = alt.Chart(alt.Data(values=list(rows)))
    y = alt.Y("row:N", title=None, sort=None, axis=alt.Axis(labelOverlap=False))
    kinds = ["owned", "rented"]
    color = alt.Color(
        "kind:N", title="dashed edge: rented", scale=alt.Scale(domain=kinds, range=list(PALETTE[:2]))
    )
    dash = alt.StrokeDash(
        "kind:N", title=None, legend=None, scale=alt.Scale(domain=kinds, range=[[1, 0], [4, 2]])
    )
    hover = [
        alt.Tooltip("job:N", title="run"),
        alt.Tooltip("workload:N"),
        alt.Tooltip("place:N", title="on"),
        alt.Tooltip("start:T", title="starts", format="%Y-%m-%d %H:%M"),
        alt.Tooltip("end:T", title="ends", format="%Y-%m-%d %H:%M"),
        alt.Tooltip("hours:Q", title="hours", format=",.1f"),
        alt.Tooltip("cost_text:N", title="cost"),
        alt.Tooltip("deadline_text:N", title="deadline"),
    ]
    bars = base.mark_bar(height=14, stroke=PALETTE[6], strokeWidth=1.5, minBandSize=3).encode(
        x=alt.X("start:T", title=None, axis=alt.Axis(format="%d %b", labelSeparation=12, tickCount=8)),
        x2="end:T",
        y=y,
        color=color,
        strokeDash=dash,
        tooltip=hover,
    )
    short = base.mark_tick(thickness=3, height=14).encode(x="start:T", y=y, color=color, tooltip=hover)
    due = base.transform_filter("datum.deadline != null").mark_point(
        shape="diamond", size=45, strokeWidth=1.5, color=PALETTE[5]
    )
    places = len({row["row"] for row in rows})
    layers = alt.layer(bars, short, due.encode(x="deadline:T", y=y, tooltip=hover))
    return drawn(layers, max(80, _ROW * places))
