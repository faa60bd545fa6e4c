"""Money as it leaves: every payment, cash by month, capital and operating, present value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from decimal import Decimal

from planner import money

from .accrual import Accrual
from .book import Book, Line
from .months import Month, month_of
from .present_value import discounted
from .table import Row, Table, columns

EXPENDITURES = ("capital", "operating", "prepaid", "disposal")


def payments(accrual: Accrual) -> Table:
    book = accrual.book

    def rows() -> Iterator[Row]:
        for line in book.lines:
            yield (
                line.due, _day(line, book), line.service_start, line.service_end, line.category,
                line.expenditure, line.description, line.job, line.project, line.team, line.provider,
                line.region, line.hardware, line.sku, line.purchase_model, line.quantity, line.unit,
                line.unit_price, line.amount, line.list_amount, line.asset, line.energy_kwh, line.co2_kg,
                line.source,
            )  # fmt: skip

    return Table(
        "payments", "Payments", "Every payment of the plan; all other tables are made from these.",
        columns(
            Due="moment", Month="date", ServiceStart="moment", ServiceEnd="moment", LineItem="text",
            ExpenditureClass="text", Description="text", Job="text", Project="text", Team="text",
            Provider="text", Region="text", Hardware="text", Sku="text", PurchaseModel="text",
            Quantity="number", Unit="text", UnitPrice="number", Amount="money", ListAmount="money",
            Asset="text", EnergyKWh="number", Co2Kg="number", Source="text",
        ),
        rows, wide=True,
    )  # fmt: skip


def _day(line: Line, book: Book) -> date:
    return month_of(line.due, book.zone).first_day


def cash_by(book: Book) -> dict[Month, dict[tuple[str, str], list[Decimal]]]:
    """Month -> (line item, expenditure class) -> payments. [currency]"""
    found: dict[Month, dict[tuple[str, str], list[Decimal]]] = {
        month: defaultdict(list) for month in book.months
    }
    for line in book.lines:
        found[month_of(line.due, book.zone)][line.category, line.expenditure].append(line.amount)
    return found


def cashflow_monthly(accrual: Accrual) -> Table:
    book = accrual.book

    def rows() -> Iterator[Row]:
        cumulative = money.ZERO
        for month, kinds in cash_by(book).items():
            for (category, expenditure), amounts in sorted(kinds.items()):
                paid = money.total(amount for amount in amounts if amount > 0)
                received = money.total(-amount for amount in amounts if amount < 0)
                cumulative += received - paid
                yield (
                    month.first_day, *fiscal(month, accrual), category, expenditure,
                    paid, received, received - paid, cumulative,
                )  # fmt: skip

    return Table(
        "cashflow_monthly", "Cash by month",
        "When money leaves (CashOut) or comes in (CashIn); NetCash is negative where it leaves.",
        columns(
            Month="date", FiscalYear="integer", FiscalPeriod="integer", LineItem="text",
            ExpenditureClass="text", CashOut="money", CashIn="money", NetCash="money",
            CumulativeCash="money",
        ),
        rows,
    )  # fmt: skip


def capital_operating(accrual: Accrual) -> Table:
    def rows() -> Iterator[Row]:
        for month, kinds in cash_by(accrual.book).items():
            split = [
                money.total(a for (_, kind), amounts in kinds.items() if kind == wanted for a in amounts)
                for wanted in EXPENDITURES
            ]
            yield (month.first_day, *fiscal(month, accrual), *split, money.total(split))

    return Table(
        "capital_operating_monthly", "Capital and operating",
        "Payments by month and class; Disposal is negative where a sale brings money in.",
        columns(
            Month="date", FiscalYear="integer", FiscalPeriod="integer", Capital="money",
            Operating="money", Prepaid="money", Disposal="money", Total="money",
        ),
        rows,
    )  # fmt: skip


def npv_monthly(accrual: Accrual) -> Table:
    book, rate = accrual.book, rate_of(accrual)

    def rows() -> Iterator[Row]:
        rest = present_value(accrual)
        due: dict[Month, list[Line]] = {month: [] for month in book.months}
        for line in book.lines:
            due[month_of(line.due, book.zone)].append(line)
        for number, (month, lines) in enumerate(due.items(), 1):
            # The last month takes what rounding left, so that the months add up to the whole.
            value = rest if number == len(due) else discounted(lines, book.starts, rate, book.step)
            rest -= value
            paid = money.total(line.amount for line in lines)
            yield month.first_day, rate, -paid, -value

    return Table(
        "npv_monthly", "Present value",
        "Each payment discounted from its own moment to the start of the plan: amount / (1 + r)^years.",
        columns(Month="date", DiscountRate="number", NetCash="money", PresentValue="money"),
        rows,
    )  # fmt: skip


def rate_of(accrual: Accrual) -> Decimal:
    """Of the policy, or the plan's own. [1/y]"""
    said = accrual.policy.discount_rate
    return accrual.book.discount_rate if said is None else said


def present_value(accrual: Accrual) -> Decimal:
    """Of all payments, positive for a cost. [currency]"""
    book = accrual.book
    return discounted(book.lines, book.starts, rate_of(accrual), book.step)


def fiscal(month: Month, accrual: Accrual) -> tuple[int, int]:
    return month.fiscal(accrual.policy.fiscal_year_start)
