"""The commands, one module each. The table below is what help, completion and the tests are made from.

A command's module is imported when the command is named, so `planner --help` pays for none of
them. Each module holds `app`, a `typer.Typer`; its help is the summary given here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command, the module that holds it and what help prints for it.

    beside: whether help prints it on the line of the command before it, so that the page stays one screen.
    """

    name: str
    module: str
    summary: str
    beside: bool = False


_ENTRIES = (
    CommandEntry("optimize", "optimize", "What a training run costs and takes, on what"),
    CommandEntry("schedule", "schedule", "The file of a whole project"),
    # CommandEntry("sweep", "sweep", "its front under other inputs", beside=True),
    CommandEntry("explain", "explain", "Why a plan is so"),
    CommandEntry("breakeven", "breakeven", "when owning a rig pays off", beside=True),
    # CommandEntry("diff", "diff", "Why two plans differ"),
    # CommandEntry("export", "export", "task files that run a plan", beside=True),
    CommandEntry("report", "report", "Finance books, pages and timers from a plan"),
    CommandEntry("estimate", "estimate", "How fast it runs; whether it fits in memory"),
    CommandEntry("hardware", "hardware", "GPUs and rigs, which to buy"),
    CommandEntry("workloads", "workloads", "models we know", beside=True),
    CommandEntry("prices", "prices", "What things cost, now or then, and who said so"),
    CommandEntry("serve", "serve", "The same answers over HTTP and in a browser"),
    CommandEntry("validate", "validate", "How right we are, against measured runs"),
    CommandEntry("calibrate", "calibrate", "How fast this machine is"),
    CommandEntry("doctor", "doctor", "do card, driver and torch fit", beside=True),
    CommandEntry("config", "config", "Settings in force"),
    CommandEntry("completion", "completion", "tab completion for your shell", beside=True),
)

COMMANDS = {entry.name: entry for entry in _ENTRIES}


def help_lines() -> list[str]:
    """The commands as the top page lists them: two that belong together share a line."""
    together: list[list[CommandEntry]] = []
    for entry in _ENTRIES:
        if entry.beside:
            together[-1].append(entry)
        else:
            together.append([entry])
    return [
        f"{', '.join(entry.name for entry in line):<21}{'; '.join(entry.summary for entry in line)}"
        for line in together
    ]
