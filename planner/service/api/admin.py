"""Tokens and the audit log, for admins."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from pydantic import Field

from planner.service.access import Identity
from planner.service.api.shapes import FAULTS, Body
from planner.service.room import needs, room

router = APIRouter(tags=["admin"], responses=FAULTS)
Admin = Annotated[Identity, Depends(needs("admin"))]


class TokenBody(Body):
    """days: how long it holds."""

    name: str = Field(min_length=1, max_length=100)
    role: Literal["viewer", "planner", "admin"] = "viewer"
    days: float = Field(90, gt=0, le=3660)


@router.get("/tokens", summary="Every token, without the token itself")
async def tokens(request: Request, who: Admin) -> dict[str, Any]:
    held = room(request)
    return {"tokens": await held.apart(held.tokens.all)}


@router.post("/tokens", status_code=201, summary="Make a token; it is shown once")
async def new(body: TokenBody, request: Request, who: Admin) -> dict[str, str]:
    held = room(request)
    id, token = await held.apart(held.tokens.new, body.name, body.role, body.days)
    await held.apart(held.state.log, who.owner, "token made", token=id, name=body.name, role=body.role)
    return {"id": id, "token": token}


@router.delete("/tokens/{id}", status_code=204, summary="Revoke a token")
async def revoke(id: str, request: Request, who: Admin) -> Response:
    held = room(request)
    if not await held.apart(held.tokens.revoke, id):
        raise HTTPException(404, f"no token {id[:64]} to revoke")
    await held.apart(held.state.log, who.owner, "token revoked", token=id)
    return Response(status_code=204)


@router.get("/audit", summary="Who changed what, newest first")
async def audit(
    request: Request, who: Admin, limit: Annotated[int, Query(ge=1, le=1000)] = 200
) -> dict[str, Any]:
    held = room(request)
    return {"audit": await held.apart(held.state.audit, limit)}
