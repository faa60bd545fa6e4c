"""GPUs, instances and rigs, each figure with its unit, source and date."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from planner.service.pages import asking
from planner.service.pages.faults import TELLABLE, told
from planner.service.pages.render import page

router = APIRouter(prefix="/hardware")

_KINDS = {"gpu": "GPUs", "instance": "Instances", "rig": "Rigs"}


@router.get("", response_class=HTMLResponse)
async def hardware(request: Request) -> HTMLResponse:
    """All of one kind, or of every kind."""
    from planner import api

    kind = request.query_params.get("kind")
    kind = kind if kind in _KINDS else None
    listing = await asking.apart(api.list_hardware, kind)
    return page(request, "hardware.html", kinds=_KINDS, kind=kind, rows=listing.rows)


@router.get("/{name}", response_class=HTMLResponse)
async def one(request: Request, name: str) -> HTMLResponse:
    """One of them."""
    from planner import api
    from planner.reports.records import plain_values, record_rows

    try:
        found = await asking.apart(api.show_hardware, name)
    except TELLABLE as error:
        fault = told(error)
        return page(request, "fault.html", 404, fault=fault, query="")
    document = plain_values(found)
    return page(request, "hardware_one.html", id=document["id"], rows=record_rows(document))
