"""`planner report html`: a plan as one self-contained page."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("html")(html)


def html(
    plan: Annotated[str, typer.Argument(metavar="PLAN.json", help="A plan of either kind.")],
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The page to write.")],
    point: Annotated[str | None, typer.Option(help="Which plan of the file; else the one to book.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Replace FILE if it exists.")] = False,
) -> int:
    """Write one HTML file with charts, figures and sources; it loads nothing.

    Example: planner report html plan.json -o plan.html
    """
    import sys

    from planner.cli.output import destination, write_whole
    from planner.cli.reporting.point import number_of_plan
    from planner.errors import UsageError
    from planner.reports.html.page import page
    from planner.reports.plan_file import read_document

    chosen = number_of_plan(point)
    file = destination("html", output, yes).file
    if file is None:
        raise UsageError("-o -: a page is written into a file", "output")
    write_whole(file, page(read_document(plan), chosen))
    print(f"wrote {output}", file=sys.stderr)
    return 0
