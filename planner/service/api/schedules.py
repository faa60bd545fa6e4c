"""Schedules: their schema, a check at once, and the front as a job."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request

from planner.service.access import Identity
from planner.service.api.shapes import FAULTS, ScheduleBody
from planner.service.asked import schedule_values
from planner.service.room import needs, room

router = APIRouter(tags=["schedules"], responses=FAULTS)
Viewer = Annotated[Identity, Depends(needs("viewer"))]
Planner = Annotated[Identity, Depends(needs("planner"))]


@router.get("/schedules/schema", summary="The JSON schema of schedules")
async def schema(who: Viewer) -> dict[str, Any]:
    from planner.api import schedule_schema

    found: dict[str, Any] = schedule_schema()
    return found


@router.post("/schedules/check", summary="Whether a schedule is sound, and its runs written out")
async def check(body: ScheduleBody, request: Request, who: Viewer) -> dict[str, Any]:
    from planner.api import check_schedule

    held = room(request)
    values = await held.apart(schedule_values, body.schedule)
    return {"runs": await held.apart(check_schedule, values)}


@router.post("/schedules/optimize", status_code=202, summary="Plan a schedule; it becomes a job")
async def optimize(body: ScheduleBody, request: Request, who: Planner) -> dict[str, str]:
    """Ask for the job's state at `address`; its plan_id names the plan when it is done."""
    held = room(request)
    await held.apart(schedule_values, body.schedule)
    asked = {"schedule": body.schedule, "points": body.points, "seconds": body.seconds}
    id = await held.apart(queue_schedule, held, asked, who.owner)
    return {"id": id, "address": f"/v1/jobs/{id}"}


def queue_schedule(held: Any, asked: dict[str, Any], owner: str) -> str:
    """Queue it with its values in place of its text. Raises UsageError and TooMany."""
    values = schedule_values(asked["schedule"])
    queued: str = held.queue("schedule", {**asked, "schedule": _plain(values)}, owner)
    return queued


def _plain(value: Any) -> Any:
    """As JSON holds it: YAML makes dates of what looks like one."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
