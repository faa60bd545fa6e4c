"""Every request comes through here: its id, who asks, limits, headers, the log line and the figures.

Plain ASGI, so that answers that stream are neither held back nor copied.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection

from planner.pricing.errors import PricingError
from planner.service.access import LOCAL, Identity, Tokens
from planner.service.metrics import Metrics
from planner.service.settings import ServiceSettings

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "planner_token"
SESSION = "planner_session"
_SAFE = ("GET", "HEAD", "OPTIONS")
_OPEN = ("/healthz", "/readyz", "/sign-in", "/static/")
_ID = re.compile(r"[\w.-]{1,64}\Z")
_LOG = logging.getLogger("planner.requests")
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_MOST_CLIENTS = 10_000


class Refused(Exception):
    """A request that goes no further. after: seconds until it may be tried again."""

    def __init__(self, status: int, why: str, message: str, after: int | None = None) -> None:
        self.status, self.why, self.after = status, why, after
        super().__init__(message)


class Rate:
    """Requests of one client a minute: a bucket that fills up steadily."""

    def __init__(self, per_minute: int) -> None:
        self.per_second, self.most = per_minute / 60, max(per_minute / 6, 10.0)
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def takes(self, client: str) -> bool:
        at = time.monotonic()
        left, seen = self._left.pop(client, (self.most, at))
        left = min(self.most, left + (at - seen) * self.per_second)
        self._left[client] = (max(left - 1, 0.0), at)
        if len(self._left) > _MOST_CLIENTS:
            self._left.popitem(last=False)
        return left >= 1


class Door:
    """Wraps the app. inside: requests that are being answered."""

    def __init__(self, app: App, settings: ServiceSettings, tokens: Tokens, metrics: Metrics) -> None:
        self.app, self.settings, self.tokens, self.metrics = app, settings, tokens, metrics
        self.rate = Rate(settings.per_minute)
        self.inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        asked = HTTPConnection(scope).headers.get("x-request-id", "")
        id = asked if _ID.match(asked) else secrets.token_hex(8)
        status = 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message["headers"], *_added(scope, id, message)]}
            await send(message)

        self.inside += 1
        self.metrics.inside.set(self.inside)
        try:
            try:
                await self._let_in(scope)
                await self.app(scope, _limited(receive, self.settings.body_bytes), sending)
            except Refused as refused:
                self.metrics.refused.labels(refused.why).inc()
                await _refuse(scope, refused, sending)
        finally:
            self.inside -= 1
            self._note(scope, id, status, time.perf_counter() - began)

    async def _let_in(self, scope: Scope) -> None:
        connection = HTTPConnection(scope)
        headers, path = connection.headers, scope["path"]
        if not self.settings.takes_host(headers.get("host", "")):
            raise Refused(421, "host", "this server does not answer to that name; see --allowed-host")
        client = (scope.get("client") or ("",))[0]
        if not self.rate.takes(client):
            raise Refused(429, "rate", "too many requests from this address; slow down", 1)
        if self.inside > self.settings.concurrent and not path.startswith(_OPEN):
            raise Refused(503, "busy", "too many requests at once; try again", 1)
        _check_size(headers, self.settings.body_bytes)
        origin = headers.get("origin")
        if scope["method"] not in _SAFE and origin and _place(origin) != headers.get("host", "").lower():
            raise Refused(403, "origin", "this request was sent from a page of another site")
        state = scope.setdefault("state", {})
        state["session"] = connection.cookies.get(SESSION) or secrets.token_urlsafe(18)
        state["new_session"] = SESSION not in connection.cookies
        state["identity"] = who = await self._who(connection)
        if who is None and not path.startswith(_OPEN):
            raise Refused(
                401, "token", "a token that holds is needed: send it as Authorization: Bearer TOKEN"
            )
        state["who"] = None if who is None or who is LOCAL else who.owner

    async def _who(self, connection: HTTPConnection) -> Identity | None:
        kind, _, token = connection.headers.get("authorization", "").partition(" ")
        token = token.strip() if kind.lower() == "bearer" else connection.cookies.get(COOKIE, "")
        if token:
            # One that has ended is nobody's, also where none is needed: else it would make an admin.
            return await run_in_threadpool(self._known, token)
        return None if self.settings.tokens else LOCAL

    def _known(self, token: str) -> Identity | None:
        try:
            return self.tokens.who(token)
        except PricingError as error:
            raise Refused(503, "database", "tokens cannot be looked up now; try again", 2) from error

    def _note(self, scope: Scope, id: str, status: int, seconds: float) -> None:
        # The route's pattern and not the path: paths hold ids, and every id would be a series of its own.
        route = getattr(scope.get("route"), "path", "none")
        self.metrics.inside.set(self.inside)
        self.metrics.requests.labels(scope["method"], route, status).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        who = scope.get("state", {}).get("identity")
        _LOG.info(
            "request",
            extra={
                "fields": {
                    "request_id": id,
                    "method": scope["method"],
                    "path": scope["path"][:200],
                    "status": status,
                    "seconds": round(seconds, 4),
                    "who": who.owner if who else None,
                }
            },
        )


def _check_size(headers: Any, most: int) -> None:
    said = headers.get("content-length")
    if said is None:
        return
    if not (said.isascii() and said.isdecimal()) or len(said) > 15:
        raise Refused(400, "length", "Content-Length is no number")
    if int(said) > most:
        raise Refused(413, "size", f"a request may have {most:,} bytes")


def _limited(receive: Receive, most: int) -> Receive:
    """The same, cut off where a body without a length turns out too long."""
    seen = 0

    async def receiving() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise Refused(413, "size", f"a request may have {most:,} bytes")
        return message

    return receiving


def _place(origin: str) -> str:
    return origin.partition("://")[2].rstrip("/").lower()


def _added(scope: Scope, id: str, message: Message) -> list[tuple[bytes, bytes]]:
    given = {name for name, _ in message["headers"]}
    added = {"x-request-id": id, **_HEADERS}
    if not scope["path"].startswith("/static/"):
        added["cache-control"] = "no-store"
    found = [(name.encode(), text.encode()) for name, text in added.items() if name.encode() not in given]
    state = scope.get("state", {})
    if state.get("new_session") and message["status"] < 400 and not scope["path"].startswith(_MACHINES):
        secure = "; Secure" if scope.get("scheme") == "https" else ""
        cookie = f"{SESSION}={state['session']}; Path=/; HttpOnly; SameSite=Strict{secure}"
        found.append((b"set-cookie", cookie.encode()))
    return found


_MACHINES = ("/v1/", "/static/", "/healthz", "/readyz", "/metrics", "/openapi.json")


async def _refuse(scope: Scope, refused: Refused, send: Send) -> None:
    wants_page = "text/html" in HTTPConnection(scope).headers.get("accept", "")
    headers = [(b"content-type", b"application/json")]
    if refused.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
        if wants_page and scope["method"] == "GET":
            await send(
                {"type": "http.response.start", "status": 303, "headers": [(b"location", b"/sign-in")]}
            )
            await send({"type": "http.response.body", "body": b""})
            return
    if refused.after is not None:
        headers.append((b"retry-after", str(refused.after).encode()))
    body = json.dumps({"error": refused.why, "message": str(refused)}).encode()
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
