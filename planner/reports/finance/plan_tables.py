"""What the plan says of itself: its totals, the front it stands on, its prices and assumptions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal

from planner import money

from .accrual import Accrual
from .cash import present_value, rate_of
from .present_value import equivalent_annual_cost
from .read_schedule import instant
from .table import Row, Table, columns

_YEAR_MONTHS = Decimal(12)
# How the tables count, where somebody else might count otherwise.
_MEASURES = (
    ("months", "calendar months of the time zone, each with its own hours", "report"),
    ("year_of_discounting", "365 days of 24 hours", "report"),
    ("fiscal_year", "named after the year it ends in", "report"),
    ("depreciation_months", "the months of entry and of sale count in full", "report"),
    ("rounding", "half to even, once, at the payment; totals are sums of rounded payments", "report"),
)


def summary(accrual: Accrual) -> Table:
    book = accrual.book

    def rows() -> Iterator[Row]:
        years = money.divided(Decimal(len(book.months)), _YEAR_MONTHS)
        value, cost = present_value(accrual), book.plan["cost"]
        yearly = equivalent_annual_cost(value, rate_of(accrual), years, book.step)
        yield (
            book.name, book.plan_name, book.number, book.total, Decimal(cost["p10"]), Decimal(cost["p90"]),
            rate_of(accrual), value, yearly, Decimal(book.plan["cash_upfront"]), len(book.months),
            book.rounding,
        )  # fmt: skip

    return Table(
        "summary", "Summary", "The plan in one row. NPV is of its cost, positive where money leaves.",
        columns(
            Name="text", Plan="text", Number="integer", TotalCost="money", TotalCostP10="money",
            TotalCostP90="money", DiscountRate="number", NPV="money", EquivalentAnnualCost="money",
            UpfrontCash="money", Months="integer", Rounding="text",
        ),
        rows,
    )  # fmt: skip


def pareto(accrual: Accrual) -> Table:
    book = accrual.book
    key = "front" if book.is_schedule else "options"

    def rows() -> Iterator[Row]:
        for plan in book.document[key]:
            number = plan["point"] if book.is_schedule else plan["rank"]
            yield (
                number, plan.get("kind") or plan["id"], *(Decimal(plan["cost"][p]) for p in _BAND),
                *(Decimal(str(plan["time_hours"][p])) for p in _BAND), bool(plan.get("pareto", True)),
                number == book.number,
            )  # fmt: skip

    return Table(
        "pareto", "Front", "Every plan of the file; the one of this report has Chosen = true.",
        columns(
            Number="integer", Plan="text", CostP10="money", Cost="money", CostP90="money",
            TimeHoursP10="number", TimeHours="number", TimeHoursP90="number", OnFront="flag", Chosen="flag",
        ),
        rows,
    )  # fmt: skip


_BAND = ("p10", "p50", "p90")


def prices_used(accrual: Accrual) -> Table:
    book = accrual.book
    known = book.document["prices"] if book.is_schedule else book.plan["prices"]

    def rows() -> Iterator[Row]:
        for used in known:
            yield (
                used["id"], used["provider"], used["item"], used["region"], used["contract"],
                Decimal(used["amount"]), used["unit"], used["currency"], Decimal(used["fx_rate"]),
                instant(used["observed_at"]), used["age_days"], used["quality"], used["source"],
                used["source_ref"],
            )  # fmt: skip

    return Table(
        "prices_used", "Prices", "Every stored price that the plan's file rests on, as published.",
        columns(
            PriceId="text", Provider="text", Item="text", Region="text", Contract="text",
            UnitPrice="number", Unit="text", SourceCurrency="text", FxRate="number", ObservedAt="moment",
            AgeDays="integer", Quality="text", Source="text", SourceRef="text",
        ),
        rows,
    )  # fmt: skip


def assumptions(accrual: Accrual) -> Table:
    book = accrual.book

    def rows() -> Iterator[Row]:
        for each in book.document["assumptions"]:
            checked = each.get("checked")
            yield each["key"], each["text"], each["source"], date.fromisoformat(checked) if checked else None
        for key, said, source in accrual.policy.told():
            yield f"policy.{key}", said, source, None
        for asset in accrual.book.assets:
            yield "asset_life", f"{asset.id}: {asset.life_months} months", asset.life_source, None
        for each in _MEASURES:
            yield *each, None
        for note in (*book.notes, *book.plan["notes"]):
            yield "note", note, "plan", None
        for warning in book.document["warnings"]:
            yield "warning", warning, "plan", None

    return Table(
        "assumptions", "Assumptions",
        "What is taken as true, who says so, and when that was checked: empty for what was worked out or "
        "given. Prices have a table of their own.",
        columns(Key="text", Value="text", Source="text", Checked="date"), rows,
    )  # fmt: skip
