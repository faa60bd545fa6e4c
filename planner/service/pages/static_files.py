"""The style sheet, the script and the icon, under addresses that change with their content."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from planner.service.pages.render import STATIC, static_file

router = APIRouter(prefix="/static")

_FOR_GOOD = "public, max-age=31536000, immutable"


@router.get("/{name}")
async def static(name: str) -> Response:
    """One of the files there are; nothing is looked up on the disk by a name from outside."""
    if name not in STATIC:
        return Response("no such file", status_code=404, media_type="text/plain")
    return Response(static_file(name), media_type=STATIC[name], headers={"Cache-Control": _FOR_GOOD})
