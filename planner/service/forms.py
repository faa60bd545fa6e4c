"""Forms of pages: a token that only our own pages hold, tied to the browser's session."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from fastapi import HTTPException, Request

# New with every start: a form that was open over a restart is sent again, which costs a click.
_SECRET = secrets.token_bytes(32)
_SAFE = ("GET", "HEAD")


def csrf_of(session: str) -> str:
    """What a form of this session carries."""
    return hmac.new(_SECRET, session.encode(), hashlib.sha256).hexdigest()


async def check_form(request: Request) -> None:
    """A dependency of every page: gives templates the token, and refuses a form without it."""
    session = getattr(request.state, "session", "")
    request.state.csrf = csrf_of(session)
    if request.method in _SAFE:
        return
    given = str((await request.form()).get("csrf", ""))
    if not hmac.compare_digest(given.encode(), request.state.csrf.encode()):
        raise HTTPException(403, "this form is out of date; reload the page and send it again")
