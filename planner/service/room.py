"""What every route needs, in one place: `room(request)` is the server's, `who(request)` is the caller's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import HTTPException, Request

from planner.service.access import Identity, Tokens
from planner.service.answers import Answers
from planner.service.jobs import Jobs
from planner.service.metrics import Metrics
from planner.service.settings import ServiceSettings
from planner.service.state import State

Found = TypeVar("Found")


class Workers(Protocol):
    """Whoever works on jobs."""

    def start(self) -> None: ...

    def tell(self, id: str) -> None: ...

    def stop(self, seconds: float = ...) -> None: ...


@dataclass(slots=True)
class Room:
    """Everything one server process holds. ready: False while it starts and from the moment it shall end."""

    settings: ServiceSettings
    state: State
    jobs: Jobs
    tokens: Tokens
    answers: Answers
    metrics: Metrics
    workers: Workers
    threads: CapacityLimiter
    ready: bool = False

    async def apart(self, function: Callable[..., Found], *given: Any, **named: Any) -> Found:
        """The function's answer, worked out beside the event loop, a few at once."""
        return await to_thread.run_sync(partial(function, *given, **named), limiter=self.threads)

    def queue(self, kind: str, asked: dict[str, Any], owner: str) -> str:
        """Queue a job and tell the workers; returns its id. Raises TooMany."""
        id = self.jobs.add(kind, asked, owner)
        self.workers.tell(id)
        return id


def room(request: Request) -> Room:
    found: Room = request.app.state.room
    return found


def who(request: Request) -> Identity:
    """Who asks; the door has let them in."""
    found: Identity = request.state.identity
    return found


def needs(role: str) -> Callable[[Request], Identity]:
    """A dependency that lets through whoever has that role or one above it."""

    def check(request: Request) -> Identity:
        found = who(request)
        if not found.may(role):
            raise HTTPException(403, f"this needs the role {role}; yours is {found.role}")
        return found

    return check
