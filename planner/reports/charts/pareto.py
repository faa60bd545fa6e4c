"""Cost against time: each plan with its band, the front joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .theme import CONTRAST, PALETTE, drawn, figures

Row = Mapping[str, Any]


def pareto(rows: Sequence[Row], currency: str) -> dict[str, Any]:
    """rows: plan, name, kind, hours, hours_low, hours_high [h], cost, cost_low, cost_high [currency],
    front and chosen (whether). Dominated rows are drawn pale and unjoined.
    """
    import altair as alt

    base = alt.Chart(alt.Data(values=list(rows)))
    x = alt.X(
        "hours:Q", title="hours, central estimate (log)", scale=alt.Scale(type="log", nice=False, padding=24)
    )
    y_scale = alt.Scale(type="log", nice=False, padding=16)
    y = alt.Y(
        "cost:Q",
        title=f"{currency} (log); bars P10 to P90",
        scale=y_scale,
        axis=alt.Axis(format=figures(max(row["cost"] for row in rows))),
    )
    hover = [
        alt.Tooltip("name:N", title="plan"),
        alt.Tooltip("kind:N", title="kind"),
        alt.Tooltip("cost:Q", title=f"cost, {currency}", format=",.2f"),
        alt.Tooltip("cost_low:Q", title="P10", format=",.2f"),
        alt.Tooltip("cost_high:Q", title="P90", format=",.2f"),
        alt.Tooltip("hours:Q", title="hours", format=",.2f"),
        alt.Tooltip("hours_low:Q", title="hours P10", format=",.2f"),
        alt.Tooltip("hours_high:Q", title="hours P90", format=",.2f"),
    ]
    kinds = sorted({str(row["kind"]) for row in rows})
    color = alt.Color(
        "kind:N", title="kind", scale=alt.Scale(domain=kinds, range=list(PALETTE[: len(kinds)]))
    )
    shape = alt.Shape(
        "kind:N", title="kind", legend=alt.Legend(symbolOpacity=1), scale=alt.Scale(domain=kinds)
    )
    front = base.transform_filter("datum.front")
    layers = [
        base.transform_filter("!datum.front")
        .mark_point(size=22, opacity=0.35)
        .encode(x=x, y=y, color=color, shape=shape, tooltip=hover),
        front.mark_line(interpolate="step-after", strokeDash=[5, 3], color=PALETTE[6]).encode(
            x=x, y=y, order=alt.Order("hours:Q")
        ),
        front.mark_rule(strokeWidth=1.5, opacity=0.7).encode(
            x=x, y=alt.Y("cost_low:Q", scale=y_scale), y2="cost_high:Q", tooltip=hover
        ),
        front.mark_rule(strokeWidth=1.5, opacity=0.7).encode(
            y=y,
            x=alt.X("hours_low:Q", title="hours, central estimate (log)"),
            x2="hours_high:Q",
            tooltip=hover,
        ),
        front.mark_point(size=90, filled=True, opacity=1).encode(
            x=x, y=y, color=color, shape=shape, tooltip=hover
        ),
        base.transform_filter("datum.chosen")
        .mark_point(size=320, filled=False, color=CONTRAST, strokeWidth=2.5, shape="circle")
        .encode(x=x, y=y, tooltip=hover),
        front.mark_text(align="left", dx=7, dy=-8).encode(x=x, y=y, text="label:N"),
    ]
    if all(row["front"] for row in rows):  # a layer of nothing makes Vega complain
        layers = layers[1:]
    return drawn(alt.layer(*layers), 300)
