"""What we know of hardware and workloads."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request

from planner.answer import SCHEMA_VERSION
from planner.service.access import Identity
from planner.service.api.shapes import FAULTS
from planner.service.room import needs, room

router = APIRouter(tags=["catalogue"], responses=FAULTS)
Viewer = Annotated[Identity, Depends(needs("viewer"))]


@router.get("/hardware", summary="GPUs, instances and rigs")
async def hardware(
    request: Request, who: Viewer, kind: Literal["gpu", "instance", "rig"] | None = None
) -> dict[str, Any]:
    from planner import api

    found = await room(request).apart(api.list_hardware, kind)
    return {"schema_version": SCHEMA_VERSION, "kind": "hardware", "hardware": list(found.rows)}


@router.get("/workloads", summary="Named workloads")
async def workloads(request: Request, who: Viewer) -> dict[str, Any]:
    from planner import api

    found = await room(request).apart(api.list_workloads)
    return {"schema_version": SCHEMA_VERSION, "kind": "workloads", "workloads": list(found.rows)}
