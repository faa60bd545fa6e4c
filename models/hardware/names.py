"""How spelled names become ids: one folding rule, one error for a name that several cards share.

"NVIDIA GeForce RTX 4090", "RTX-4090" and "rtx_4090" fold to "rtx-4090". Folding drops brand words only; a
word that makes another product ("Laptop", "48GB", "D") stays and so never matches the plain card.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..errors import ModelsError, UnknownName

_BRANDS = frozenset({"nvidia", "geforce", "tesla", "amd", "instinct"})
_SEPARATORS = re.compile(r"[^a-z0-9]+")


def fold(name: str) -> str:
    """The key under which a spelling is looked up.

    >>> fold("NVIDIA GeForce RTX 4090")
    'rtx-4090'
    """
    words = (word for word in _SEPARATORS.split(name.casefold()) if word)
    return "-".join(word for word in words if word not in _BRANDS)


class AmbiguousName(UnknownName):
    """A spelling that fits several cards; `nearest` names them all."""

    def __init__(self, kind: str, name: str, choices: Iterable[str]) -> None:
        self.kind = kind
        self.name = name
        self.nearest = tuple(choices)
        ModelsError.__init__(
            self, f'{kind} "{name}" does not say which one is meant. Write one of: {", ".join(self.nearest)}'
        )
