"""Cost against time: every option as a dot, the front joined, each dot of it a link to its plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from planner.reports import figures
from planner.reports.drawings import svg
from planner.reports.plan_rows import Option

_MOST_DOTS = 400
"""Dominated options drawn, cheapest first: more would only blacken the same corner."""


def run_front(document: Mapping[str, Any], chosen: int, href: Callable[[int], str]) -> str:
    """The options of one run's plan. chosen: a rank. href: where the plan of a rank is shown."""
    options: Sequence[Option] = document["options"]
    front = [option for option in options if option["pareto"] or option["rank"] == chosen]
    others = [option for option in options if not option["pareto"] and option["rank"] != chosen]
    dots = [_dot(option["rank"], _name(option), option, chosen, href) for option in front]
    return _front(dots, [_place(option) for option in others[:_MOST_DOTS]], document["currency"])


def schedule_front(document: Mapping[str, Any], chosen: int, href: Callable[[int], str]) -> str:
    """The points of a schedule's front. chosen: a point's number."""
    dots = [_dot(p["point"], f"plan {p['point']}, {p['kind']}", p, chosen, href) for p in document["front"]]
    return _front(dots, [], document["currency"])


class _Dot:
    """One linked point: where it stands, its band of cost, and what to say of it."""

    __slots__ = ("chosen", "cost", "high", "hours", "href", "low", "number", "said")

    def __init__(self, number: int, said: str, cost: Mapping[str, str], hours: float) -> None:
        self.number, self.said, self.hours = number, said, hours
        self.cost, self.low, self.high = (float(cost[key]) for key in ("p50", "p10", "p90"))
        self.chosen, self.href = False, ""


def _dot(number: int, name: str, found: Mapping[str, Any], chosen: int, href: Callable[[int], str]) -> _Dot:
    cost, hours = found["cost"], found["time_hours"]["p50"]
    said = f"{name}: {figures.money(Decimal(cost['p50']))}, {figures.hours(hours)} h"
    dot = _Dot(number, said, cost, hours)
    dot.chosen, dot.href = number == chosen, href(number)
    return dot


def _front(dots: Sequence[_Dot], others: Sequence[tuple[float, float]], currency: str) -> str:
    costs = [cost for dot in dots for cost in (dot.low, dot.cost, dot.high)] + [cost for _, cost in others]
    hours = [dot.hours for dot in dots] + [found for found, _ in others]
    x = svg.padded(hours, svg.LEFT, svg.WIDTH - svg.RIGHT, logarithmic=min(hours, default=1) > 0)
    y = svg.padded(costs, svg.HEIGHT - svg.BOTTOM, svg.TOP + 12, logarithmic=min(costs, default=1) > 0)
    parts = svg.axes(x, y, "hours, central estimate", f"{currency}, bar: P10 to P90")
    parts += [svg.element("circle", cx=x.at(h), cy=y.at(c), r=2.5, class_="other") for h, c in others]
    on_front = sorted(dots, key=lambda dot: dot.hours)
    corners = " ".join(f"{x.at(dot.hours)},{y.at(dot.cost)}" for dot in on_front if dot.number)
    parts.append(svg.element("polyline", points=corners, class_="front"))
    parts += [_linked(dot, x, y) for dot in dots]
    said = f"{len(dots)} plans from {on_front[0].said} to {on_front[-1].said}" if dots else "no plan"
    return svg.drawing(parts, "Cost against time", said)


def _linked(dot: _Dot, x: svg.Scale, y: svg.Scale) -> str:
    at, height = x.at(dot.hours), y.at(dot.cost)
    inside = [
        svg.hint(dot.said),
        svg.line(at, y.at(dot.low), at, y.at(dot.high), "band"),
        svg.element("circle", cx=at, cy=height, r=14, class_="hit"),
        svg.element("circle", cx=at, cy=height, r=8 if dot.chosen else 5, class_="dot"),
        svg.text(str(dot.number), at + 9, height - 7, class_="tick"),
    ]
    return svg.element(
        "a",
        inside,
        href=dot.href,
        class_="point chosen" if dot.chosen else "point",
        aria_label=dot.said,
        aria_current="true" if dot.chosen else None,
    )


def _place(option: Option) -> tuple[float, float]:
    return option["time_hours"]["p50"], float(option["cost"]["p50"])


def _name(option: Option) -> str:
    many = f"{option['count']}× " if option["count"] > 1 else ""
    return f"{many}{option['hardware']} {option['purchase_model'].replace('_', '-')}"
