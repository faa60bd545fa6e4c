"""The sum behind one option, term by term: work, speed, time, price, each cost line, total."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from . import money
from .answer import PlanOption

if TYPE_CHECKING:
    from .plan import Plan


@dataclass(frozen=True, slots=True)
class Term:
    """One line of an explanation.

    value: as text, exact for money. amount: set on the leaves that are money; they add up to the total.
    """

    term: str
    value: str
    unit: str
    formula: str
    source: str
    basis: str
    amount: Decimal | None = None
    children: tuple[Term, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "term": self.term,
            "value": self.value,
            "unit": self.unit,
            "formula": self.formula,
            "source": self.source,
            "basis": self.basis,
            "amount": None if self.amount is None else money.text(self.amount),
            "children": [child.to_json() for child in self.children],
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    """What one option is made of. terms: work, speed, memory, time, prices, cost."""

    option: PlanOption
    currency: str
    terms: tuple[Term, ...]

    @property
    def leaves(self) -> tuple[Term, ...]:
        """The terms that are money; their amounts add up to the option's cost exactly."""
        found: list[Term] = []
        waiting = list(reversed(self.terms))
        while waiting:
            term = waiting.pop()
            if term.amount is not None:
                found.append(term)
            waiting += reversed(term.children)
        return tuple(found)

    @property
    def total(self) -> Decimal:
        """The sum of the leaves. [currency]"""
        return money.total(term.amount for term in self.leaves if term.amount is not None)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": "1.0",
            "kind": "explanation",
            "rank": self.option.rank,
            "id": self.option.id,
            "currency": self.currency,
            "total": money.text(self.total),
            "terms": [term.to_json() for term in self.terms],
        }


def explain(plan: Plan, which: int | str) -> Explanation:
    """Every term of one option. which: a rank, an option id or a hardware id. Raises UsageError."""
    option = plan.option(which)
    terms = (_work(plan), _speed(option), _memory(option), _time(option), _prices(option), _cost(option))
    return Explanation(option, plan.currency, terms)


def _work(plan: Plan) -> Term:
    raise NotImplementedError


def _speed(option: PlanOption) -> Term:
    raise NotImplementedError


def _memory(option: PlanOption) -> Term:
    raise NotImplementedError


def _time(option: PlanOption) -> Term:
    raise NotImplementedError


def _prices(option: PlanOption) -> Term:
    raise NotImplementedError


def _cost(option: PlanOption) -> Term:
    raise NotImplementedError
