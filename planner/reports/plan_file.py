"""A plan as JSON holds it: read from a file and checked, and the plan in it that is to be shown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planner.errors import UsageError

Document = Mapping[str, Any]
_KINDS = {"schedule": "front", "optimize": "options"}


def read_document(path: str | Path) -> Document:
    """The document of a plan file of either kind. Raises UsageError that says how to write one."""
    how = "write one with: planner optimize … --format json -o plan.json"
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f'cannot read "{path}": {getattr(error, "strerror", None) or "not UTF-8"}; {how}'
        ) from error
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f'"{path}" is no JSON: {error}; {how}') from error
    return checked(found, str(path))


def checked(found: Any, name: str) -> Document:
    """`found` if it is a plan of this schema. name: what to call it. Raises UsageError."""
    listed = _KINDS.get(str(found.get("kind"))) if isinstance(found, dict) else None
    if listed is None or not isinstance(found.get(listed), list):
        raise UsageError(f'"{name}" is no plan: planner optimize … --format json writes plans')
    if str(found.get("schema_version", "")).partition(".")[0] != "1":
        raise UsageError(
            f'"{name}" has schema version {found.get("schema_version")!r}; this planner reads 1.x'
        )
    if not found[listed]:
        raise UsageError(f'"{name}" holds no plan to show')
    return dict(found)


def is_schedule(document: Document) -> bool:
    return bool(document["kind"] == "schedule")


def plan_of(document: Document, point: int | None = None) -> Mapping[str, Any]:
    """The point of a schedule's front, or the option of that rank; None: the one to book.

    Raises UsageError for a number that the plan does not have.
    """
    key, plans = ("point", document["front"]) if is_schedule(document) else ("rank", document["options"])
    wanted = point if point is not None else document.get("chosen") or plans[0][key]
    for plan in plans:
        if plan[key] == wanted:
            return dict(plan)
    raise UsageError(f"no plan {wanted} in this file: 1 to {len(plans)}", "point")


def number_of(plan: Mapping[str, Any]) -> int:
    return int(plan["point"] if "point" in plan else plan["rank"])


def name_of(plan: Mapping[str, Any]) -> str:
    """What a reader calls it: "plan 3, hybrid", or hardware and purchase model."""
    if "point" in plan:
        return f"plan {plan['point']}, {plan['kind']}"
    times = f"{plan['count']} × " if plan["count"] > 1 else ""
    where = f" in {plan['region']}" if plan["region"] else ""
    return f"{times}{plan['hardware']}, {plan['purchase_model'].replace('_', ' ')}, {plan['provider']}{where}"
