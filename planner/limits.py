"""Budget and deadline: which rows keep them, and what to say when none does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from .answer import Excluded
from .errors import Infeasible, NoPrice, NothingStored, PlannerError, UsageError
from .luck import Luck
from .market import Market
from .request import OptimizeRequest

if TYPE_CHECKING:
    from .rows import Row
    from .terms import Terms

# Reasons that say that the machine, though it has a price, cannot do the job.
_CANNOT_RUN = frozenset({"precision", "batch", "unknown_figure", "interruptions"})


@dataclass(frozen=True, slots=True)
class Limits:
    """budget [currency] and hours [h]: None where none was given.

    confidence: percentile that is compared instead of the central estimate; None for that. [percent]
    """

    budget: Decimal | None
    hours: Decimal | None
    confidence: Decimal | None
    currency: str

    @classmethod
    def of(cls, request: OptimizeRequest, now: datetime) -> Limits:
        """The limits of a request. Raises UsageError for a deadline that has passed."""
        return cls(request.budget, request.deadline_hours(now), request.confidence, request.currency)

    def as_text(self) -> dict[str, str]:
        """The limits that were given, for the plan."""
        given = {
            "budget": self.budget and f"{_short(self.budget)} {self.currency}",
            "deadline": self.hours and f"{_short(self.hours)} h",
            "confidence": self.confidence and f"P{_short(self.confidence)}",
        }
        return {key: text for key, text in given.items() if text}

    def keep(self, found: Sequence[Row], terms: Terms, seed: int, excluded: list[Excluded]) -> Sequence[Row]:
        """The rows within both limits. Raises Infeasible, naming the limit and the nearest plan, for none."""
        if self.budget is None and self.hours is None:
            return found
        judged = self._judged(found, terms, seed)
        kept = [row for row, hours, cost in judged if self._in_time(hours) and self._in_budget(cost)]
        if not kept:
            raise self._infeasible(judged)
        late = sum(not self._in_time(hours) for _, hours, _ in judged)
        dear = sum(not self._in_budget(cost) for _, _, cost in judged)
        if late:
            excluded.append(
                Excluded("deadline", "limit", f"{late} variants take longer than {self._deadline}")
            )
        if dear:
            excluded.append(Excluded("budget", "limit", f"{dear} variants cost more than {self._budget}"))
        return kept

    def _judged(self, found: Sequence[Row], terms: Terms, seed: int) -> list[tuple[Row, Decimal, Decimal]]:
        """(row, hours, cost) as the limits see them: central, or that percentile but never below it."""
        if self.confidence is None:
            return [(row, row.hours, row.cost) for row in found]
        at = Luck(found, terms, seed).percentile(self.confidence)
        return [(row, hours, cost) for row, (hours, cost) in zip(found, at, strict=True)]

    def _infeasible(self, judged: Sequence[tuple[Row, Decimal, Decimal]]) -> Infeasible:
        cheapest = min(judged, key=lambda j: (j[2], j[1], j[0].id))
        fastest = min(judged, key=lambda j: (j[1], j[2], j[0].id))
        if not self._in_budget(cheapest[2]):
            nearest = f"cheapest plan {_short(cheapest[2])}"
            return self._error("budget", self._budget, nearest, cheapest[0])
        if not self._in_time(fastest[1]):
            nearest = f"fastest plan {_short(fastest[1])} h"
            return self._error("deadline", self._deadline, nearest, fastest[0])
        in_time = min((j for j in judged if self._in_time(j[1])), key=lambda j: (j[2], j[1], j[0].id))
        nearest = f"cheapest plan in time {_short(in_time[2])}"
        asked = f"{self._budget} and {self._deadline}"
        return self._error("budget and deadline", asked, nearest, in_time[0])

    def _error(self, limit: str, asked: str, nearest: str, row: Row) -> Infeasible:
        sure = f" (at P{_short(self.confidence)})" if self.confidence is not None else ""
        return Infeasible(
            limit, asked, nearest, f"no option keeps the limits{sure}: {asked}, {nearest} ({row.id})"
        )

    def _in_time(self, hours: Decimal) -> bool:
        return self.hours is None or hours <= self.hours

    def _in_budget(self, cost: Decimal) -> bool:
        return self.budget is None or cost <= self.budget

    @property
    def _budget(self) -> str:
        return "" if self.budget is None else f"budget {_short(self.budget)}"

    @property
    def _deadline(self) -> str:
        return "" if self.hours is None else f"deadline {_short(self.hours)} h"


def why_empty(
    excluded: Sequence[Excluded], nearest_misfit: tuple[float, Excluded] | None, market: Market
) -> PlannerError:
    """What to raise where there is no row at all: nothing stored, nothing fits, nothing runs, or no price."""
    if not market.offers:
        return NothingStored(
            "no price is stored as of then; run: planner prices refresh, or planner prices import FILE"
        )
    if nearest_misfit is not None:
        nearest = f"{nearest_misfit[1].id} {nearest_misfit[1].reason}"
        told = f"nothing fits in memory; nearest: {nearest}. Try a higher --max-gpus, a smaller --seq-len"
        return Infeasible("memory", "one training step", nearest, told)
    cannot = [e for e in excluded if e.code in _CANNOT_RUN]
    if cannot:
        told = f"no option can run this job ({_few(cannot)})"
        return Infeasible("filters", "what may be used", None, told)
    if not excluded:
        return UsageError(
            "no hardware is left by --gpu, --provider, --spot and --max-gpus; see: planner hardware list"
        )
    if market.currencies_without_rate:
        refused = market.currencies_without_rate
        rates = " ".join(f"--fx {currency}=RATE" for currency in refused)
        told = f"prices are in {', '.join(refused)} and no rate to {market.currency} is known; give {rates}"
        return NoPrice(told, tuple((e.id, e.reason) for e in excluded))
    told = f"nothing that could run this has a usable price ({_few(excluded)}). See: planner prices list"
    return NoPrice(told, tuple((e.id, e.reason) for e in excluded))


def _few(excluded: Sequence[Excluded]) -> str:
    """One example of each reason, three at most, and how many there are besides."""
    by_reason: dict[str, Excluded] = {}
    for each in excluded:
        by_reason.setdefault(each.reason, each)
    shown = list(by_reason.values())[:3]
    more = f" and {len(excluded) - len(shown)} more" if len(excluded) > len(shown) else ""
    return "; ".join(f"{e.id}: {e.reason}" for e in shown) + more


def _short(value: Decimal) -> str:
    """Up to two decimals, none needlessly: 165, 9.20 -> 9.2, 0.0033 -> 0.0033."""
    if value != 0 and abs(value) < 1:
        return f"{float(value):.3g}"
    return f"{value:.2f}".rstrip("0").rstrip(".")
