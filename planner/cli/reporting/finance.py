"""`planner report finance`: a plan as a folder of tables that finance can book from."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("finance")(finance)


def finance(
    plan: Annotated[str, typer.Argument(metavar="PLAN.json", help="A plan of either kind.")],
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="The folder to write.")],
    point: Annotated[str | None, typer.Option(help="Which plan of the file; else the one to book.")] = None,
    start: Annotated[str | None, typer.Option(metavar="DATE", help="When a single run begins.")] = None,
    time_zone: Annotated[str | None, typer.Option(help="In which months begin: Europe/Berlin.")] = None,
    actual: Annotated[
        str | None, typer.Option(metavar="FILE", help="A bill to compare with: AWS CUR 2.0 or FOCUS, as CSV.")
    ] = None,
    round: Annotated[str, typer.Option(metavar="exact|cents", help="Of every amount.")] = "exact",
    dialect: Annotated[str, typer.Option(metavar="plain|excel|excel-eu", help="Of the CSV.")] = "plain",
    bom: Annotated[bool | None, typer.Option("--bom/--no-bom", help="Mark the CSV as UTF-8.")] = None,
    separator: Annotated[str | None, typer.Option(metavar="comma|semicolon|tab", help="Of cells.")] = None,
    decimal_mark: Annotated[str | None, typer.Option(metavar="point|comma", help="In numbers.")] = None,
    depreciation: Annotated[
        str | None, typer.Option(metavar="straight_line|declining_balance|macrs", help="Of the books.")
    ] = None,
    factor: Annotated[str | None, typer.Option(help="Of the declining balance: 2 is double.")] = None,
    life_months: Annotated[str | None, typer.Option(help="Of what is bought; else each its own.")] = None,
    salvage_share: Annotated[str | None, typer.Option(help="Of the cost, left at the end: 10 %.")] = None,
    threshold: Annotated[str | None, typer.Option(help="Purchases below it are expensed.")] = None,
    convention: Annotated[
        str | None, typer.Option(metavar="auto|half_year|mid_quarter", help="Of MACRS.")
    ] = None,
    tax_year_start: Annotated[str | None, typer.Option(metavar="MONTH", help="1 is January.")] = None,
    fiscal_year_start: Annotated[str | None, typer.Option(metavar="MONTH", help="1 is January.")] = None,
    discount_rate: Annotated[str | None, typer.Option(help="A year; else the plan's own: 8 %.")] = None,
    focus_version: Annotated[str | None, typer.Option(metavar="1.2|1.4", help="Of FOCUS rows.")] = None,
    account: Annotated[str | None, typer.Option(help="BillingAccountId of FOCUS rows.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Replace the report in DIR.")] = False,
) -> int:
    """Write cash by month, expense, depreciation, cost by job and team, prices: CSV, XLSX, JSON, FOCUS rows.

    Example: planner report finance plan.json -o finance
    """
    from pathlib import Path

    from planner.cli.complaints import unknown
    from planner.cli.reporting.point import number_of_plan
    from planner.reports.finance import actual as bills
    from planner.reports.finance import asked, directory, report
    from planner.reports.plan_file import read_document

    if round not in ("exact", "cents"):
        raise unknown("value of --round", round, ("exact", "cents"))
    style = asked.dialect_of(dialect, bom=bom, separator=separator, decimal_mark=decimal_mark)
    policy = asked.policy_of(
        {
            "depreciation": depreciation, "factor": factor, "life_months": life_months,
            "salvage_share": salvage_share, "threshold": threshold, "convention": convention,
            "tax_year_start": tax_year_start, "fiscal_year_start": fiscal_year_start,
            "discount_rate": discount_rate, "focus_version": focus_version, "account": account,
        }
    )  # fmt: skip
    chosen = number_of_plan(point)
    target = Path(output)
    directory.refuse(target, yes)
    document = read_document(plan)
    book = report.book_of(
        document, chosen, start=start, time_zone=time_zone, cents=round == "cents", emptied=True
    )
    bill = None if actual is None else bills.read_actual(actual)
    names = report.write(book, policy, target, style, bill)
    print(f"wrote {output}: {len(names)} tables, {book.total} {book.currency}", file=sys.stderr)
    return 0
