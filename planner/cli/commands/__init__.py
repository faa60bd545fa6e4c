"""The commands, one module each. The table below is what help, completion and the tests are made from.

A command's module is imported when the command is named, so `planner --help` pays for none of
them. Each module holds `app`, a `typer.Typer`; its help is the summary given here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command, the module that holds it and the line that help prints for it."""

    name: str
    module: str
    summary: str


_ENTRIES = (
    CommandEntry("optimize", "optimize", "What a training run costs and takes, on what"),
    CommandEntry("schedule", "schedule", "The file a whole project is planned from"),
    CommandEntry("report", "report", "Finance books, pages and timers from a plan"),
    CommandEntry("estimate", "estimate", "How fast it runs; whether it fits in memory"),
    CommandEntry("hardware", "hardware", "GPUs, instances and rigs we know"),
    CommandEntry("workloads", "workloads", "Models we know, with their reference runs"),
    CommandEntry("prices", "prices", "What things cost, now or then, and who said so"),
    CommandEntry("serve", "serve", "The same answers over HTTP and in a browser"),
    CommandEntry("validate", "validate", "How right we are, against measured runs"),
    CommandEntry("calibrate", "calibrate", "How fast this machine is: torch microbenchmarks"),
    CommandEntry("doctor", "doctor", "Do card, driver, CUDA and torch fit together"),
    CommandEntry("config", "config", "Settings in force and where each came from"),
    CommandEntry("completion", "completion", "Tab completion for your shell"),
)

COMMANDS = {entry.name: entry for entry in _ENTRIES}
