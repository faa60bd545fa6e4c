"""`planner workloads list` and `show`."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli.answering import answers
from planner.cli.commands import COMMANDS
from planner.cli.output import Answer

app = typer.Typer(help=COMMANDS["workloads"].summary, no_args_is_help=True, add_completion=False)


@app.callback()
def workloads() -> None:
    """Models we know, with their reference runs."""


@app.command("list")
@answers
def list_() -> Answer:
    """Every named workload with its parameter count.

    Any config.json of transformers and any package.module:factory work as well.

    Example: planner workloads list --format csv
    """
    from planner import api
    from planner.cli.listings import listed

    columns = {"id": "ID", "parameters": "PARAMETERS", "kind": "KIND", "family": "FAMILY", "title": "TITLE"}
    return listed(api.list_workloads(), columns, "Workloads", drop=("title", "family", "kind"))


@app.command()
@answers
def show(
    name: Annotated[str, typer.Argument(help="An id or a common spelling: bert-base-uncased.")],
) -> Answer:
    """One workload: how it is built, what its parameters count, its reference run.

    Example: planner workloads show bert-base
    """
    from planner import api
    from planner.cli.listings import record

    return record("workload", api.show_workload(name))
