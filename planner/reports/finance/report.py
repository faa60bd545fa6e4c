"""The whole report: every table of a plan, each row beginning with what tells the plan, into a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from planner.errors import UsageError
from planner.reports.plan_file import Document, is_schedule, plan_of

from . import books, cash, costs, csv_files, focus, json_file, plan_tables, use, variance, workbook
from .accrual import Accrual
from .actual import Billed
from .book import Book, living, rounded_to_cents
from .directory import WholeFolder
from .policy import Policy
from .read_option import option_book
from .read_schedule import instant, schedule_book
from .table import Row, Table, columns

TABLES = (
    plan_tables.summary, cash.cashflow_monthly, cash.capital_operating, cash.npv_monthly, books.pnl_monthly,
    books.balance_monthly, books.depreciation_schedule, books.tax_depreciation, books.residual_disposal,
    use.commitments, use.commitment_coverage, use.capacity_monthly, use.energy_co2, costs.by_job,
    costs.by_team, costs.by_project, costs.by_provider, costs.by_tag, plan_tables.pareto,
    plan_tables.prices_used, plan_tables.assumptions,
    cash.payments, focus.focus_forecast,
)  # fmt: skip
_KEY = columns(PlanId="text", AsOf="date", Currency="text", TimeZone="text")


def book_of(
    document: Document, point: int | None = None, *, start: str | None = None, time_zone: str | None = None,
    cents: bool = False, emptied: bool = False,
) -> Book:  # fmt: skip
    """The book of one plan. start: of a run whose plan has no dates; None: the plan's as_of.

    emptied: the caller has no further use of the document's ledger, which may be large.
    Raises UsageError for a zone or a start that does not read, and for payments that do not add up.
    """
    plan = plan_of(document, point)
    zone = _zone(time_zone or document.get("time_zone") or "UTC")
    if is_schedule(document):
        book = schedule_book(document, plan, zone, emptied=emptied)
    else:
        at = _moment(start or document["as_of"])
        at = at if at.tzinfo else at.replace(tzinfo=zone)
        at = datetime.fromtimestamp(int(at.timestamp()), UTC)
        book = option_book(document, plan, zone, at)
    return rounded_to_cents(book) if cents else book


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise UsageError(f"time_zone = {name}: no such zone; Europe/Berlin is one", "time_zone") from error


def _moment(written: str) -> datetime:
    try:
        return instant(written)
    except ValueError as error:
        raise UsageError(f"start = {written}: a date such as 2027-01-31 is meant", "start") from error


def tables_of(book: Book, policy: Policy, actual: Iterable[Billed] | None = None) -> list[Table]:
    """Every table; with a bill, plan against actual too. Raises UsageError for a bill that is none."""
    accrual = Accrual(living(book, policy.life_months), policy)
    found = [make(accrual) for make in TABLES]
    if actual is not None:
        found.append(variance.variance(accrual, variance.bill_of(actual, accrual)))
    return [_kept(keyed(table, book)) for table in found]


def _kept(table: Table) -> Table:
    """A table that is short is worked out once, however many files it goes into."""
    if table.wide:
        return table
    found = list(table.rows())
    return replace(table, rows=lambda: found)


def keyed(table: Table, book: Book) -> Table:
    """The table with what tells the plan before each row; a format that others define stays as it is."""
    if table.interchange:
        return table
    key = (book.id, book.as_of_day, book.currency, str(book.zone))

    def rows() -> Iterator[Row]:
        return ((*key, *row) for row in table.rows())

    return Table(table.name, table.title, table.note, (*_KEY, *table.columns), rows, table.wide)


def write(
    book: Book,
    policy: Policy,
    target: Path,
    dialect: csv_files.Dialect,
    actual: Iterable[Billed] | None = None,
) -> list[str]:
    """Write the folder whole or not at all; the names of its tables. actual: rows of a bill to compare with.

    Raises UsageError, as do `tables_of` and a library that is missing.
    """
    folder = WholeFolder(target)
    try:
        tables = tables_of(book, policy, actual)
        folder.finish(fill(folder, book, tables, dialect))
    except BaseException:
        folder.abandon()
        raise
    return [table.name for table in tables]


def fill(
    folder: WholeFolder, book: Book, tables: Sequence[Table], dialect: csv_files.Dialect
) -> dict[str, str]:
    """Write the tables into a folder, as CSV, XLSX and JSON; what its manifest is to say of them."""
    about = {
        "schema_version": "1.0",
        "kind": "finance_report",
        "plan_id": book.id,
        "plan": book.plan_name,
        "as_of": csv_files.moment(book.as_of),
        "snapshot": book.snapshot,
        "currency": book.currency,
        "time_zone": str(book.zone),
        "rounding": book.rounding,
        "total": csv_files.fixed(book.total),
    }
    for table in tables:
        folder.write(f"{table.name}.csv", csv_files.encoded(table, dialect))
    folder.write("report.xlsx", [workbook.workbook(tables, book)])
    own = [table for table in tables if not table.interchange]
    folder.write("finance.json", json_file.encoded(own, about))
    return about
