"""How a company books: what the tables need to be told, with the defaults they state in assumptions.csv."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from decimal import Decimal

DEPRECIATION = ("straight_line", "declining_balance", "macrs")
CONVENTIONS = ("auto", "half_year", "mid_quarter")
FOCUS_VERSIONS = ("1.2", "1.4")


@dataclass(frozen=True, slots=True)
class Policy:
    """depreciation: of the books; the tax table is always MACRS, 5-year property.

    factor: of the declining balance: 2 is double. salvage_share: of the cost, kept at the end of life. [1]
    convention: of MACRS; auto: mid-quarter where over 40 % of a tax year's cost enters in its last quarter.
    tax_year_start, fiscal_year_start: month, 1 to 12.
    threshold: a purchase below is expensed at once. [currency]
    discount_rate: per year; None: the plan's own. life_months: of every asset; None: each its own.
    account: the billing account of FOCUS rows.
    """

    depreciation: str = "straight_line"
    factor: Decimal = Decimal(2)
    salvage_share: Decimal = Decimal(0)
    convention: str = "auto"
    tax_year_start: int = 1
    fiscal_year_start: int = 1
    threshold: Decimal = Decimal(0)
    discount_rate: Decimal | None = None
    life_months: int | None = None
    focus_version: str = "1.2"
    account: str = "unassigned"

    def told(self) -> Iterator[tuple[str, str, str]]:
        """(field, value, who says so) of every field, for the assumptions of a report."""
        for field in fields(self):
            value = getattr(self, field.name)
            said = (
                "the plan's own"
                if value is None
                else f"{value:f}"
                if isinstance(value, Decimal)
                else str(value)
            )
            yield field.name, said, "default of the report" if value == field.default else "given"
