"""Listing: rows of plain values under one name, as the list commands print them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .answer import SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class Listing:
    """kind: the JSON key of the rows: "offers", "hardware" or "workloads". rows: plain values, same keys each."""

    kind: str
    rows: tuple[Mapping[str, Any], ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": self.kind,
            self.kind: [dict(row) for row in self.rows],
        }
