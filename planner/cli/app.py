"""The top of the command line: one page of help, and commands that are imported when they are named."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from planner.cli.commands import COMMANDS, help_lines

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter

EXAMPLES = (
    "planner optimize --model bert-base --epochs 10",
    "planner estimate memory --model bert-large --gpu rtx-4090-24gb",
    "planner prices list --item p4d.24xlarge --as-of 2025-05-31",
)


class _AsTyped:
    """Stands where typer would convert a value: ours are all text or switches, and request.py reads them.

    Without it typer builds a pydantic adapter for every option, 0.15 s of CPU on `optimize`'s thirty-five.
    """

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None and (param.multiple or param.nargs == -1):
            return ()
        return value


def _leave_values_as_typed(command: Any, ctx: Context) -> None:
    for parameter in [*command.params, command.get_help_option(ctx)]:
        parameter._runtime_param = _AsTyped()
    for sub_command in getattr(command, "commands", {}).values():
        _leave_values_as_typed(sub_command, ctx)


class LazyGroup(TyperGroup):
    """A group whose commands stand in `COMMANDS` and are imported on use."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        _leave_values_as_typed(self, ctx)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module = importlib.import_module(f"planner.cli.commands.{entry.module}")
        command = typer.main.get_command(module.app)
        command.name = entry.name
        _leave_values_as_typed(command, ctx)
        return command

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            from planner.cli.complaints import unknown

            raise unknown("command", args[0], COMMANDS, "All commands: planner --help")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """The whole page in plain text: drawing it through rich would double what help costs."""
        formatter.write(f"{self.help}\n\n")
        formatter.write("Examples:\n")
        formatter.write("".join(f"  {example}\n" for example in EXAMPLES))
        formatter.write("\nCommands:\n")
        formatter.write("".join(f"  {line}\n" for line in help_lines()))
        formatter.write("\nEvery command: --format FORMAT, -o FILE, --yes, --color WHEN, --debug\n")
        formatter.write("More: planner COMMAND --help, planner --version\n")


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Cost and capacity planner for PyTorch training: rent or own, what, how many.",
)


@app.callback()
def planner() -> None:
    """Cost and capacity planner for PyTorch training: rent or own, what, how many."""


def command() -> Any:
    """The whole command line as one typer command."""
    return typer.main.get_command(app)
