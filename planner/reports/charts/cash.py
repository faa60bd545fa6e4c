"""Money by month: what leaves and comes in, and the sum so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .theme import CONTRAST, PALETTE, drawn, figures

Row = Mapping[str, Any]
KINDS = ("operating", "capital", "prepaid", "disposal")
_COLORS = (PALETTE[0], PALETTE[1], PALETTE[2], PALETTE[3])


def cash(rows: Sequence[Row], totals: Sequence[Row], currency: str) -> dict[str, Any]:
    """rows: month (YYYY-MM), expenditure, amount [currency]. totals: month, net, so_far [currency].

    Segments stand in the order of the legend, from zero outwards; the dashed line is the sum so far.
    """
    import altair as alt

    largest = max((abs(row["so_far"]) for row in totals), default=0.0)
    present = [kind for kind in KINDS if any(row["expenditure"] == kind for row in rows)]
    colors = [_COLORS[KINDS.index(kind)] for kind in present]
    x = alt.X("month:O", title=None, axis=alt.Axis(labelAngle=-45))
    bars = (
        alt.Chart(alt.Data(values=list(rows)))
        .mark_bar(stroke="#888888", strokeWidth=0.8)
        .encode(
            x=x,
            y=alt.Y("amount:Q", title=currency, axis=alt.Axis(format=figures(largest)), stack="zero"),
            color=alt.Color(
                "expenditure:N",
                title="dashed line: sum so far",
                scale=alt.Scale(domain=present, range=colors),
            ),
            order=alt.Order("rank:Q"),
            tooltip=[
                alt.Tooltip("month:O"),
                alt.Tooltip("expenditure:N"),
                alt.Tooltip("amount:Q", title=currency, format=",.2f"),
            ],
        )
    )
    line = (
        alt.Chart(alt.Data(values=list(totals)))
        .mark_line(strokeDash=[6, 3], color=CONTRAST, point=alt.OverlayMarkDef(color=CONTRAST, size=30))
        .encode(
            x=x,
            y=alt.Y("so_far:Q"),
            tooltip=[
                alt.Tooltip("month:O"),
                alt.Tooltip("net:Q", title=f"net, {currency}", format=",.2f"),
                alt.Tooltip("so_far:Q", title=f"so far, {currency}", format=",.2f"),
            ],
        )
    )
    return drawn(alt.layer(bars, line), 260)
