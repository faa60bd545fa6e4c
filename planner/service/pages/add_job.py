"""A job written into the text of a schedule, below its other jobs: for whom a form is easier than YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from planner.errors import UsageError
from planner.service.pages.fields import Field

FIELDS = (
    Field("id", "Name", "Letters, digits, dots and dashes.", "tune-large"),
    Field("workload", "Model", "A workload we know.", "bert-base", names="workloads"),
    Field("epochs", "Epochs", "Times through the data.", "10", "decimal"),
    Field("release", "Not before", "A date, or a span from the start.", "14d"),
    Field("deadline", "Deadline", "A date, or a span from its release.", "2027-03-31"),
    Field("after", "After", "Jobs that must have ended; commas between.", "pretrain"),
)
KEYS = tuple(field.key for field in FIELDS)

# What YAML would take for something else than text stands in quotes: 1e3, yes, 2027-01-01, a: b.
_PLAIN = re.compile(r"[A-Za-z][\w.-]*")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


def with_job(text: str, filled: Mapping[str, str]) -> str:
    """The text with one job more. filled: keys of FIELDS, those left out are not written.

    Raises UsageError where `text` holds no list of jobs to add to.
    """
    jobs = _jobs(text)
    if jobs is None:
        raise UsageError('there is no list "jobs:" to add to; begin from the example', "schedule")
    last = jobs.value[-1]
    lines = text.splitlines()
    indent = lines[jobs.start_mark.line][: jobs.start_mark.column]
    end = last.end_mark.line if last.end_mark.column == 0 else last.end_mark.line + 1
    while end > 0 and (not lines[:end][-1].strip() or lines[:end][-1].lstrip().startswith("#")):
        end = len(lines[:end][:-1])
    written = [f"{key}: {_value(key, filled[key])}" for key in KEYS if filled.get(key)]
    item = [f"{indent}{'- ' if number == 0 else '  '}{line}" for number, line in enumerate(written)]
    return "\n".join([*lines[:end], *item, *lines[end:]]) + "\n"


def _value(key: str, written: str) -> str:
    if key == "after":
        return "[" + ", ".join(_quoted(name.strip()) for name in written.split(",") if name.strip()) + "]"
    return written if key == "epochs" and re.fullmatch(r"\d+(\.\d+)?", written) else _quoted(written)


def _quoted(written: str) -> str:
    import json

    written = "".join(letter for letter in written if letter.isprintable())  # YAML takes no others
    plain = _PLAIN.fullmatch(written) and written.casefold() not in _WORDS
    return written if plain else json.dumps(written, ensure_ascii=False)


def _jobs(text: str) -> Any:
    """The node of the jobs' list, written as a block of lines; None where there is none."""
    import yaml

    try:
        tree = yaml.compose(text, yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    if not isinstance(tree, yaml.MappingNode):
        return None
    for key, value in tree.value:
        if (
            key.value == "jobs"
            and isinstance(value, yaml.SequenceNode)
            and value.value
            and not value.flow_style
        ):
            return value
    return None
