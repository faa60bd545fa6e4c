"""--point of every report: which plan of the file."""

from __future__ import annotations

from planner.errors import UsageError


def number_of_plan(written: str | None) -> int | None:
    """None: the one to book. Raises UsageError for what is no number."""
    if written is None:
        return None
    if not written.isdecimal():
        raise UsageError(f"--point {written}: a number of a plan is meant", "point")
    return int(written)
