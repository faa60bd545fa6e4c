"""What a plan takes as true, as data: planner/data/assumptions.toml, changed by `--assume KEY=NUMBER`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any

from .answer import Assumption
from .errors import PlannerError, UsageError

HOURS_PER_YEAR = Decimal(8760)
# Only to turn a monthly rate into an hourly one; a calendar month in a report has its own hours.
HOURS_PER_MONTH = Decimal(730)
MONTHS_PER_YEAR = 12

_WHERE = "planner/data/assumptions.toml"


class BadAssumptions(PlannerError):
    """The shipped table does not read back."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One assumption. low and high: its 10 % and 90 % points; equal to value where it is taken as certain.

    checked: when the source was read. least, most: what a user may put in its place; beyond them it is a
    slip or divides by nothing.
    """

    key: str
    value: Decimal
    low: Decimal
    high: Decimal
    unit: str
    source: str
    note: str
    least: Decimal
    most: Decimal
    checked: date | None

    def as_assumption(self) -> Assumption:
        note = f": {self.note}" if self.note else ""
        return Assumption(
            self.key, f"{self.key} = {self.value:f} {self.unit}{note}", self.source, self.checked
        )


class Assumptions:
    """The table, and which of its entries a plan has used (they are printed with it)."""

    def __init__(self, figures: Mapping[str, Figure]) -> None:
        self._figures = figures
        self._used: dict[str, Figure] = {}

    def __getitem__(self, key: str) -> Decimal:
        return self.figure(key).value

    def figure(self, key: str) -> Figure:
        """The entry, noted as used."""
        figure = self._figures[key]
        self._used[key] = figure
        return figure

    def used(self) -> tuple[Assumption, ...]:
        """Every entry asked for so far, in the order of the table."""
        return tuple(f.as_assumption() for key, f in self._figures.items() if key in self._used)


def assumptions(changed: Mapping[str, Decimal] | None = None) -> Assumptions:
    """The shipped table with the user's changes. Raises UsageError for a key that is not in it."""
    table = dict(_shipped())
    for key, value in (changed or {}).items():
        if key not in table:
            from planner.models.errors import nearest_names

            near = nearest_names(key, table)
            hint = f'Did you mean "{near[0]}"?' if near else f"Known: {', '.join(table)}"
            raise UsageError(f'assume: no assumption "{key}". {hint}', "assume")
        least, most = table[key].least, table[key].most
        if not least <= value <= most:
            told = f"assume: {key} = {value:f} must lie between {least:f} and {most:f} {table[key].unit}"
            raise UsageError(told, "assume")
        table[key] = replace(
            table[key], value=value, low=value, high=value, source="given by the user", note="", checked=None
        )
    return Assumptions(table)


@cache
def _shipped() -> Mapping[str, Figure]:
    table = tomllib.loads(files("planner").joinpath("data/assumptions.toml").read_text(encoding="utf-8"))
    return {key: _figure(key, row) for key, row in table.items()}


def _figure(key: str, row: Mapping[str, Any]) -> Figure:
    for needed in ("value", "least", "most", "unit", "source", "checked"):
        if needed not in row:
            raise BadAssumptions(f"{_WHERE}: {key} has no {needed}")
    if row["source"] == "assumption" and not row.get("note"):
        raise BadAssumptions(f'{_WHERE}: {key} is an assumption without a "note" that says why')
    value = Decimal(str(row["value"]))
    return Figure(
        key=key,
        value=value,
        low=Decimal(str(row.get("low", row["value"]))),
        high=Decimal(str(row.get("high", row["value"]))),
        unit=row["unit"],
        source=row["source"],
        note=row.get("note", ""),
        least=Decimal(str(row["least"])),
        most=Decimal(str(row["most"])),
        checked=row["checked"],
    )
