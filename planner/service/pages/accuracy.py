"""How right the planner is, missed bars too."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from planner.service.pages import asking
from planner.service.pages.render import page

router = APIRouter(prefix="/accuracy")


@router.get("", response_class=HTMLResponse)
async def accuracy(request: Request) -> HTMLResponse:
    """Every table of docs/accuracy.md."""
    from planner.reports.accuracy import accuracy as measured

    found = await asking.apart(measured)
    # The sentence is written for Markdown.
    about = found["about"].replace("*", "").replace("`", "")
    return page(request, "accuracy.html", about=about, missed=found["missed"], tables=found["tables"])
