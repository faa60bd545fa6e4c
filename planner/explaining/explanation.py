"""One kept plan explained: what it is, its neighbours on the front, what limits are worth, what moves it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from planner import money
from planner.answer import SCHEMA_VERSION
from planner.reports.plan_file import is_schedule, name_of, number_of, plan_of

from .records import Bar, Worth
from .schedule_limits import SECONDS
from .tornado import tornado

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class PlanExplanation:
    """plan: the point or option. neighbours: on the front, (which, change of cost, change of hours).

    searched: cost of the cheapest plan found again with nothing moved, and its gap; None for a single run.
    same_prices: whether the store still holds the prices of the plan.
    """

    document: Mapping[str, Any]
    plan: Mapping[str, Any]
    neighbours: tuple[tuple[str, Decimal, Decimal], ...]
    worths: tuple[Worth, ...]
    bars: tuple[Bar, ...]
    searched: tuple[Decimal, float] | None
    same_prices: bool

    def to_json(self) -> dict[str, Any]:
        plan = self.plan
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "explain_plan",
            "as_of": self.document["as_of"],
            "currency": self.document["currency"],
            "plan": name_of(plan),
            "number": number_of(plan),
            "cost": dict(plan["cost"]),
            "time_hours": dict(plan["time_hours"]),
            "neighbours": [
                {"plan": name, "cost_change": money.text(cost), "hours_change": float(hours)}
                for name, cost, hours in self.neighbours
            ],
            "searched": None
            if self.searched is None
            else {"cost": money.text(self.searched[0]), "gap": round(self.searched[1], 6)},
            "same_prices": self.same_prices,
            "limits": [worth.to_json() for worth in self.worths],
            "tornado": [bar.to_json() for bar in self.bars],
        }


def explained(
    document: Mapping[str, Any],
    point: int | None = None,
    *,
    seconds: float = SECONDS,
    progress: Progress | None = None,
) -> PlanExplanation:
    """Why this plan. document: a plan of either kind. point: which of it; None: the one to book.

    seconds: most wall time of each search of a schedule. Raises UsageError, NothingStored and NoPrice.
    """
    plan = plan_of(document, point)
    searched = None
    if is_schedule(document):
        from .schedule_limits import limits_of

        found = limits_of(document, plan, seconds, progress)
        worths, same_prices, searched = found.worths, found.same_prices, (found.base, found.gap)
    else:
        from planner.api import optimize

        from .request_limits import limits_of as limits_of_request

        worths, same_prices = limits_of_request(document, plan, optimize)
    return PlanExplanation(
        document=document,
        plan=plan,
        neighbours=_neighbours(document, plan),
        worths=worths,
        bars=tornado(document, plan),
        searched=searched,
        same_prices=same_prices,
    )


def _neighbours(
    document: Mapping[str, Any], plan: Mapping[str, Any]
) -> tuple[tuple[str, Decimal, Decimal], ...]:
    """The next slower and the next faster plan of the front, with what each changes."""
    front = document.get("front") or [each for each in document["options"] if each["pareto"]]
    found = []
    for place, each in enumerate(front):
        if number_of(each) == number_of(plan):
            beside = [front[at] for at in (place - 1, place + 1) if 0 <= at < len(front)]
            for other in beside:
                cost = Decimal(other["cost"]["p50"]) - Decimal(plan["cost"]["p50"])
                hours = Decimal(str(other["time_hours"]["p50"])) - Decimal(str(plan["time_hours"]["p50"]))
                found.append((name_of(other), cost, hours))
    return tuple(found)
