"""What is wrong with the text of a schedule, line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planner.errors import UsageError

if TYPE_CHECKING:
    from planner.schedule.file import ScheduleFile

NAME = "schedule"
_SYNTAX = re.compile(rf"{NAME}, line (\d+): (.*)", re.DOTALL)
_COMPLAINT = re.compile(rf"{NAME}: (?P<where>\w[\w.\[\]-]*)(?P<value> = .*?)?: (?P<text>.*)", re.DOTALL)
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


@dataclass(frozen=True, slots=True)
class Message:
    """One fault. where: jobs[2].deadline, "" for the whole. line: 1 for the first; None where unknown.

    quoted: that line as it stands.
    """

    text: str
    where: str = ""
    line: int | None = None
    quoted: str = ""


def read(text: str) -> ScheduleFile:
    """The schedule of YAML text. Raises UsageError with each complaint on a line of its own."""
    from planner.schedule.reading import checked, parse

    return checked(parse(text, NAME), NAME)


def messages(error: UsageError, text: str) -> list[Message]:
    """The complaints of `read`, each with the line of `text` that it is about."""
    lines = text.splitlines()
    syntax = _SYNTAX.match(str(error))
    if syntax:
        number = int(syntax[1])
        return [Message(syntax[2], line=number, quoted="".join(lines[:number][-1:]))]
    tree = _tree(text)
    return [_located(complaint, tree, lines) for complaint in str(error).splitlines()]


def _located(complaint: str, tree: Any, lines: list[str]) -> Message:
    match = _COMPLAINT.match(complaint)
    if not match:
        return Message(complaint.removeprefix(f"{NAME}: "))
    where = match["where"]
    line = _line(tree, where)
    said = f"{match['value'].removeprefix(' = ')}: {match['text']}" if match["value"] else match["text"]
    return Message(said, where, line, "" if line is None else "".join(lines[:line][-1:]).strip())


def _tree(text: str) -> Any:
    """The text's nodes with their places; None where it does not read. Only for what `read` has looked at."""
    import yaml

    try:
        return yaml.compose(text, yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def _line(tree: Any, where: str) -> int | None:
    """The line of jobs[2].deadline, or of as much of it as there is."""
    line = None
    for step in _steps(where):
        found = _child(tree, step)
        if found is None:
            return line
        tree, line = found
    return line


def _steps(where: str) -> Iterator[int | str]:
    for index, name in _STEP.findall(where):
        yield int(index) if index else name


def _child(tree: Any, step: int | str) -> tuple[Any, int] | None:
    """The node below and the line that it, or its key, stands on."""
    import yaml

    if isinstance(step, int) and isinstance(tree, yaml.SequenceNode) and step < len(tree.value):
        return tree.value[step], tree.value[step].start_mark.line + 1
    if isinstance(step, str) and isinstance(tree, yaml.MappingNode):
        for key, value in tree.value:
            if key.value == step:
                return value, key.start_mark.line + 1
    return None
