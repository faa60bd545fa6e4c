"""`planner schedule init`, `check` and `schema`: the file that a whole project is planned from."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from planner.cli.answering import answers
from planner.cli.commands import COMMANDS
from planner.cli.output import Answer

app = typer.Typer(help=COMMANDS["schedule"].summary, no_args_is_help=True, add_completion=False)


@app.callback()
def schedule() -> None:
    """The file that a whole project's training is planned from."""


@app.command()
def init(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write it.")
    ] = "schedule.yaml",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Replace FILE if it exists.")] = False,
) -> int:
    """Write a commented example: a year of a small team, ready to be changed.

    Example: planner schedule init -o schedule.yaml
    """
    from pathlib import Path

    from planner.cli.output import destination, write_whole
    from planner.schedule.example import example

    if output == "-":
        sys.stdout.write(example())
        return 0
    destination("table", output, yes)
    write_whole(Path(output), example())
    print(f"wrote {output}; next: planner optimize {output}", file=sys.stderr)
    return 0


@app.command()
@answers
def check(file: Annotated[str, typer.Argument(metavar="FILE", help="A schedule in YAML.")]) -> Answer:
    """Check a schedule without planning it: keys, units, dates, order; then its runs, written out.

    Example: planner schedule check schedule.yaml
    """
    from planner import api
    from planner.reports.lists import listing

    rows = api.check_schedule(file)
    columns = {
        "run": "RUN",
        "workload": "WORKLOAD",
        "release": "RELEASE",
        "deadline": "DEADLINE",
        "after": "AFTER",
    }
    notes = (f"{len(rows)} runs; nothing is wrong with them. Next: planner optimize {file}",)
    return Answer(
        document={"runs": rows},
        items=rows,
        rows=lambda: [dict(row) for row in rows],
        table=lambda look: listing(rows, columns, look, notes, drop=("after",)),
        title=f"Runs of {file}",
        notes=notes,
    )


@app.command()
def schema() -> int:
    """Print the JSON schema of schedule files, for editors that check while one types.

    Example: planner schedule schema
    """
    from planner import api
    from planner.reports import tabular

    sys.stdout.write(tabular.to_json(api.schedule_schema()))
    return 0
