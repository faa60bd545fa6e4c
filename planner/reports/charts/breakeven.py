"""Owning beside renting: what each has cost so far, by months or by runs; where the lines cross."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .theme import PALETTE, drawn, figures

Row = Mapping[str, Any]


def breakeven(rows: Sequence[Row], x_title: str, currency: str, x_is_month: bool) -> dict[str, Any]:
    """rows: at (month YYYY-MM, or a count of runs), way ("rent: …", "own: …"), so_far [currency]."""
    import altair as alt

    ways = list(dict.fromkeys(str(row["way"]) for row in rows))
    x = (
        alt.X("at:O", title=x_title, axis=alt.Axis(labelAngle=-45))
        if x_is_month
        else alt.X("at:Q", title=x_title, scale=alt.Scale(nice=False))
    )
    found = (
        alt.Chart(alt.Data(values=list(rows)))
        .mark_line(point=x_is_month)
        .encode(
            x=x,
            y=alt.Y(
                "so_far:Q",
                title=f"{currency} so far",
                axis=alt.Axis(format=figures(max(row["so_far"] for row in rows))),
            ),
            color=alt.Color(
                "way:N",
                title=None,
                scale=alt.Scale(domain=ways, range=list(PALETTE[: len(ways)])),
                legend=alt.Legend(columns=1, labelLimit=290),
            ),
            strokeDash=alt.StrokeDash(
                "way:N", title=None, scale=alt.Scale(domain=ways, range=[[1, 0], [7, 3], [2, 2]][: len(ways)])
            ),
            tooltip=[
                alt.Tooltip("way:N"),
                alt.Tooltip("at:N", title=x_title),
                alt.Tooltip("so_far:Q", title=currency, format=",.2f"),
            ],
        )
    )
    return drawn(alt.layer(found), 260)
