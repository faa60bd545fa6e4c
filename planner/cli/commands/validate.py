"""`planner validate throughput` and `memory`: predicted against measured runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from planner.cli.answering import answers
from planner.cli.commands import COMMANDS
from planner.cli.output import Answer

app = typer.Typer(help=COMMANDS["validate"].summary, no_args_is_help=True, add_completion=False)

File = Annotated[Path, typer.Argument(metavar="FILE.csv", help="Measured runs, one a row.")]
Rows = Annotated[
    str | None, typer.Option("--rows", metavar="OUT.csv", help="Write each row with its prediction.")
]
LeaveOut = Annotated[
    str | None,
    typer.Option(metavar="gpu|family|host|source", help="Predict each group from a fit made without it."),
]


@app.callback()
def validate() -> None:
    """How right we are, against measured runs."""


@app.command()
@answers
def throughput(file: File, rows: Rows = None, leave_out: LeaveOut = None) -> Answer:
    """Errors of predicted training throughput, by GPU, workload and precision.

    A row is predicted without looking at what was measured; what cannot be predicted is counted with
    its reason.

    Example: planner validate throughput measured.csv --rows predicted.csv
    """
    from planner.models.validation import validate_throughput

    options: dict[str, Any] = {} if leave_out is None else {"leave_out": leave_out}
    return _scored("throughput", validate_throughput(_there(file), **options), rows)


@app.command()
@answers
def memory(file: File, rows: Rows = None) -> Answer:
    """Errors of predicted memory peaks: allocated, reserved, what fits and what does not.

    Example: planner validate memory measured.csv
    """
    from planner.models.validation_memory import validate_memory

    return _scored("memory", validate_memory(_there(file)), rows)


def _there(file: Path) -> Path:
    if not file.is_file():
        from planner.errors import UsageError

        raise UsageError(f'there is no file "{file}"')
    return file


def _scored(kind: str, found: Any, rows_file: str | None) -> Answer:
    raise NotImplementedError(kind, found, rows_file)
