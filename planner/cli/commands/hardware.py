"""`planner hardware list` and `show`."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli.answering import answers
from planner.cli.commands import COMMANDS
from planner.cli.output import Answer

app = typer.Typer(help=COMMANDS["hardware"].summary, no_args_is_help=True, add_completion=False)

KINDS = ("gpu", "instance", "rig")


@app.callback()
def hardware() -> None:
    """GPUs, instances and rigs we know."""


@app.command("list")
@answers
def list_(
    kind: Annotated[str | None, typer.Option(metavar="gpu|instance|rig", help="Only these.")] = None,
) -> Answer:
    """Every GPU, instance and rig of the catalogue.

    Example: planner hardware list --kind rig
    """
    from planner import api
    from planner.cli.complaints import unknown
    from planner.cli.listings import listed

    if kind is not None and kind not in KINDS:
        raise unknown("kind of hardware", kind, KINDS)
    columns = {
        "id": "ID",
        "kind": "KIND",
        "provider": "PROVIDER",
        "gpu": "GPU",
        "gpu_count": "GPUS",
        "memory_gib": "GIB PER GPU",
        "year": "YEAR",
        "link": "LINK",
    }
    return listed(api.list_hardware(kind), columns, "Hardware", drop=("year", "link", "provider"))


@app.command()
@answers
def show(name: Annotated[str, typer.Argument(help="An id, or a common spelling: 'RTX 4090'.")]) -> Answer:
    """One GPU, instance or rig: each figure with unit, source and date.

    Example: planner hardware show rtx-4090-24gb
    """
    from planner import api
    from planner.cli.listings import record

    return record("hardware", api.show_hardware(name))
