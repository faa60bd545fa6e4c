"""Listing: rows of plain values under one name, as the list commands print them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .answer import SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class Listing:
    """kind: the JSON key of the rows, such as "offers". rows: plain values, the same keys in each."""

    kind: str
    rows: tuple[Mapping[str, Any], ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": self.kind,
            self.kind: [dict(row) for row in self.rows],
        }
