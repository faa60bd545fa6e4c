"""Where a browser shows its token, once; it is kept in a cookie that scripts cannot read."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from planner.service.door import COOKIE
from planner.service.pages.render import page
from planner.service.room import room

router = APIRouter()
_SEVEN_DAYS = 604_800  # [s]


@router.get("/sign-in", response_class=HTMLResponse)
async def sign_in(request: Request) -> HTMLResponse:
    return page(request, "sign_in.html", error="")


@router.post("/sign-in")
async def signed_in(request: Request) -> Response:
    held = room(request)
    token = str((await request.form()).get("token", "")).strip()
    if await held.apart(held.tokens.who, token) is None:
        return page(request, "sign_in.html", 422, error="This token is unknown, has ended or was revoked.")
    answer = RedirectResponse("/", 303)
    secure = request.url.scheme == "https"
    answer.set_cookie(
        COOKIE, token, max_age=_SEVEN_DAYS, httponly=True, samesite="strict", secure=secure, path="/"
    )
    return answer


@router.post("/sign-out")
async def signed_out() -> Response:
    answer = RedirectResponse("/sign-in", 303)
    answer.delete_cookie(COOKIE, path="/")
    return answer
