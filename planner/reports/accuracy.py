"""How right the speeds are, as `make accuracy` last found: the tables of docs/accuracy.md as data."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def accuracy() -> dict[str, Any]:
    """`about`: what was compared with what. `missed`: a note on bars. `tables`: title -> rows of cells."""
    found: dict[str, Any] = json.loads(
        (files("planner") / "data" / "accuracy.json").read_text(encoding="utf-8")
    )
    return found
