"""Money over time: what leaves each month, and how a price moved."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING

from planner.reports import figures
from planner.reports.drawings import svg

if TYPE_CHECKING:
    from planner.pricing.history import Series

_MOST_LABELS = 8


def cash(months: Sequence[tuple[str, Decimal]], currency: str) -> str:
    """One bar a month: what leaves points up, what comes in points down. months: (name, amount)."""
    amounts = [float(amount) for _, amount in months]
    y = svg.padded([0.0, *amounts], svg.HEIGHT - svg.BOTTOM, svg.TOP + 12)
    width = (svg.WIDTH - svg.LEFT - svg.RIGHT) / max(len(months), 1)
    zero, every = y.at(0.0), -(-len(months) // _MOST_LABELS) or 1
    parts = []
    for value in y.ticks():
        at = y.at(value)
        parts += [svg.line(svg.LEFT, at, svg.WIDTH - svg.RIGHT, at, "grid")]
        parts += [svg.text(svg.number(value), svg.LEFT - 6, at + 4, class_="tick end")]
    for i, (name, amount) in enumerate(months):
        left, top = svg.LEFT + width * i, y.at(float(amount))
        said = f"{name}: {figures.money(amount)} {currency}"
        parts.append(
            svg.element(
                "rect",
                svg.hint(said),
                x=round(left + width * 0.1, 2),
                y=min(top, zero),
                width=round(width * 0.8, 2),
                height=round(abs(zero - top), 2),
                rx=1,
                class_="bar" if amount >= 0 else "bar income",
            )
        )
        if i % every == 0:
            parts.append(svg.text(name, left + width / 2, svg.HEIGHT - svg.BOTTOM + 16, class_="tick mid"))
    parts.append(svg.text(f"{currency} a month", svg.LEFT - 48, svg.TOP + 4, class_="label"))
    listed = "; ".join(f"{name} {figures.money(amount)}" for name, amount in months[:60])
    return svg.drawing(parts, "Cash by month", f"{currency}: {listed}")


def price(series: Series) -> str:
    """How one price moved, as steps from zero: starting elsewhere makes every change look like a fall."""
    known = [
        (step.offer.observed_at, step.offer.amount) for step in series.steps if step.offer.amount is not None
    ]
    if not known:
        return ""
    first, last = known[0][0], known[-1][0]
    x = svg.Scale(0.0, max((last - first) / timedelta(days=1), 1.0), svg.LEFT, svg.WIDTH - svg.RIGHT)
    y = svg.padded([0.0, *(float(amount) for _, amount in known)], svg.HEIGHT - svg.BOTTOM, svg.TOP + 12)
    parts = []
    for value in y.ticks():
        at = y.at(value)
        parts += [svg.line(svg.LEFT, at, x.end, at, "grid")]
        parts += [svg.text(svg.number(value), svg.LEFT - 6, at + 4, class_="tick end")]
    for day, where in ((first, "tick"), (last, "tick end")):
        at = x.at((day - first) / timedelta(days=1))
        parts.append(svg.text(f"{day:%Y-%m-%d}", at, y.start + 16, class_=where))
    points = [(x.at((day - first) / timedelta(days=1)), y.at(float(amount))) for day, amount in known]
    path = f"M{points[0][0]},{points[0][1]}"
    path += "".join(f"H{after[0]}V{after[1]}" for _, after in pairwise(points))
    parts.append(svg.element("path", d=path, class_="front"))
    parts += [
        svg.element(
            "circle", svg.hint(f"{day:%Y-%m-%d}: {amount:f}"), cx=at, cy=height, r=4,
            class_="dot",
        )
        for (at, height), (day, amount) in zip(points, known, strict=True)
    ]  # fmt: skip
    said = f"{len(known)} observations, {_said(known[0])} to {_said(known[-1])}"
    return svg.drawing(parts, series.label, said)


def _said(observed: tuple[datetime, Decimal]) -> str:
    return f"{observed[1]:f} on {observed[0]:%Y-%m-%d}"
