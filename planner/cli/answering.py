"""The decorator every command wears: it adds the flags about format and file, and writes the answer."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from planner.cli.complaints import unknown
from planner.cli.output import FORMATS, Answer, destination, emit

_PANEL = "Output"
COLORS = ("auto", "always", "never")

Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help=f"{', '.join(FORMATS)}; else FILE's suffix tells.",
        rich_help_panel=_PANEL,
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write into FILE, whole or not at all.", rich_help_panel=_PANEL
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Replace FILE if it exists.", rich_help_panel=_PANEL)]
Color = Annotated[
    str,
    typer.Option(
        metavar="|".join(COLORS), help="NO_COLOR and FORCE_COLOR count too.", rich_help_panel=_PANEL
    ),
]
Debug = Annotated[
    bool,
    typer.Option("--debug", help="Show the traceback of an error (PLANNER_DEBUG=1).", rich_help_panel=_PANEL),
]

_FLAGS: dict[str, tuple[Any, Any]] = {
    "format": (Format, None),
    "output": (Output, None),
    "yes": (Yes, False),
    "color": (Color, "auto"),
    "debug": (Debug, False),
}


def answers(command: Callable[..., Answer]) -> Callable[..., int]:
    """Turn a function that returns an Answer into a command that writes it and returns its exit code.

    The destination is checked before the function runs, so a refused file costs no waiting.
    """
    signature = inspect.signature(command, eval_str=True)
    flags = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in _FLAGS.items()
    ]

    @functools.wraps(command)
    def answering(**given: Any) -> int:
        format, output, yes, color, _debug = (given.pop(name) for name in _FLAGS)
        to = destination(format, output, yes)
        if color not in COLORS:
            raise unknown("value of --color", color, COLORS)
        answer = command(**given)
        emit(answer, to, color)
        return answer.exit_code

    parameters = [*signature.parameters.values(), *flags]
    answering.__signature__ = signature.replace(parameters=parameters, return_annotation=int)  # type: ignore[attr-defined]
    answering.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return answering
