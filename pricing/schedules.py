"""When a refresh is due, and unit files for the programs that start it: cron, systemd, Kubernetes.

The planner brings no scheduler of its own for this: those three are there already, survive a restart, and
log. Overlapping runs are harmless (locks.py), late ones are caught up once.
"""

from __future__ import annotations

import shlex
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from .errors import PricingError

FORMS = ("cron", "systemd", "kubernetes")
_SECRET = """                  valueFrom:
                    secretKeyRef: {name: planner-prices, key: store-url}
"""
IMAGE = "training-planner:latest"


class BadSchedule(PricingError):
    """A schedule that cannot be written."""


@dataclass(frozen=True, slots=True)
class Due:
    """Whether a run is due now. missed: the slots that went by unserved, all caught up by this one run."""

    run: bool
    missed: tuple[datetime, ...] = ()

    @property
    def text(self) -> str:
        """A line for the log; "" when nothing was missed."""
        if not self.missed:
            return ""
        slots = ", ".join(f"{slot:%Y-%m-%d %H:%M}" for slot in self.missed)
        return f"one catch-up run for {len(self.missed)} missed: {slots} UTC"


def due(last_slot: datetime, now: datetime, every: timedelta) -> Due:
    """Whether a slot has come since the last one that was served, at multiples of `every` after it.

    However many have gone by (a laptop slept, a clock jumped), one run makes up for all: prices have no use
    for being fetched three times in a row. A clock that went back makes nothing due.
    """
    if now < last_slot + every:
        return Due(run=False)
    passed = (now - last_slot) // every
    slots = tuple(last_slot + every * number for number in range(1, passed + 1))
    return Due(run=True, missed=slots if len(slots) > 1 else ())


def unit_files(form: str, *, at: str = "04:17", program: str = "planner", store: str | None = None) -> str:
    """What to install for one refresh a day at `at` (HH:MM, UTC), as text.

    form: one of FORMS. program: the planner's path as the scheduler will find it; of kubernetes, the image.
    store: the store's address; None for the usual one (kubernetes: from a secret that the file names).
    Raises BadSchedule.

    The default time is an odd minute, when fewer planners ask at once.
    """
    if form not in FORMS:
        raise BadSchedule(f'no schedule of form "{form}"; forms: {", ".join(FORMS)}')
    template = (Path(__file__).parent / "data" / "schedules" / f"{form}.txt").read_text(encoding="utf-8")
    return filled(template, at=at, program=program, store=store)


def filled(
    template: str, *, at: str, program: str, store: str | None, words: Sequence[str] = (),
    more: Mapping[str, str] | None = None,
) -> str:  # fmt: skip
    """A template of one of FORMS with time, program and store in it; `more` are its other placeholders.

    words: texts that `more` was made from, refused where a unit file would run or expand them.
    Raises BadSchedule.
    """
    hour, minute = _clock_time(at)
    for value in (program, store or "", *words):
        if not value.isprintable() or any(mark in value for mark in "\"'\\`$%"):
            raise BadSchedule(f"{value!r}: quotes, backslashes, $ and % are not taken here; rename it")
    values = {
        **(more or {}),
        "hour": f"{hour:02d}",
        "minute": f"{minute:02d}",
        "cron_time": f"{minute} {hour}",
        "program": shlex.quote(program),
        "image": program if program != "planner" else IMAGE,
        "cron_store": f"PLANNER_STORE_URL={store}\n" if store else "",
        "systemd_store": f"Environment=PLANNER_STORE_URL={store}\n" if store else "",
        "kubernetes_store": f'                  value: "{store}"\n' if store else _SECRET,
    }
    return string.Template(template).substitute(values)


def _clock_time(text: str) -> tuple[int, int]:
    hour, colon, minute = text.partition(":")
    if colon and hour.isdecimal() and minute.isdecimal() and len(minute) == 2 and len(hour) <= 2:
        found = int(hour), int(minute)
        if found < (24, 0) and found[1] < 60:
            return found
    raise BadSchedule(f'"{text}" is no time of day: 04:17 is meant')
