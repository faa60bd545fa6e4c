"""Errors that are meant for whoever asked, and the HTTP status of each."""

from __future__ import annotations

from planner.errors import Infeasible, NoPrice, NothingStored, PlannerError, UsageError
from planner.models.errors import ModelsError
from planner.pricing.errors import PricingError, StoreUnusable
from planner.service.jobs import TooMany

TELLABLE = (PlannerError, ModelsError, PricingError, TooMany)


def status_of(error: Exception) -> int:
    """422 for what the caller can mend, 409 where no plan exists, 503 where it may work later, else 500."""
    if isinstance(error, UsageError | ModelsError):
        return 422
    if isinstance(error, Infeasible | NoPrice):
        return 409
    if isinstance(error, NothingStored | StoreUnusable | TooMany):
        return 503
    return 422 if isinstance(error, PricingError) else 500


def body_of(error: Exception) -> dict[str, object]:
    """What an API answer says of it."""
    body: dict[str, object] = {"error": type(error).__name__, "message": str(error)}
    for name in ("key", "limit", "asked", "nearest"):
        if getattr(error, name, None) is not None:
            body[name] = getattr(error, name)
    return body
