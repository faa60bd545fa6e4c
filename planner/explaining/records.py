"""What an explanation of a plan says: what a limit is worth, and what an input moves. Money in the plan's."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from planner import money

# binds: proven, a cheaper plan exists once the limit is moved. found: one was found, not proven to need it.
# none: proven, none is cheaper. unknown: none was found in the time given.
Verdict = Literal["binds", "found", "none", "unknown"]


@dataclass(frozen=True, slots=True)
class Worth:
    """One limit or price, moved by one step, and the plan solved again.

    limit: "deadline", "quota", "power", "rigs", "budget", "monthly budget", "time", "electricity".
    item: which one, "" where there is one only. asked: as it stands. used: how far the plan goes towards it.
    step: by how much it was moved, in `unit`. how: what was moved.
    saving: what the cheapest plan found then costs less; negative where it costs more. [currency]
    per_unit: saving / step. at_most: no plan can save more than this. [currency] None: not known.
    kept: what the same move costs while the plan is kept as it is; None where that says nothing. [currency]
    """

    limit: str
    item: str
    asked: str
    step: Decimal
    unit: str
    saving: Decimal
    at_most: Decimal | None
    verdict: Verdict
    how: str
    used: str = ""
    kept: Decimal | None = None

    @property
    def per_unit(self) -> Decimal:
        return money.price(self.saving / self.step)

    def to_json(self) -> dict[str, Any]:
        return {
            "limit": self.limit,
            "item": self.item,
            "asked": self.asked,
            "used": self.used,
            "step": money.short(self.step),
            "unit": self.unit,
            "saving": money.text(self.saving),
            "saving_per_unit": money.text(self.per_unit),
            "saving_at_most": None if self.at_most is None else money.text(self.at_most),
            "cost_with_plan_kept": None if self.kept is None else money.text(self.kept),
            "verdict": self.verdict,
            "how": self.how,
        }


@dataclass(frozen=True, slots=True)
class Bar:
    """One input of the tornado. low, high: its two values, in words. range: where they come from.

    cost_low, cost_high: what the plan, kept as it is, costs at them. [currency]
    """

    input: str
    low: str
    high: str
    range: str
    cost_low: Decimal
    cost_high: Decimal

    @property
    def span(self) -> Decimal:
        return abs(self.cost_high - self.cost_low)

    def to_json(self) -> dict[str, Any]:
        return {
            "input": self.input,
            "low": self.low,
            "high": self.high,
            "range": self.range,
            "cost_low": money.text(self.cost_low),
            "cost_high": money.text(self.cost_high),
            "span": money.text(self.span),
        }
