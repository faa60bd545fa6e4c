"""What a mistake on the command line is answered with: what was wrong, the nearest valid, what to do."""

from __future__ import annotations

from collections.abc import Iterable

from planner.errors import UsageError
from planner.models.errors import nearest_names

FEW = 8
"""So many names are simply all named."""


def unknown(kind: str, name: str, known: Iterable[str], hint: str = "") -> UsageError:
    """`name` is none of the `known`; the message names the nearest, and all where they are few."""
    known = list(known)
    nearest = nearest_names(name, known, limit=1)
    advice = f' Did you mean "{nearest[0]}"?' if nearest else ""
    if len(known) <= FEW:
        advice += f" Known: {', '.join(known)}."
    return UsageError(f'no {kind} "{name}".{advice}{" " + hint if hint else ""}')
