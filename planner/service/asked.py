"""What callers of the service may ask for: names only, so that nobody has it read files or run code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.errors import UsageError


def checked_names(asked: Mapping[str, Any]) -> None:
    """Raises UsageError for a model or rig that is a path or a factory."""
    model = str(asked.get("model", ""))
    if not model:
        raise UsageError("which model? See planner workloads list, or GET /v1/workloads", "model")
    if ":" in model or "/" in model or model.endswith(".json"):
        raise UsageError(
            f"model = {model[:80]}: the service plans named workloads, see /v1/workloads", "model"
        )
    own = asked.get("own") or ()
    for rig in own.split(",") if isinstance(own, str) else own:
        if "/" in str(rig) or "." in str(rig):
            raise UsageError(f"own = {str(rig)[:80]}: the service takes rigs of the catalogue", "own")


def plan_document(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The plan document of one run. Raises the planner's errors."""
    from planner import api
    from planner.request import OptimizeRequest

    checked_names(asked)
    return api.optimize(OptimizeRequest.of(**asked)).to_json()


def schedule_values(schedule: str | Mapping[str, Any]) -> dict[str, Any]:
    """The values of a schedule, checked: every job a named workload. Raises UsageError."""
    from planner.schedule.reading import checked, parse

    values = parse(schedule) if isinstance(schedule, str) else dict(schedule)
    checked(values)
    for job in values.get("jobs", ()):
        checked_names({"model": job.get("workload", "")})
    return values
