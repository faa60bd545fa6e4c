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
    dialect: Annotated[str, typer.Option(metavar="plain|excel|excel-eu", help="Of the CSV.")] = "plain",
    round: Annotated[str, typer.Option(metavar="exact|cents", help="Of every amount.")] = "exact",
    depreciation: Annotated[
        str, typer.Option(metavar="straight_line|declining_balance|macrs", help="Of the books.")
    ] = "straight_line",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Replace the report in DIR.")] = False,
) -> int:
    """Write cash by month, expense, depreciation, cost by job and team, prices: CSV with a manifest.

    Example: planner report finance plan.json -o finance
    """
    from pathlib import Path

    from planner.cli.complaints import unknown
    from planner.cli.reporting.point import number_of_plan
    from planner.reports.finance import csv_files, directory, policy, report
    from planner.reports.plan_file import read_document

    for flag, value, known in (
        ("--dialect", dialect, tuple(csv_files.DIALECTS)), ("--round", round, ("exact", "cents")),
        ("--depreciation", depreciation, policy.DEPRECIATION),
    ):  # fmt: skip
        if value not in known:
            raise unknown(f"value of {flag}", value, known)
    chosen = number_of_plan(point)
    target = Path(output)
    directory.refuse(target, yes)
    document = read_document(plan)
    book = report.book_of(
        document, chosen, start=start, time_zone=time_zone, cents=round == "cents", emptied=True
    )
    names = report.write(book, policy.Policy(depreciation=depreciation), target, csv_files.DIALECTS[dialect])
    print(f"wrote {output}: {len(names)} tables, {book.total} {book.currency}", file=sys.stderr)
    return 0
