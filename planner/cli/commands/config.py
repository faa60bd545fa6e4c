"""`planner config show`: the settings in force."""

from __future__ import annotations

import typer

from planner.cli.answering import answers
from planner.cli.commands import COMMANDS
from planner.cli.output import Answer

app = typer.Typer(help=COMMANDS["config"].summary, no_args_is_help=True, add_completion=False)


@app.callback()
def config() -> None:
    """Settings in force and where each came from."""


@app.command()
@answers
def show() -> Answer:
    """Every setting in force, and whether a variable, the file or the default gave it.

    Flags come first, then PLANNER_ variables, then the file; the file's keys are the flags of
    `planner optimize` with underscores.

    Example: planner config show --format json
    """
    from planner.config import config_file, in_force
    from planner.reports.lists import listing, shown

    file = config_file()
    rows = [{"key": s.key, "value": shown(s.value), "origin": s.origin} for s in in_force()]
    note = f"File: {file}{'' if file.exists() else ' (not there)'}"
    return Answer(
        document={"schema_version": "1.0", "kind": "config", "file": str(file), "settings": rows},
        items=rows,
        rows=lambda: rows,
        table=lambda look: listing(
            rows, {"key": "SETTING", "value": "VALUE", "origin": "FROM"}, look, [note]
        ),
        title="Settings in force",
        notes=[note],
    )
