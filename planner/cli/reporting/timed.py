"""`planner report run` and `planner report schedule`: a folder for each date, and what starts it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("run")(run)
    app.command("schedule")(schedule)


_File = Annotated[
    str, typer.Argument(metavar="FILE", help="A schedule (.yaml), planned anew each time, or a plan (.json).")
]
_Root = Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="Holds a folder for each date.")]


def run(
    file: _File,
    output: _Root,
    date: Annotated[str | None, typer.Option(metavar="DATE", help="Its name; else today, UTC.")] = None,
    point: Annotated[str | None, typer.Option(help="Which plan of the file; else the one to book.")] = None,
    round: Annotated[str, typer.Option(metavar="exact|cents", help="Of every amount.")] = "exact",
    dialect: Annotated[str, typer.Option(metavar="plain|excel|excel-eu", help="Of the CSV.")] = "plain",
) -> int:
    """Write plan, page and finance tables into DIR/DATE: whole or not at all, replacing that date's report.

    Example: planner report run plan.json -o reports
    """
    from pathlib import Path

    from planner.cli.complaints import unknown
    from planner.cli.reporting.point import number_of_plan
    from planner.config import use_store
    from planner.reports.dated.folder import Asked, day_of, document_of, write_dated
    from planner.reports.finance.asked import dialect_of

    if round not in ("exact", "cents"):
        raise unknown("value of --round", round, ("exact", "cents"))
    asked = Asked(number_of_plan(point), round == "cents", dialect_of(dialect))
    day = day_of(date)
    use_store()
    made = write_dated(document_of(Path(file)), Path(output), day, asked)
    print(f"wrote {made}", file=sys.stderr)
    return 0


def schedule(
    file: _File,
    output: _Root,
    format: Annotated[str, typer.Option(metavar="cron|systemd|kubernetes", help="For which of these.")],
    at: Annotated[str, typer.Option(metavar="HH:MM", help="Time of day, UTC.")] = "05:17",
    day: Annotated[str | None, typer.Option(help="Of the month, 1 to 28; else every day.")] = None,
    program: Annotated[str, typer.Option(help="Path of the planner; of kubernetes, the image.")] = "planner",
    store: Annotated[str | None, typer.Option(metavar="URL", help="The store, if not the usual one.")] = None,
) -> None:
    """Print what to install for a dated report a day, or a month.

    Example: planner report schedule plan.json -o reports --format systemd
    """
    import os

    from planner.cli.price_commands import program_path
    from planner.reports.dated.timers import timer

    if format != "kubernetes":  # whose pods see other folders than this machine
        file, output = os.path.abspath(file), os.path.abspath(output)
    program = program_path(program, format)
    print(timer(format, file, output, at=at, day=day, program=program, store=store), end="")
