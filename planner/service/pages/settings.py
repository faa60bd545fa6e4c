"""Settings in force and where each came from, secrets masked."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from planner.service.pages import asking
from planner.service.pages.render import page

router = APIRouter(prefix="/settings")


@router.get("", response_class=HTMLResponse)
async def settings(request: Request) -> HTMLResponse:
    """As `planner config show` prints them."""
    return page(request, "settings.html", groups=await asking.apart(_groups))


def _groups() -> dict[str, list[dict[str, Any]]]:
    from planner.config import STORE_KEY, in_force
    from planner.pricing.connect import place
    from planner.reports.lists import shown

    rows = [{"key": one.key, "value": shown(one.value), "origin": one.origin} for one in in_force()]
    for row in rows:
        if row["key"] == STORE_KEY and row["value"]:
            row["value"] = place(row["value"]).shown
    return {"Plans": rows}
