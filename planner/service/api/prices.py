"""Stored prices: the latest, how they moved, whether they are sound, and a refresh as a job."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field

from planner.answer import SCHEMA_VERSION
from planner.service.access import Identity
from planner.service.api.shapes import FAULTS, Body, json_bytes
from planner.service.room import needs, room

router = APIRouter(prefix="/prices", tags=["prices"], responses=FAULTS)
Viewer = Annotated[Identity, Depends(needs("viewer"))]
Admin = Annotated[Identity, Depends(needs("admin"))]
Name = Annotated[str | None, Query(max_length=200)]


def filters(
    item: Name = None, provider: Name = None, region: Name = None, contract: Name = None, kind: Name = None
) -> dict[str, str | None]:
    """What to keep; empty keeps all."""
    return {"item": item, "provider": provider, "region": region, "contract": contract, "kind": kind}


Filters = Annotated[dict[str, str | None], Depends(filters)]
AsOf = Annotated[str | None, Query(max_length=40, description="As known then: a date, or RFC 3339")]
Limit = Annotated[int, Query(ge=1, le=10_000)]
Offset = Annotated[int, Query(ge=0, le=10_000_000)]


@router.get("", summary="The latest offer of each price, with its source and age")
async def latest(
    request: Request,
    who: Viewer,
    wanted: Filters,
    as_of: AsOf = None,
    limit: Limit = 1000,
    offset: Offset = 0,
) -> Response:
    """An unknown amount is null, never zero. `count` says how many pass the filters in all."""
    from planner import api

    def work() -> dict[str, Any]:
        rows = api.list_prices(**wanted, as_of=as_of).rows
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "prices",
            "count": len(rows),
            "offset": offset,
            "prices": list(rows[offset : offset + limit]),
        }

    held = room(request)
    asked = {**wanted, "as_of": as_of, "limit": limit, "offset": offset}
    return json_bytes(await held.apart(held.answers.of, "prices", asked, work))


@router.get("/history", summary="How prices moved, oldest first")
async def history(request: Request, who: Viewer, wanted: Filters, as_of: AsOf = None) -> dict[str, Any]:
    from planner.prices import price_history

    found = await room(request).apart(price_history, wanted, as_of)
    return {"schema_version": SCHEMA_VERSION, "kind": "history", "history": list(found.rows)}


@router.get("/verify", summary="Whether every stored price is sound")
async def verify(request: Request, who: Viewer) -> dict[str, Any]:
    from dataclasses import asdict

    from planner.prices import verify_prices

    found = await room(request).apart(verify_prices)
    return {"findings": [asdict(each) for each in found.findings]}


class RefreshBody(Body):
    """sources: which sellers; empty: the usual ones."""

    sources: list[Annotated[str, Field(max_length=100)]] = Field([], max_length=50)


@router.post("/refresh", status_code=202, summary="Ask the sellers now; it becomes a job")
async def refresh(body: RefreshBody, request: Request, who: Admin) -> dict[str, str]:
    held = room(request)
    id = await held.apart(held.queue, "refresh", {"sources": body.sources}, who.owner)
    await held.apart(held.state.log, who.owner, "refresh asked", job=id)
    return {"id": id, "address": f"/v1/jobs/{id}"}
