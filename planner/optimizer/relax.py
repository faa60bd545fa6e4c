"""Which limits to relax, and to what, so that a schedule that cannot be kept can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Limit = Literal["deadline", "budget", "month budget", "quota", "power", "rigs", "months"]

_UNIT: dict[str, str] = {
    "deadline": "h",
    "budget": "in all",
    "month budget": "a month",
    "quota": "GPUs",
    "power": "W",
    "rigs": "rigs",
    "months": "months",
}


@dataclass(frozen=True, slots=True)
class Relaxation:
    """One limit and the nearest value with which the schedule can be kept, the others of its set relaxed too.

    item: id of the job (deadline), pool (quota) or rig type (rigs), the month's number (month budget), ""
        for the whole schedule (budget, power).
    asked, needed: in the limit's own unit: hours from the start of month 0, currency, GPUs, W, rigs.
    """

    limit: Limit
    item: str
    asked: float
    needed: float

    def __str__(self) -> str:
        name = f"{self.limit} of {self.item}" if self.item else self.limit
        return f"{name}: asked {self.asked:g}, needed {self.needed:g} {_UNIT[self.limit]}"


class ProblemInfeasible(Exception):
    """No plan keeps every limit.

    relaxations: a smallest set of limits which, relaxed together, let a plan through; () where not even that
    helps, then `reasons` say why.
    """

    def __init__(self, relaxations: Sequence[Relaxation] = (), reasons: Sequence[str] = ()) -> None:
        self.relaxations = tuple(relaxations)
        self.reasons = tuple(reasons) or tuple(str(relaxation) for relaxation in self.relaxations)
        super().__init__("no plan keeps every limit: " + "; ".join(self.reasons))
