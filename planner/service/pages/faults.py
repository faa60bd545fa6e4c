"""Errors as pages tell them: what, where, what next, and the status that belongs to it."""

from __future__ import annotations

from dataclasses import dataclass

from planner.errors import Infeasible, NoPrice, NothingStored, PlannerError, UsageError
from planner.models.errors import ModelsError
from planner.pricing.errors import PricingError
from planner.service.pages import fields

TELLABLE = (PlannerError, ModelsError, PricingError)
"""Errors whose message is meant for the reader."""


@dataclass(frozen=True, slots=True)
class Fault:
    """title: in a few words. message: the planner's own. fields: field -> what is wrong with it.

    advice: what to do next, "" where the message says it.
    """

    title: str
    message: str
    status: int
    fields: dict[str, str]
    advice: str = ""


def told(error: Exception) -> Fault:
    """The fault of an error that a reader can do something about; any other is raised again."""
    if isinstance(error, Infeasible):
        advice = f"Nearest plan that would work: {error.nearest}" if error.nearest else ""
        return Fault("Nothing meets these limits", str(error), 200, {}, advice)
    if isinstance(error, NoPrice):
        return Fault("No usable price", str(error), 200, {}, "See Prices for what is stored.")
    if isinstance(error, NothingStored):
        return Fault("No price is stored", str(error), 503, {}, "")
    if isinstance(error, UsageError):
        found = fields.complaints(str(error), error.key)
        return Fault("Some of this cannot be used", found.pop("", ""), 422, found)
    if isinstance(error, ModelsError | PricingError) or type(error) is PlannerError:
        return Fault("This cannot be answered", str(error), 422, {})
    raise error
