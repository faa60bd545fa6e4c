"""How pages ask the planner: public functions in a worker thread, so that the event loop stays free."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from anyio import to_thread
from fastapi import Request
from fastapi.responses import Response

from planner.service.asked import checked_names
from planner.service.room import room, who

if TYPE_CHECKING:
    from planner.explain import Explanation
    from planner.plan import Plan

Found = TypeVar("Found")


async def apart(function: Callable[..., Found], *given: Any, **named: Any) -> Found:
    """The function's answer, worked out beside the event loop."""
    return await to_thread.run_sync(partial(function, *given, **named))


async def begin_schedule(request: Request, text: str) -> Response:
    """Queue a sound schedule and show its job. Raises UsageError and TooMany."""
    from fastapi.responses import RedirectResponse

    from planner.errors import UsageError
    from planner.service.api.schedules import queue_schedule

    if not who(request).may("planner"):
        raise UsageError("planning a schedule needs a token with the role planner", "schedule")
    held = room(request)
    asked = {"schedule": text, "points": 12, "seconds": 45.0}
    id = await held.apart(queue_schedule, held, asked, who(request).owner)
    return RedirectResponse(f"/jobs/{id}", 303)


async def plan_of(asked: Mapping[str, Any]) -> Plan:
    """The plan of one run. asked: keys of OptimizeRequest. Raises the planner's errors."""
    return await apart(_plan, asked)


async def plan_and_reasons(asked: Mapping[str, Any], which: str | None) -> tuple[Plan, Explanation]:
    """The plan and every term of one option; None: of the cheapest on the front."""

    def both() -> tuple[Plan, Explanation]:
        plan = _plan(asked)
        return plan, plan.explain(plan.options[0].rank if which is None else which)

    return await apart(both)


def _plan(asked: Mapping[str, Any]) -> Plan:
    from planner import api
    from planner.errors import UsageError
    from planner.models.errors import UnknownName
    from planner.request import OptimizeRequest

    checked_names(asked)
    try:
        return api.optimize(OptimizeRequest.of(**asked))
    except UnknownName as error:
        raise UsageError(str(error), _whose(asked, error.name)) from error


def _whose(asked: Mapping[str, Any], name: str) -> str | None:
    """The key under which an unknown name was given."""
    for key, value in asked.items():
        if name == value or (isinstance(value, list) and name in value):
            return key
    return None


@cache
def names() -> dict[str, tuple[tuple[str, str], ...]]:
    """What fields may offer: list -> (value, words). Of the catalogue: new with a version only."""
    from planner import api
    from planner.models.hardware import catalogue

    workloads = tuple((row["id"], row["title"]) for row in api.list_workloads().rows)
    gpus = tuple((card.id, card.name) for card in catalogue.gpus())
    rigs = tuple((rig.id, f"{rig.gpu_count} × {rig.gpu}") for rig in catalogue.rigs())
    providers = sorted({instance.provider for instance in catalogue.instances()} | {"own"})
    return {
        "workloads": workloads,
        "gpus": gpus,
        "rigs": rigs,
        "providers": tuple((provider, "") for provider in providers),
        "currencies": tuple((code, "") for code in ("USD", "EUR", "GBP", "CHF", "CNY", "JPY", "INR")),
    }
