"""The schedule that `planner schedule init` writes: a year of a small team, with a comment at each choice."""

from __future__ import annotations

from pathlib import Path


def example() -> str:
    """The YAML text."""
    return (Path(__file__).parent / "example.yaml").read_text(encoding="utf-8")
