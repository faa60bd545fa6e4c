"""Unit files for the programs that start a dated report: cron, systemd, Kubernetes."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from planner.errors import UsageError
from planner.pricing.schedules import FORMS, BadSchedule, filled


def timer(
    form: str, source: str, root: str, *, at: str = "05:17", day: str | None = None, program: str = "planner",
    store: str | None = None,
) -> str:  # fmt: skip
    """What to install for a report a day, or a month, at `at` (HH:MM, UTC), as text.

    source: the schedule or plan file; root: the folder of the reports; both as the timer will find them.
    day: of the month, 1 to 28; None: every day. program, store: as in planner.pricing.schedules.unit_files.
    Raises UsageError.
    """
    if day is not None and not (day.isdecimal() and 1 <= int(day) <= 28):
        raise UsageError(f"--day {day}: a day that every month has is meant, 1 to 28", "day")
    for path in (source, root):
        if not path.startswith("/"):
            raise UsageError(f"{path}: a timer needs the whole path, from / on", "output")
    arguments = ["report", "run", source, "-o", root]
    try:
        if form not in FORMS:
            raise BadSchedule(f'no schedule of form "{form}"; forms: {", ".join(FORMS)}')
        template = (Path(__file__).parent / "data" / f"{form}.txt").read_text(encoding="utf-8")
        return filled(
            template, at=at, program=program, store=store, words=(source, root),
            more={
                "arguments": shlex.join(arguments),
                "argument_list": json.dumps(arguments, ensure_ascii=False),
                "cron_day": str(int(day)) if day else "*",
                "calendar_day": f"{int(day):02d}" if day else "*",
                "root": root,
                "source": source,
            },
        )  # fmt: skip
    except BadSchedule as error:
        raise UsageError(str(error), "format") from error
