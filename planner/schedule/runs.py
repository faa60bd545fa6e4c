"""The jobs of a schedule file as single runs: repeats written out, dates as hours, order as indices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from planner.errors import UsageError

from .dates import Calendar
from .file import MOST_JOBS, ScheduledJob, ScheduleFile
from .quantities import start_of


@dataclass(frozen=True, slots=True)
class Run:
    """One training run. release, deadline: hours from the schedule's start; deadline None: none asked. [h]"""

    id: str
    job: ScheduledJob
    release: float
    deadline: float | None
    predecessors: tuple[int, ...]


def calendar_of(file: ScheduleFile) -> Calendar:
    """The months of the schedule."""
    return Calendar(file.starts, file.months, ZoneInfo(file.time_zone))


def runs_of(file: ScheduleFile, calendar: Calendar) -> tuple[Run, ...]:
    """Every run, in the file's order. Raises UsageError for dates outside the schedule and for circles."""
    written: list[tuple[str, ScheduledJob, float, float | None]] = []
    members: dict[str, list[int]] = {}
    for job in file.jobs:
        for name, release, deadline in _repeated(job, calendar):
            members.setdefault(job.id, []).append(len(written))
            written.append((name, job, release, deadline))
            if len(written) > MOST_JOBS:
                raise UsageError(f"jobs: more than {MOST_JOBS:,} runs once repeats are written out", "jobs")
    _refuse_circles(file)
    places = {index: place for group in members.values() for place, index in enumerate(group)}
    return tuple(
        Run(name, job, release, deadline, _before(job, places[index], members))
        for index, (name, job, release, deadline) in enumerate(written)
    )


def _repeated(job: ScheduledJob, calendar: Calendar) -> Iterator[tuple[str, float, float | None]]:
    """(id, release, deadline) of each of its runs."""
    first = _hours(job.release, calendar, 0.0)
    for label, release in _releases(job, calendar, first):
        deadline = _deadline(job, calendar, release)
        if not 0 <= release < calendar.edge_hours[-1]:
            raise UsageError(f"{job.id}{label}: its release lies outside the schedule's months", "jobs")
        if deadline is not None and deadline <= release:
            raise UsageError(f"{job.id}{label}: its deadline is not after its release", "jobs")
        if deadline is not None and deadline > calendar.edge_hours[-1] + 1e-6:
            raise UsageError(
                f"{job.id}{label}: its deadline lies past the schedule's last month; give more months", "jobs"
            )
        for number in range(job.repeat.runs):
            sweep = f"#{number + 1}" if job.repeat.runs > 1 else ""
            yield f"{job.id}{label}{sweep}", release, deadline


def _releases(job: ScheduledJob, calendar: Calendar, first: float) -> Iterator[tuple[str, float]]:
    every, times = job.repeat.every, job.repeat.times
    if every is None:
        yield "", first
    elif every == "month":
        start = calendar.month_of(first)
        offset = first - calendar.edge_hours[start]
        last = calendar.months if times is None else start + times
        if last > calendar.months:
            raise UsageError(f"{job.id}: {times} months from its release pass the schedule's end", "jobs")
        for month in range(start, last):
            yield f"[{calendar.name(month)}]", calendar.edge_hours[month] + offset
    else:
        for number in range(times or 1):
            yield f"[{number + 1}]", first + number * float(every)


def _hours(value: Any, calendar: Calendar, default: float) -> float:
    if value is None:
        return default
    if isinstance(value, Decimal):
        return float(value)
    return calendar.hours(value if isinstance(value, datetime) else start_of(value, calendar.zone))


def _deadline(job: ScheduledJob, calendar: Calendar, release: float) -> float | None:
    """A span counts from the release; a date means its end."""
    value = job.deadline
    if value is None:
        return None
    if isinstance(value, Decimal):
        return release + float(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        value = start_of(value + timedelta(days=1), calendar.zone)
    return calendar.hours(value)


def _before(job: ScheduledJob, place: int, members: dict[str, list[int]]) -> tuple[int, ...]:
    """Of a job repeated as often: the run of the same number; else every run of it."""
    found: list[int] = []
    for name in dict.fromkeys(job.after):
        theirs = members[name]
        alike = len(theirs) == len(members[job.id]) and len(theirs) > 1
        found += [theirs[place]] if alike else theirs
    return tuple(found)


def _refuse_circles(file: ScheduleFile) -> None:
    from graphlib import CycleError, TopologicalSorter

    try:
        TopologicalSorter({job.id: job.after for job in file.jobs}).prepare()
    except CycleError as error:
        raise UsageError(f"jobs: each waits for the next: {' after '.join(error.args[1])}", "jobs") from error
