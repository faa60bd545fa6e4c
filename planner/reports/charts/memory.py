"""What fills a GPU's memory, part by part, beside what the card holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .theme import CONTRAST, MAIN, drawn

Row = Mapping[str, Any]
GIB = 1 << 30


def memory(rows: Sequence[Row], capacity_gib: float, total_gib: float) -> dict[str, Any]:
    """rows: part, gib [GiB], text, of one GPU, in the order to draw. The mark is where the card is full."""
    import altair as alt

    parts = [str(row["part"]) for row in rows]
    scale = alt.Scale(domain=[0, max(capacity_gib, total_gib) * 1.04], nice=False)
    base = alt.Chart(alt.Data(values=list(rows)))
    y = alt.Y("part:N", sort=parts, title=None, axis=alt.Axis(labelOverlap=False))
    hover = [alt.Tooltip("part:N"), alt.Tooltip("gib:Q", title="GiB", format=".3f")]
    bars = base.mark_bar(height=15, color=MAIN).encode(
        x=alt.X("from:Q", title="GiB a GPU; line: card is full", scale=scale), x2="to:Q", y=y, tooltip=hover
    )
    text = base.mark_text(align="left", dx=4).encode(x=alt.X("to:Q", scale=scale), y=y, text="text:N")
    full = (
        alt.Chart(alt.Data(values=[{"full": capacity_gib}]))
        .mark_rule(color=CONTRAST, strokeWidth=2.5, strokeDash=[6, 3])
        .encode(x=alt.X("full:Q", scale=scale))
    )
    return drawn(alt.layer(bars, text, full), max(90, 22 * len(rows)))
