"""`planner completion SHELL`: the script that completes commands and flags."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli.commands import COMMANDS
from planner.cli.complaints import unknown

app = typer.Typer(help=COMMANDS["completion"].summary, add_completion=False)

SHELLS = ("bash", "zsh", "fish", "powershell")


@app.command()
def completion(shell: Annotated[str, typer.Argument(metavar="|".join(SHELLS))]) -> None:
    """Print the completion script of a shell.

    Example: planner completion bash >> ~/.bashrc
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    if shell not in SHELLS:
        raise unknown("shell", shell, SHELLS)
    print(get_completion_script(prog_name="planner", complete_var="_PLANNER_COMPLETE", shell=shell))
