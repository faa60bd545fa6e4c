"""What every drawing needs: a scale with round ticks, and elements whose text cannot break out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 640, 360
"""Of a drawing, in its own units; the style sheet scales it."""

LEFT, RIGHT, TOP, BOTTOM = 64, 16, 16, 44
"""Margins that hold the axes' labels."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values between `low` and `high` onto the span from `start` to `end` of a drawing.

    logarithmic: equal ratios take equal lengths; values must then be above 0.
    """

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """Where `value` stands, held inside the span."""
        low, high, value = (math.log(v) if self.logarithmic else v for v in (self.low, self.high, value))
        share = 0.5 if high <= low else (value - low) / (high - low)
        return round(self.start + (self.end - self.start) * min(max(share, 0.0), 1.0), 2)

    def ticks(self) -> tuple[float, ...]:
        """Round values inside the scale, four to ten of them where the span allows."""
        return _log_ticks(self.low, self.high) if self.logarithmic else _ticks(self.low, self.high)


def padded(values: Iterable[float], start: float, end: float, *, logarithmic: bool = False) -> Scale:
    """A scale that holds all `values` with a little room at both ends. A linear one starts at 0."""
    known = [value for value in values if value > 0 or not logarithmic] or [1.0]
    low, high = min(known), max(known)
    if logarithmic:
        room = max((high / low) ** 0.06, 1.1)
        return Scale(low / room, high * room, start, end, logarithmic=True)
    low = min(low, 0.0)
    return Scale(low, high + ((high - low) * 0.06 or 1.0), start, end)


def _ticks(low: float, high: float) -> tuple[float, ...]:
    if high <= low:
        return (low,)
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    first = math.ceil(low / step)
    return tuple(number * step for number in range(first, math.floor(high / step) + 1))


def _log_ticks(low: float, high: float) -> tuple[float, ...]:
    """1, 2 and 5 of each decade; 1 alone where these are many; round steps where they are hardly any."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = tuple(f * 10.0**d for d in decades for f in factors if low <= f * 10.0**d <= high)
        if len(found) < 3:
            return _ticks(low, high)
        if len(found) <= 8:
            return found
    return found[:: math.ceil(len(found) / 8)]


def number(value: float) -> str:
    """A tick's figure, short: 0.05, 20, 1,500, 2 M."""
    for size, letter in ((1e9, " B"), (1e6, " M")):
        if abs(value) >= size:
            return f"{value / size:,.4g}{letter}"
    return f"{value:,.10g}" if abs(value) < 10_000 else f"{value:,.0f}"


def element(name: str, children: str | Sequence[str] = "", **attributes: object) -> str:
    """One element; children are markup already, attributes are escaped. class_ is written class, a_b a-b."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = children if isinstance(children, str) else "".join(children)
    return f"<{name}{written}>{inner}</{name}>"


def hint(said: str) -> str:
    """What a pointer shows and a screen reader says of the element it stands in."""
    return element("title", escape(said))


def text(said: str, x: float, y: float, **attributes: object) -> str:
    """A piece of text, escaped."""
    return element("text", escape(said), x=x, y=y, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def drawing(parts: Sequence[str], title: str, description: str, height: float = HEIGHT) -> str:
    """The whole SVG. description: says in words what the eye would see."""
    head = hint(title) + element("desc", escape(description))
    return element(
        "svg",
        [head, *parts],
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height:g}",
        class_="drawing",
        role="group",
        aria_label=f"{title}. {description}",
    )


def axes(x: Scale, y: Scale, x_label: str, y_label: str) -> list[str]:
    """Grid lines with their figures, and what the axes mean."""
    parts = []
    bottom, top = y.start, y.end
    for value in x.ticks():
        at = x.at(value)
        parts += [line(at, top, at, bottom, "grid"), text(number(value), at, bottom + 16, class_="tick mid")]
    for value in y.ticks():
        at = y.at(value)
        parts += [
            line(x.start, at, x.end, at, "grid"),
            text(number(value), x.start - 6, at + 4, class_="tick end"),
        ]
    middle = (x.start + x.end) / 2
    parts.append(text(x_label, middle, bottom + 36, class_="label mid"))
    parts.append(text(y_label, x.start - 48, top - 4, class_="label"))
    return parts
