"""The cost of one plan of a file as lines of one form, whichever kind of plan it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

Document = Mapping[str, Any]

# What a line of a single job's option is called in a ledger.
_CATEGORY = {
    "compute": "compute",
    "power": "energy",
    "idle power": "energy",
    "upkeep": "maintenance",
    "resale": "resale",
    "resale forgone": "forgone",
    "purchase share": "amortised",
    "own rate": "own rate",
}
# Lines that grow with the hours of the run.
BY_HOURS = frozenset({"compute", "energy", "maintenance", "forgone", "amortised", "own rate"})


@dataclass(frozen=True, slots=True)
class Line:
    """amount: [currency]. category: of the ledger. job: place in Costed.jobs, None for the whole project's.

    price_ids: stored prices that the unit price rests on.
    """

    amount: Decimal
    category: str
    hardware: str
    provider: str
    purchase_model: str
    unit: str
    quantity: Decimal
    job: int | None
    price_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunOf:
    """One run of the plan. option: the PlanOption as JSON. group: the job of the file it belongs to."""

    group: str
    workload: str
    option: Document


@dataclass(frozen=True, slots=True)
class Costed:
    """Lines that add up to the plan's cost, and its runs."""

    total: Decimal
    lines: tuple[Line, ...]
    runs: tuple[RunOf, ...]


def costed(document: Document, plan: Document) -> Costed:
    """The lines of one plan: the ledger of a schedule's point, or the cost lines of an option."""
    if document["kind"] == "schedule":
        return _of_point(plan)
    workload = str(document["job"]["workload"])
    lines = tuple(
        Line(
            amount=Decimal(line["amount"]),
            category=_CATEGORY.get(line["item"], "purchase" if "purchase" in line["item"] else "other"),
            hardware=plan["hardware"],
            provider=plan["provider"],
            purchase_model=plan["purchase_model"],
            unit=line["unit"],
            quantity=Decimal(line["quantity"]),
            job=0,
            price_ids=tuple(price["id"] for price in plan["prices"]),
        )
        for line in plan["cost_lines"]
    )
    return Costed(Decimal(plan["cost"]["p50"]), lines, (RunOf(workload, workload, plan),))


def _of_point(plan: Document) -> Costed:
    places = {job["id"]: place for place, job in enumerate(plan["jobs"])}
    lines = tuple(
        Line(
            amount=Decimal(pay["amount"]),
            category=pay["category"],
            hardware=pay["hardware"],
            provider=pay["provider"],
            purchase_model=pay["purchase_model"],
            unit=pay["unit"],
            quantity=Decimal(pay["quantity"]),
            job=places.get(pay["job"]),
            price_ids=tuple(pay["price_ids"]),
        )
        for pay in plan["ledger"]
    )
    runs = tuple(RunOf(group_of(job["id"]), job["workload"], job["detail"]) for job in plan["jobs"])
    return Costed(Decimal(plan["cost"]["p50"]), lines, runs)


def group_of(run: str) -> str:
    """The job of the file that a run was written out from.

    >>> group_of("search-ranker[2027-01]"), group_of("sweep#3")
    ('search-ranker', 'sweep')
    """
    return run.partition("[")[0].partition("#")[0]
