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

    from planner.cli.output import Destination, destination, write_whole
    from planner.errors import UsageError
    from planner.reports.html.page import page
    from planner.reports.plan_file import read_document

    if point is not None and not point.isdecimal():
        raise UsageError(f"--point {point}: a number of a plan is meant", "point")
    target: Destination = destination("html", output, yes)
    assert target.file is not None
    text = page(read_document(plan), None if point is None else int(point))
    write_whole(target.file, text)
    print(f"wrote {output}", file=sys.stderr)
    return 0
