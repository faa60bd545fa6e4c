"""Why an option costs what it costs: every term, its formula, its source, and amounts that add up exactly."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from planner.reports.look import Look
from planner.reports.tabular import Cell

Term = Mapping[str, Any]


def explanation_page(document: Mapping[str, Any], look: Look) -> str:
    """The tree of terms. Amounts are printed in full: their sum is the total, to the last digit."""
    lines = [f"{document['id']} = {document['total']} {document['currency']}"]
    terms = document["terms"]
    for i, term in enumerate(terms):
        lines += _branch(term, "", i == len(terms) - 1, look)
    leaves = sum(1 for _ in _leaves(terms))
    together = f"The {leaves} amounts of money above add up to" if leaves > 1 else "The amount above is"
    lines.append(f"{together} {document['total']} {document['currency']} exactly.")
    return "\n".join(lines) + "\n"


def explanation_rows(document: Mapping[str, Any]) -> list[dict[str, Cell]]:
    """Every term as a row, depth first; `amount` stands on the leaves that are money."""
    return [
        {
            "path": path,
            "value": term["value"],
            "unit": term["unit"],
            "amount": None if term["amount"] is None else Decimal(term["amount"]),
            "currency": None if term["amount"] is None else document["currency"],
            "formula": term["formula"],
            "source": term["source"],
            "basis": term["basis"],
        }
        for path, term in _walk(document["terms"], "")
    ]


def _branch(term: Term, above: str, last: bool, look: Look) -> list[str]:
    said = " ".join(part for part in (term["value"], term["unit"]) if part)
    formula = f" = {term['formula']}" if term["formula"] else ""
    origin = ", ".join(part for part in (term["basis"], term["source"]) if part)
    text = f"{term['term']}: {said}{formula}{f'  [{origin}]' if origin else ''}"
    stem, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
    lines = _fit(text, above + stem, above + below, look)
    children = term["children"]
    for i, child in enumerate(children):
        lines += _branch(child, above + below, i == len(children) - 1, look)
    return lines


def _fit(text: str, first: str, rest: str, look: Look) -> list[str]:
    if not look.wrap or look.width is None:
        return [first + text]
    return textwrap.wrap(
        text, look.width, initial_indent=first, subsequent_indent=rest + "  ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def _walk(terms: list[Term], above: str) -> Iterator[tuple[str, Term]]:
    for term in terms:
        path = f"{above} / {term['term']}" if above else str(term["term"])
        yield path, term
        yield from _walk(term["children"], path)


def _leaves(terms: list[Term]) -> Iterator[Term]:
    return (term for _, term in _walk(terms, "") if term["amount"] is not None)
