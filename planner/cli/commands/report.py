"""`planner report`: each subcommand stands in a module of planner/cli/reporting/."""

from __future__ import annotations

import typer

from planner.cli.commands import COMMANDS
from planner.cli.reporting import finance, html, timed

app = typer.Typer(help=COMMANDS["report"].summary, no_args_is_help=True, add_completion=False)


@app.callback()
def report() -> None:
    """Finance books, pages and timers from a plan."""


finance.register(app)
html.register(app)
timed.register(app)
