"""Long work: its state, its progress, its end."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request

from planner.service.access import Identity
from planner.service.api.shapes import FAULTS
from planner.service.room import needs, room

router = APIRouter(tags=["jobs"], responses=FAULTS)
Viewer = Annotated[Identity, Depends(needs("viewer"))]
Planner = Annotated[Identity, Depends(needs("planner"))]


@router.get("/jobs", summary="Jobs, newest first")
async def jobs(request: Request, who: Viewer) -> dict[str, Any]:
    held = room(request)
    return {"jobs": await held.apart(held.jobs.newest, who.sees)}


@router.get("/jobs/{id}", summary="One job")
async def job(id: str, request: Request, who: Viewer) -> dict[str, Any]:
    held = room(request)
    found = await held.apart(held.jobs.get, id, who.sees)
    if found is None:
        raise HTTPException(404, f"no job {id[:64]} of yours")
    return found


@router.post("/jobs/{id}/cancel", summary="End a job that has not ended")
async def cancel(id: str, request: Request, who: Planner) -> dict[str, Any]:
    held = room(request)
    await job(id, request, who)
    await held.apart(held.jobs.cancel, id, who.sees)
    return await job(id, request, who)
