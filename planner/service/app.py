"""The service as one ASGI app: `create_app(settings)`."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import AsyncIterator
from typing import Any

from anyio import CapacityLimiter
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from planner.cli.version import VERSION
from planner.pricing.errors import PricingError
from planner.service import api, faults, pages
from planner.service.access import Tokens
from planner.service.answers import Answers
from planner.service.door import Door
from planner.service.jobs import Jobs
from planner.service.metrics import Metrics
from planner.service.room import Room, Workers, room
from planner.service.settings import ServiceSettings
from planner.service.state import State

_THREADS = 4


def create_app(settings: ServiceSettings) -> FastAPI:
    """Open the state, and make the app around it. Raises StoreUnusable where the state cannot be used."""
    if settings.store_url is not None:
        os.environ["PLANNER_STORE_URL"] = settings.store_url
    state = State.open(settings.store_url)
    jobs = Jobs(state)
    url = state.where.url.render_as_string(hide_password=False)
    made = FastAPI(
        title="Training planner",
        version=VERSION,
        description="What training costs and takes, rented or owned; money is decimal text.",
        lifespan=_life,
        docs_url=None,
        redoc_url=None,
        exception_handlers=dict.fromkeys(faults.TELLABLE, _told),
    )
    made.state.room = Room(
        settings=settings,
        state=state,
        jobs=jobs,
        tokens=Tokens(state),
        answers=Answers(settings.store_url),
        metrics=Metrics(),
        workers=_workers(jobs, url, settings),
        threads=CapacityLimiter(_THREADS),
    )
    _machine_routes(made)
    made.include_router(api.router)
    made.include_router(pages.router)
    made.add_middleware(
        Door, settings=settings, tokens=made.state.room.tokens, metrics=made.state.room.metrics
    )
    return made


def _workers(jobs: Jobs, url: str, settings: ServiceSettings) -> Workers:
    if jobs.state.engine.dialect.name == "postgresql":
        from planner.service.queue_postgres import PostgresWorkers

        return PostgresWorkers(jobs, url, settings.workers, settings.silent_seconds)
    from planner.service.workers import LocalWorkers

    return LocalWorkers(jobs, url, settings.workers, settings.silent_seconds)


@contextlib.asynccontextmanager
async def _life(app: FastAPI) -> AsyncIterator[None]:
    held: Room = app.state.room
    await held.apart(held.workers.start)
    clock = None
    if held.settings.refresh_at is not None:
        from planner.service.refreshing import scheduler

        clock = await held.apart(scheduler, held.jobs, held.settings.refresh_at, held.workers.tell)
    held.ready = True
    try:
        yield
    finally:
        held.ready = False
        if clock is not None:
            clock.shutdown(wait=False)
        await held.apart(held.workers.stop)
        held.state.close()


async def _told(request: Request, error: Exception) -> Response:
    """An error that is meant for whoever asked."""
    status = faults.status_of(error)
    headers = {"Retry-After": "2"} if status == 503 else None
    return JSONResponse(json.loads(json.dumps(faults.body_of(error), default=str)), status, headers)


def _machine_routes(app: FastAPI) -> None:
    @app.get("/healthz", tags=["running"], summary="Whether the process lives")
    async def healthz() -> dict[str, str]:
        return {"status": "ok", "version": VERSION}

    @app.get(
        "/readyz", tags=["running"], responses={503: {"description": "It starts, ends, or has no database"}}
    )
    async def readyz(request: Request) -> JSONResponse:
        """Whether requests should be sent here."""
        held = room(request)
        try:
            well = held.ready and await held.apart(held.state.is_well)
            why = "" if well else "starting or ending"
        except PricingError as error:
            well, why = False, str(error)
        return JSONResponse({"ready": well, "why": why}, 200 if well else 503)

    @app.get("/metrics", tags=["running"], response_class=PlainTextResponse, summary="For Prometheus")
    async def metrics(request: Request) -> Any:
        held = room(request)
        body = await held.apart(held.metrics.text, held.jobs)
        return Response(body, media_type="text/plain; version=0.0.4; charset=utf-8")
