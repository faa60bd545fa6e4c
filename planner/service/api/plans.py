"""Plans of one run at once, and plans that were kept: list, read, compare, report, delete."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, HTTPException, Query, Request, Response

from planner.service import repeats
from planner.service.access import Identity
from planner.service.api.shapes import FAULTS, OptimizeBody, json_bytes
from planner.service.asked import plan_document
from planner.service.room import needs, room

router = APIRouter(tags=["plans"], responses=FAULTS)
Viewer = Annotated[Identity, Depends(needs("viewer"))]
Planner = Annotated[Identity, Depends(needs("planner"))]
Id = Annotated[str, Query(max_length=64)]
Point = Annotated[int | None, Query(ge=1, le=100_000, description="Rank, or point of the front")]


@router.post("/optimize", summary="What a run costs and takes, on what")
async def optimize(body: OptimizeBody, request: Request, who: Viewer) -> Response:
    """The document of `planner optimize --format json`."""
    held = room(request)
    asked = body.model_dump(exclude_none=True)
    found = await held.apart(held.answers.of, "optimize", asked, lambda: plan_document(asked))
    return json_bytes(found)


@router.post("/plans", status_code=201, summary="Plan a run and keep the plan")
async def keep(
    body: OptimizeBody,
    request: Request,
    who: Planner,
    idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """Its id and its address. The same Idempotency-Key again answers the same plan and makes no other."""
    held = room(request)
    asked = body.model_dump(exclude_none=True)

    def make() -> dict[str, Any]:
        document = json.loads(held.answers.of("optimize", asked, lambda: plan_document(asked)))
        id = held.state.keep_plan(document, who.owner)
        return {"id": id, "address": f"/v1/plans/{id}"}

    found = await held.apart(repeats.once, held.state, who.owner, idempotency_key, asked, make)
    return json_bytes(json.dumps(found).encode(), 201)


@router.get("/plans", summary="Kept plans, newest first")
async def plans(request: Request, who: Viewer) -> dict[str, Any]:
    held = room(request)
    return {"plans": await held.apart(held.state.plans, who.sees)}


@router.get("/plans/diff", summary="What changed between two kept plans")
async def diff(request: Request, who: Viewer, before: Id, after: Id) -> dict[str, Any]:
    from planner.reports.plan_diff import diff_of

    first, second = await _kept(request, who, before), await _kept(request, who, after)
    return await room(request).apart(diff_of, first, second)


@router.get("/plans/{id}", summary="One kept plan, whole")
async def plan(id: str, request: Request, who: Viewer) -> Response:
    return json_bytes(json.dumps(await _kept(request, who, id)).encode())


@router.delete("/plans/{id}", status_code=204, summary="Forget a plan")
async def forget(id: str, request: Request, who: Planner) -> Response:
    held = room(request)
    if not await held.apart(held.state.forget_plan, id, who.sees):
        raise HTTPException(404, f"no plan {id[:64]} of yours")
    await held.apart(held.state.log, who.owner, "plan deleted", plan=id)
    return Response(status_code=204)


@router.get("/plans/{id}/report.html", summary="The plan as one self-contained page")
async def html(id: str, request: Request, who: Viewer, point: Point = None) -> Response:
    from planner.reports.html.page import page

    text = await room(request).apart(page, await _kept(request, who, id), point)
    headers = {"Content-Disposition": f'attachment; filename="plan-{id}.html"'}
    return Response(text, media_type="text/html; charset=utf-8", headers=headers)


@router.get("/plans/{id}/finance.zip", summary="The finance reports as CSV and XLSX")
async def finance(id: str, request: Request, who: Viewer, point: Point = None) -> Response:
    from planner.service.files import finance_zip

    body = await room(request).apart(finance_zip, await _kept(request, who, id), point)
    headers = {"Content-Disposition": f'attachment; filename="finance-{id}.zip"'}
    return Response(body, media_type="application/zip", headers=headers)


async def _kept(request: Request, who: Identity, id: str) -> dict[str, Any]:
    held = room(request)
    found = await held.apart(held.state.plan, id, who.sees)
    if found is None:
        raise HTTPException(404, f"no plan {id[:64]} of yours")
    document: dict[str, Any] = found["document"]
    return document
