"""`planner validate throughput`, `memory` and `decisions`: predicted against measured runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from planner.cli.answering import answers
from planner.cli.commands import COMMANDS
from planner.cli.complaints import unknown
from planner.cli.output import Answer, destination, write_whole

app = typer.Typer(help=COMMANDS["validate"].summary, no_args_is_help=True, add_completion=False)

File = Annotated[str, typer.Argument(metavar="FILE.csv", help="Measured runs, one a row.")]
Rows = Annotated[
    str | None, typer.Option("--rows", metavar="OUT.csv", help="Write each row with its prediction.")
]

NESTED = ("gpu", "family")
"""The groups for which parameters fitted without them ship."""


@app.callback()
def validate() -> None:
    """How right we are, against measured runs."""


@app.command()
@answers
def throughput(
    file: File,
    rows: Rows = None,
    leave_out: Annotated[
        str | None,
        typer.Option(metavar="gpu|family|host|source", help="Predict each group from a fit made without it."),
    ] = None,
    nested: Annotated[
        bool, typer.Option("--nested", help="Refit all else without the group as well.")
    ] = False,
) -> Answer:
    """Errors of predicted training throughput, by GPU, workload and precision.

    A row is predicted without looking at what was measured; what cannot be
    predicted is counted with its reason.

    Example: planner validate throughput measured.csv --rows predicted.csv
    """
    from planner.errors import UsageError
    from planner.models.validation import LEAVE_OUT, validate_throughput

    if leave_out is not None and leave_out not in LEAVE_OUT:
        raise unknown("value of --leave-out", leave_out, LEAVE_OUT)
    if nested and leave_out not in NESTED:
        raise UsageError(f"--nested needs --leave-out {' or '.join(NESTED)}", "nested")
    options = {"leave_out": leave_out, "nested": nested or None}
    return _answer("throughput", validate_throughput, file, rows, options)


@app.command()
@answers
def memory(
    file: File,
    rows: Rows = None,
    leave_out: Annotated[
        str | None, typer.Option(metavar="source", help="Leave out what was read off a row's own source.")
    ] = None,
) -> Answer:
    """Errors of predicted memory peaks: allocated, reserved, what fits.

    Example: planner validate memory measured.csv
    """
    from planner.models.validation_memory import validate_memory

    if leave_out not in (None, "source"):
        raise unknown("value of --leave-out", str(leave_out), ["source"])
    return _answer("memory", validate_memory, file, rows, {"leave_out": leave_out})


@app.command()
@answers
def decisions(
    file: File,
    rows: Annotated[
        str | None, typer.Option("--rows", metavar="OUT.csv", help="Write each pair with its picks.")
    ] = None,
    as_of: Annotated[str | None, typer.Option(metavar="DATE", help="Prices as known then.")] = None,
) -> Answer:
    """What predicted speeds cost where two cards can be rented: wrong picks, and regret in money.

    For each two cards measured on one workload: the one that is cheaper per
    sample as predicted, without any row of its own, against as measured.

    Example: planner validate decisions measured.csv --as-of 2026-12-01
    """
    from planner import api, config
    from planner.reports.decisions_page import decisions_page, rule_rows
    from planner.reports.tabular import to_csv

    config.use_store()
    _is_file(file)
    out = None if rows is None else destination("csv", rows, yes=True).file
    report = api.validate_decisions(file, as_of=as_of)
    document = report.to_json()
    if out is not None:
        write_whole(out, to_csv([each.to_json() for each in report.decisions]))
    by_rule = rule_rows(document)
    return Answer(
        document=document,
        items=by_rule,
        rows=lambda: by_rule,
        table=lambda look: decisions_page(document, look),
        title="Picks between two cards: predicted against measured",
    )


def _is_file(file: str) -> None:
    from planner.errors import UsageError

    if not Path(file).is_file():
        raise UsageError(f'there is no file "{file}"')


def _answer(
    kind: str, validate: Callable[..., Any], file: str, rows_file: str | None, options: dict[str, Any]
) -> Answer:
    from planner.errors import UsageError
    from planner.models.errors import BadData
    from planner.reports.tabular import to_csv
    from planner.reports.validation_page import group_rows, report_body, report_rows, validation_page

    _is_file(file)
    out = None if rows_file is None else destination("csv", rows_file, yes=True).file
    try:
        report = validate(Path(file), **{key: value for key, value in options.items() if value is not None})
    except BadData as error:
        raise UsageError(str(error)) from error
    document = {"schema_version": "1.0", "kind": f"validate_{kind}", **report_body(report)}
    if out is not None:
        write_whole(out, to_csv(report_rows(Path(file), report)))
    rows = group_rows(document)
    return Answer(
        document=document,
        items=rows,
        rows=lambda: rows,
        table=lambda look: validation_page(document, look),
        title=f"Predicted against measured: {kind}",
    )
