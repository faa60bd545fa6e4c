"""`planner doctor`: whether card, driver, CUDA and torch fit together."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli.answering import answers
from planner.cli.commands import COMMANDS
from planner.cli.output import Answer

app = typer.Typer(help=COMMANDS["doctor"].summary, add_completion=False)

_HEADINGS = {"level": "", "what": "FOUND", "do": "DO"}


@app.command()
@answers
def doctor(
    gpu: Annotated[
        str | None, typer.Option("--gpu", metavar="NAME", help="A card that need not be here.")
    ] = None,
    torch: Annotated[
        str | None, typer.Option("--torch", metavar="VERSION", help="With --gpu: the torch release, as 2.10.")
    ] = None,
) -> Answer:
    """Do card, driver, CUDA and torch fit together; which types are native.

    Looks at this machine, or with --gpu at a card and a torch release from
    the tables. Exit code 3 where something does not fit.

    Example: planner doctor --gpu rtx-5090-32gb --torch 2.6
    """
    from dataclasses import asdict

    from planner.errors import UsageError
    from planner.models.doctor import diagnose_card, diagnose_machine
    from planner.reports.lists import listing, sentence

    if torch is not None and gpu is None:
        raise UsageError("--torch needs --gpu: this machine has the torch it has", "torch")
    found = diagnose_machine() if gpu is None else diagnose_card(gpu, torch)
    rows = [asdict(finding) for finding in found.findings]
    return Answer(
        document={
            "schema_version": "1.0",
            "kind": "diagnosis",
            "subject": found.subject,
            "healthy": found.healthy,
            "findings": rows,
        },
        items=rows,
        rows=lambda: rows,
        table=lambda look: sentence(found.subject, look) + "\n" + listing(rows, _HEADINGS, look),
        title=f"Diagnosis: {found.subject}",
        exit_code=0 if found.healthy else 3,
    )
