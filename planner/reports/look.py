"""What the reader's screen can show: its width, colour, and letters beyond ASCII."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

# One letter for one letter, so that columns stay aligned.
_ASCII = str.maketrans(
    {"★": "*", "×": "x", "·": "-", "–": "-", "—": "-", "±": "~", "≥": ">", "≤": "<", "→": ">", "≈": "~",
     "−": "-", "├": "|", "└": "`", "─": "-", "│": "|", "“": '"', "”": '"', "’": "'", "…": "."}
)  # fmt: skip

# What moves a cursor, rings or recolours. Names come from files and flags; a terminal would obey them.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_OWN_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")

NARROW = 80
"""Columns of a terminal that does not say how wide it is."""


@dataclass(frozen=True, slots=True)
class Look:
    """How to lay an answer out.

    width: columns to fit into, or None for a pipe or a file, where nothing is dropped, wrapped or cut.
    wrap: whether long sentences are wrapped to the width; only on a terminal.
    color: whether escape codes may be written.
    unicode: whether letters beyond ASCII can be shown.
    """

    width: int | None = None
    wrap: bool = False
    color: bool = False
    unicode: bool = True

    def text(self, text: str) -> str:
        """`text` in letters that the reader's locale can show; control characters are spelt out.

        Where colour is on, its codes stay, since our own cannot be told from those in a name.
        """
        parts = _OWN_COLOUR.split(text) if self.color else [text]
        text = "".join(part if at % 2 else _CONTROL.sub(_spelt, part) for at, part in enumerate(parts))
        if self.unicode:
            return text
        return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


PLAIN = Look()
"""A file in UTF-8: everything on one line each, no colour."""


def _spelt(control: re.Match[str]) -> str:
    return control[0].encode("unicode_escape").decode("ascii")


def look_of(stream: TextIO, color: str = "auto", environ: Mapping[str, str] = os.environ) -> Look:
    """The look of what is written to `stream`.

    color: "always", "never" or "auto"; auto honours NO_COLOR, then FORCE_COLOR, then TERM=dumb, then
    whether `stream` is a terminal. A pipe whose environment sets COLUMNS has columns dropped to fit,
    but nothing wrapped or cut.
    """
    terminal = stream.isatty()
    columns = environ.get("COLUMNS", "")
    width: int | None = int(columns) if re.fullmatch("0*[1-9][0-9]{0,5}", columns, re.ASCII) else None
    if width is None and terminal:
        width = shutil.get_terminal_size((NARROW, 24)).columns
    return Look(
        width=width,
        wrap=terminal,
        color=_colored(color, terminal, environ),
        unicode=_unicode(stream, environ),
    )


def _colored(color: str, terminal: bool, environ: Mapping[str, str]) -> bool:
    if color != "auto":
        return color == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return terminal and environ.get("TERM") != "dumb"


def _unicode(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Python writes UTF-8 even under LC_ALL=C, so the locale itself is asked, not only the stream."""
    encoding = (getattr(stream, "encoding", None) or sys.getdefaultencoding()).lower().replace("_", "-")
    if encoding not in ("utf-8", "utf8"):
        return False
    locale = next((environ[key] for key in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(key)), "")
    if locale.split(".")[0].upper() in ("C", "POSIX") and "." not in locale:
        return False
    return "." not in locale or "utf" in locale.split(".", 1)[1].lower()
