"""Run a command line to its exit code: the one place where an error becomes a sentence and a number.

0 answered · 1 our mistake · 2 yours · 3 a limit binds · 4 no usable price · 5 nothing usable is stored ·
6 partial · 7 above --fail-above · 130 interrupted · 141 the reader of the pipe left
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

from typer.exceptions import Exit, TyperException

INTERRUPTED = 130
PIPE_CLOSED = 141
"""What a shell reports for a program stopped by SIGINT (128 + 2) or SIGPIPE (128 + 13)."""


_LONGEST_WORD = 300


def run(arguments: Sequence[str]) -> int:
    """Carry out a command line and return its exit code. Writes stdout and stderr; raises nothing."""
    debug = "--debug" in arguments or os.environ.get("PLANNER_DEBUG", "0") not in ("", "0")
    try:
        return _invoke(list(arguments))
    except BrokenPipeError:
        return _leave_quietly()
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    except SystemExit:  # how rich leaves where the reader of a page of help has left
        return _leave_quietly()
    except TyperException as usage:
        return _usage(usage, arguments)
    except Exception as error:  # noqa: BLE001 - the last line of defence; --debug shows what it was
        return _failed(error, debug)


def _invoke(arguments: list[str]) -> int:
    from planner.cli.app import command

    root = command()
    if "_PLANNER_COMPLETE" in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
        root.main(arguments, prog_name="planner", complete_var="_PLANNER_COMPLETE")
    try:
        with root.make_context("planner", arguments) as context:
            code = root.invoke(context)
    except Exit as left:
        code = left.exit_code
    sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _failed(error: Exception, debug: bool) -> int:
    if debug:
        import traceback

        traceback.print_exception(error)
    code = _exit_code(error)
    if code is not None:
        return _complain(str(error), code)
    kind = type(error).__name__
    advice = "" if debug else " Please run again with --debug and report what it prints."
    return _complain(f"something went wrong inside the planner ({kind}: {_first_line(error)}).{advice}", 1)


def _exit_code(error: Exception) -> int | None:
    """The code of an error that was foreseen; None for one that was not."""
    from planner.errors import PlannerError
    from planner.models.errors import BadData, ModelsError
    from planner.pricing.errors import PricingError, StoreUnusable

    if isinstance(error, PlannerError):
        return error.exit_code
    if isinstance(error, StoreUnusable | BadData):
        return 5
    return 2 if isinstance(error, ModelsError | PricingError) else None


def _usage(error: TyperException, arguments: Sequence[str]) -> int:
    """The parser's own complaints, each in one line with the nearest valid flag."""
    message = " ".join(error.format_message().split())
    option = getattr(error, "option_name", None)
    context = getattr(error, "ctx", None)
    if option and message.startswith("No such option"):
        from planner.models.errors import nearest_names

        known = [flag for parameter in context.command.params for flag in parameter.opts] if context else []
        nearest = nearest_names(option, known, limit=1)
        message = f'no option "{option}".' + (f' Did you mean "{nearest[0]}"?' if nearest else "")
    elif type(error).__name__ == "NoArgsIsHelpError":
        print(error.format_message(), file=sys.stderr)
        return error.exit_code
    where = context.command_path if context else "planner"
    return _complain(f"{message[:1].lower()}{message[1:]} All options: {where} --help", error.exit_code)


def _complain(message: str, code: int) -> int:
    from dataclasses import replace

    from planner.reports.look import look_of

    look = replace(look_of(sys.stderr), color=False)  # we write no colour here, and names must not
    print(look.text(f"error: {_shortened(message)}"), file=sys.stderr)
    return code


def _shortened(message: str) -> str:
    """The message with every endless word cut: what was typed is quoted to be found again, not to be read."""
    return re.sub(rf"(\S{{{_LONGEST_WORD}}})\S+", r"\1...", message)


def _leave_quietly() -> int:
    """The reader of the pipe has left, as `head` does; Python must not complain about it when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return PIPE_CLOSED


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "no message")
