"""What things cost: stored offers with their ages, and how each moved."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from planner.service.pages import asking
from planner.service.pages.faults import TELLABLE, told
from planner.service.pages.fields import query
from planner.service.pages.render import page

router = APIRouter(prefix="/prices")

FILTERS = ("item", "provider", "region", "contract", "kind")
PER_PAGE = 100
_MOST_DRAWN = 6


@router.get("", response_class=HTMLResponse)
async def prices(request: Request) -> HTMLResponse:
    """The latest offer of each key as of a moment, filtered, a page at a time."""
    from planner import api

    filled = _filled(request)
    try:
        listing = await asking.apart(
            api.list_prices, **{key: filled.get(key) for key in FILTERS}, as_of=filled.get("as_of")
        )
    except TELLABLE as error:
        fault = told(error)
        return page(request, "prices.html", fault.status, filled=filled, filters=FILTERS, fault=fault)
    leaves = range(0, len(listing.rows) or 1, PER_PAGE)
    at = _leaf(request.query_params.get("leaf"), len(leaves))
    return page(
        request,
        "prices.html",
        filled=filled,
        filters=FILTERS,
        fault=None,
        rows=listing.rows[leaves[at] :][:PER_PAGE],
        count=len(listing.rows),
        leaves=[(number, query(filled, leaf=number)) for number, _ in enumerate(leaves, 1)],
        leaf=at + 1,
        query=query(filled),
    )


@router.get("/history", response_class=HTMLResponse)
async def history(request: Request) -> HTMLResponse:
    """How the prices that pass the filters moved, drawn and as a table."""
    from planner import prices as price_room
    from planner.reports.drawings import amounts

    filled = _filled(request)
    filters = {key: filled.get(key) for key in FILTERS}
    try:
        series = await asking.apart(price_room.price_series, filters, filled.get("as_of"))
        moves = await asking.apart(price_room.price_history, filters, filled.get("as_of"))
    except TELLABLE as error:
        fault = told(error)
        return page(request, "fault.html", fault.status, fault=fault, query=query(filled))
    moving = [one for one in series if len(one.steps) > 1]  # a single dot says no more than the table does
    return page(
        request,
        "price_history.html",
        filled=filled,
        drawings=[(one.label, amounts.price(one)) for one in moving[:_MOST_DRAWN]],
        left=len(moving[_MOST_DRAWN:]),
        rows=moves.rows[-300:],
        count=len(moves.rows),
    )


def _filled(request: Request) -> dict[str, str]:
    asked = request.query_params
    return {key: asked[key].strip()[:200] for key in (*FILTERS, "as_of") if asked.get(key, "").strip()}


def _leaf(asked: str | None, count: int) -> int:
    """Which hundred rows to show, from 0; the first where none or none of them was asked for."""
    known = {str(number): index for index, number in enumerate(range(1, count + 1))}
    return known.get(asked or "", 0)
