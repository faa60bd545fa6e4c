"""A price over time as rows of block characters: for a glance on a terminal, not for reading figures off."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from planner.reports.look import NARROW, Look
from planner.reports.tabular import plain

if TYPE_CHECKING:
    from planner.pricing.history import Series

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_ASCII = "  .::-=+#"
ROWS = 6


def plot(series: Series, look: Look, rows: int = ROWS) -> str:
    """The series as a step chart `rows` lines high and as wide as the look, from zero to its highest amount.

    From zero, because a chart that starts elsewhere makes every change look like a collapse.
    A time before the first observation, or one with an unknown amount, is left blank.
    """
    known = [step.offer.amount for step in series.steps if step.offer.amount is not None]
    if not known:
        return f"{series.label}: no amount is known\n"
    top = max(known)
    label_width = max(len(_short(top)), 1)
    width = max((look.width or NARROW) - label_width - 2, 16)
    first, last = series.steps[0].offer.observed_at, series.steps[-1].offer.observed_at
    heights = [_eighths(series.at(when), top, rows) for when in _instants(first, last, width)]
    blocks = _EIGHTHS if look.unicode else _ASCII
    lines = [series.label]
    for row in range(rows, 0, -1):
        label = {rows: _short(top), 1: "0"}.get(row, "")
        cells = "".join(blocks[min(max(height - 8 * (row - 1), 0), 8)] for height in heights)
        lines.append(f"{label:>{label_width}} {cells}".rstrip())
    ends = f"{first:%Y-%m-%d}", f"{last:%Y-%m-%d}"
    lines.append(" " * (label_width + 1) + ends[0] + ends[1].rjust(width - len(ends[0])))
    return "\n".join(lines) + "\n"


def _instants(first: datetime, last: datetime, count: int) -> list[datetime]:
    """Equally spaced, both ends among them."""
    return [first + (last - first) * number / (count - 1) for number in range(count)]


def _eighths(amount: Decimal | None, top: Decimal, rows: int) -> int:
    """How many eighths of a line; at least one for a known amount, so that it can be told from unknown."""
    if amount is None:
        return 0
    return max(int(amount / top * rows * 8), 1)


def _short(amount: Decimal) -> str:
    return plain(round(amount, 2)) if amount >= 1 else plain(amount)
