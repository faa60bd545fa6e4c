"""A plain list on a terminal: some columns of some rows, nothing cut."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from planner.reports.look import NARROW, Look
from planner.reports.tabular import plain

_FIGURE = re.compile(r"-?[\d,]+(\.\d+)?( %)?$")

_UNBOUNDED = 100_000
"""Columns of a pipe: more than any row has."""


def shown(value: Any) -> str | None:
    """A setting as one would type it; None for one that is not set."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ",".join(f"{key}={item}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ",".join(str(item) for item in value)
    return str(value)


def listing(
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, str],
    look: Look,
    notes: Sequence[str] = (),
    drop: Sequence[str] = (),
) -> str:
    """Rows as aligned columns with a heading, notes below.

    columns: key -> heading, in order. drop: keys to leave out, first first, until the look's width is met.
    Numbers are set right. Nothing is ever cut: what does not fit a terminal is folded.
    """
    keys = [key for key in columns if any(row.get(key) is not None for row in rows)] or list(columns)
    cells = {key: [_cell(row.get(key)) for row in rows] for key in keys}
    keys = fitting(keys, lambda key: max(map(len, [columns[key], *cells[key]])), look, drop)
    body = [[cells[key][i] for key in keys] for i in range(len(rows))]
    right = {i for i, key in enumerate(keys) if _numbers(rows, key)}
    lines = table([columns[key] for key in keys], body, right, look)
    return lines + "".join("\n" + sentence(note, look) for note in notes)


def fitting(keys: Sequence[str], width_of: Any, look: Look, drop: Sequence[str]) -> list[str]:
    """`keys` without as many of `drop`, first first, as the look's width asks for."""
    left = list(keys)
    for key in (key for key in drop if key in keys):
        if look.width is None or sum(width_of(k) + 2 for k in left) - 2 <= look.width:
            break
        left.remove(key)
    return left


def table(
    heading: Sequence[str],
    body: Sequence[Sequence[str]],
    right: set[int],
    look: Look,
    styles: Sequence[str] = (),
) -> str:
    """Aligned columns through rich: bold heading, no frame, folded (never cut) on a narrow terminal.

    right: indices of the columns that are set right. styles: of each row, for a screen in colour.
    """
    import io

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for i, title in enumerate(heading):
        justify: Literal["left", "right"] = "right" if i in right else "left"
        grid.add_column(Text(title), justify=justify, overflow="fold", no_wrap=not look.wrap)
    for i, row in enumerate(body):
        grid.add_row(*(Text(cell) for cell in row), style=styles[i] if styles else None)
    out = io.StringIO()
    console = Console(
        file=out,
        width=look.width if look.wrap and look.width else _UNBOUNDED,
        force_terminal=look.color,
        color_system="standard" if look.color else None,
        no_color=not look.color,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    console.print(grid)
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def sentence(text: str, look: Look) -> str:
    """A sentence on its own line; wrapped only on a terminal, words kept whole."""
    if not look.wrap:
        return text + "\n"
    width = look.width or NARROW
    wrapped = textwrap.fill(
        text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return wrapped + "\n"


def _cell(value: Any) -> str:
    """A whole number in groups of three from five digits on; every other figure as it stands."""
    whole = isinstance(value, float) and value.is_integer()
    whole = whole or (isinstance(value, int) and not isinstance(value, bool))
    return f"{value:,.0f}" if whole and abs(value) >= 10_000 else plain(value)


def _numbers(rows: Sequence[Mapping[str, Any]], key: str) -> bool:
    """Whether a column holds numbers alone, or text that reads as numbers."""
    values = [row.get(key) for row in rows if row.get(key) is not None]
    return bool(values) and all(_FIGURE.match(plain(value)) for value in values)
