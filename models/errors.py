"""What can go wrong when asking how fast or how large a training step is.

ModelsError
├── UnknownName         no such GPU, instance, rig, workload or precision (carries the nearest names)
├── UnknownFigure       a catalogue figure nobody has published; carries the reason
├── BadConfig           a workload's configuration that cannot be built (names file and key)
├── TraceUnavailable    needs a trace that does not ship, and torch or transformers is not installed
└── BadData             a shipped or cached data file that does not read back (names file and key)
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ModelsError(Exception):
    """Root of this package's errors; the message says what, where and what to do next."""


class UnknownName(ModelsError):
    """A name that is in no catalogue. `kind` is what was looked for, `nearest` the closest known names."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        self.kind = kind
        self.name = name
        self.nearest = nearest_names(name, known)
        did_you_mean = f' Did you mean "{self.nearest[0]}"?' if self.nearest else ""
        super().__init__(f'no {kind} "{name}".{did_you_mean}{" " + hint if hint else ""}')


class UnknownFigure(ModelsError):
    """A figure that is `None` in the catalogue was needed."""


class BadConfig(ModelsError):
    """A workload configuration that cannot be built or traced."""


class TraceUnavailable(ModelsError):
    """The trace does not ship and cannot be made here."""


class BadData(ModelsError):
    """A data file that does not read back."""


def nearest_names(name: str, known: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """The known names closest to `name`, best first; empty where nothing is close."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=limit, cutoff=0.5)
    return tuple(by_folded[folded] for folded in close)
