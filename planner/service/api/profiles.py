"""Calibration profiles: upload, list, read, compare. A profile is JSON; nothing else is read."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from pydantic import Field, JsonValue
from sqlalchemy import text

from planner.errors import UsageError
from planner.service.access import Identity
from planner.service.api.shapes import FAULTS, Body
from planner.service.room import Room, needs, room
from planner.service.state import new_id, now

router = APIRouter(prefix="/profiles", tags=["profiles"], responses=FAULTS)
Viewer = Annotated[Identity, Depends(needs("viewer"))]
Planner = Annotated[Identity, Depends(needs("planner"))]
Id = Annotated[str, Query(max_length=64)]


class ProfileBody(Body):
    """profile: what `planner calibrate -o FILE.json` wrote."""

    name: str = Field(min_length=1, max_length=100)
    profile: dict[str, JsonValue]


@router.post("", status_code=201, summary="Upload a calibration profile")
async def upload(body: ProfileBody, request: Request, who: Planner) -> dict[str, str]:
    held = room(request)
    id = await held.apart(_keep, held, body, who.owner)
    return {"id": id, "address": f"/v1/profiles/{id}"}


@router.get("", summary="Uploaded profiles, newest first")
async def profiles(request: Request, who: Viewer) -> dict[str, Any]:
    found = await room(request).apart(
        room(request).state.rows,
        "SELECT id, name, owner, created_at FROM service_profiles "
        "WHERE :everyone = 1 OR owner = :owner ORDER BY created_at DESC, id LIMIT 500",
        everyone=int(who.sees is None),
        owner=who.sees or "",
    )
    return {"profiles": found}


@router.get("/compare", summary="Two profiles side by side")
async def compare(request: Request, who: Viewer, first: Id, second: Id) -> dict[str, Any]:
    """Times of the second over those of the first, by kernel."""
    from planner.models.calibration.device_compare import compare as compared

    held = room(request)
    one, other = [_parsed(await held.apart(_document, held, id, who)) for id in (first, second)]
    found = await held.apart(compared, one, other)
    return {"first": first, "second": second, **_plain(found)}


@router.get("/{id}", summary="One profile")
async def profile(id: str, request: Request, who: Viewer) -> dict[str, Any]:
    held = room(request)
    return await held.apart(_document, held, id, who)


def _keep(held: Room, body: ProfileBody, owner: str) -> str:
    _parsed(body.profile)
    id = new_id()
    with held.state.writes() as connection:
        connection.execute(
            text(
                "INSERT INTO service_profiles (id, name, owner, created_at, document) "
                "VALUES (:id, :name, :owner, :at, :document)"
            ),
            {
                "id": id,
                "name": body.name,
                "owner": owner,
                "at": now(),
                "document": json.dumps(body.profile),
            },
        )
    return id


def _document(held: Room, id: str, who: Identity) -> dict[str, Any]:
    found = held.state.rows("SELECT owner, document FROM service_profiles WHERE id = :id", id=id)
    if not found or who.sees not in (None, found[0]["owner"]):
        raise HTTPException(404, f"no profile {id[:64]} of yours")
    document: dict[str, Any] = json.loads(found[0]["document"])
    return document


def _parsed(document: dict[str, Any]) -> Any:
    from planner.models.calibration.device_profile import from_json
    from planner.models.errors import ModelsError

    try:
        return from_json(document, "profile")
    except ModelsError as error:
        raise UsageError(str(error), "profile") from error


def _plain(found: Any) -> dict[str, Any]:
    from dataclasses import asdict

    plain: dict[str, Any] = json.loads(json.dumps(asdict(found), default=str))
    return plain
