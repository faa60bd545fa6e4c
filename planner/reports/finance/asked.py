"""What a company asks of its finance report, as text: how it books, how its CSV looks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from planner.errors import UsageError
from planner.models.errors import nearest_names
from planner.request import number

from .csv_files import DIALECTS, Dialect
from .policy import CONVENTIONS, DEPRECIATION, FOCUS_VERSIONS, Policy

Convert = Callable[[str], Any]
_SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t"}
_MARKS = {"point": ".", "comma": ","}


def policy_of(given: Mapping[str, str | None]) -> Policy:
    """given: fields of Policy as text; None for what was not said. Raises UsageError."""
    said = {key: converted(key, value, _FIELDS[key]) for key, value in given.items() if value is not None}
    return replace(Policy(), **said)


def dialect_of(
    name: str, *, bom: bool | None = None, separator: str | None = None, decimal_mark: str | None = None
) -> Dialect:
    """A dialect of DIALECTS, changed in what was said. Raises UsageError.

    A comma cannot both separate cells and mark decimals.
    """
    found: Dialect = converted("dialect", name, _named(DIALECTS))
    if bom is not None:
        found = replace(found, bom=bom)
    if separator is not None:
        found = replace(found, separator=converted("separator", separator, _named(_SEPARATORS)))
    if decimal_mark is not None:
        found = replace(found, decimal=converted("decimal_mark", decimal_mark, _named(_MARKS)))
    if found.separator == found.decimal:
        raise UsageError(
            "a comma cannot separate cells and mark decimals too: add --separator semicolon", "separator"
        )
    return found


def converted(key: str, value: str, convert: Convert) -> Any:
    """Raises UsageError that names the flag, the value and what is meant."""
    try:
        return convert(value)
    except ValueError as error:
        raise UsageError(f"--{key.replace('_', '-')} {value}: {error}", key) from error


def _named(known: Mapping[str, Any]) -> Convert:
    def check(value: str) -> Any:
        if value not in known:
            near = nearest_names(value, list(known), limit=1)
            raise ValueError((f'did you mean "{near[0]}"? ' if near else "") + f"known: {', '.join(known)}")
        return known[value]

    return check


def _within(low: str, high: str) -> Convert:
    def check(value: str) -> Decimal:
        share = value.strip().endswith("%")
        found = number(value.strip().removesuffix("%")) / (100 if share else 1)
        if not Decimal(low) <= found <= Decimal(high):
            raise ValueError(f"must lie between {low} and {high}")
        return found

    return check


def _whole(low: int, high: int) -> Convert:
    def check(value: str) -> int:
        if not value.isdecimal() or not low <= int(value) <= high:
            raise ValueError(f"a whole number from {low} to {high} is meant")
        return int(value)

    return check


def _text(value: str) -> str:
    if not value.strip() or not value.isprintable():
        raise ValueError("a name is meant")
    return value.strip()


def _same(names: tuple[str, ...]) -> Convert:
    return _named({name: name for name in names})


_FIELDS: dict[str, Convert] = {
    "depreciation": _same(DEPRECIATION),
    "factor": _within("1", "4"),
    "salvage_share": _within("0", "0.99"),
    "convention": _same(CONVENTIONS),
    "tax_year_start": _whole(1, 12),
    "fiscal_year_start": _whole(1, 12),
    "threshold": _within("0", "1000000000"),
    "discount_rate": _within("0", "1"),
    "life_months": _whole(1, 240),
    "focus_version": _same(FOCUS_VERSIONS),
    "account": _text,
}
