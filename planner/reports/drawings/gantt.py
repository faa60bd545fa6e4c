"""Bars over time: the jobs of a schedule, or the stretches of one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from planner.reports import figures
from planner.reports.drawings import svg

_ROW, _NAMES = 26, 150
_LONGEST_NAME = 18
_DAYS = (1, 2, 7, 14, 31, 92, 183, 366, 731, 1827)


def gantt(jobs: Sequence[Mapping[str, Any]], starts: str, ends: str) -> str:
    """When each job of a plan's point runs, and its deadline. starts, ends: RFC 3339."""
    first, last = datetime.fromisoformat(starts), datetime.fromisoformat(ends)
    spans = [(_moment(job["start"]), _moment(job["end"])) for job in jobs]
    last = max([last, *(end for _, end in spans)])
    x = svg.Scale(0.0, max((last - first) / timedelta(hours=1), 1.0), _NAMES, svg.WIDTH - svg.RIGHT)
    bottom = svg.TOP + _ROW * max(len(jobs), 1)
    parts = _dates(x, first, last, bottom)
    for i, (job, (start, end)) in enumerate(zip(jobs, spans, strict=True)):
        top = svg.TOP + _ROW * i
        said = f"{job['id']}: {start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC on {job['hardware']}"
        begin, finish = (x.at((at - first) / timedelta(hours=1)) for at in (start, end))
        bar = svg.element(
            "rect",
            svg.hint(said),
            x=begin, y=top + 4, width=max(round(finish - begin, 2), 2), height=_ROW - 8, rx=2,
            class_=f"bar {job['purchase_model'].replace('_', '-')}",
        )  # fmt: skip
        parts += [svg.text(_short(job["id"]), _NAMES - 8, top + 17, class_="tick end"), bar]
        if job["deadline"]:
            due = x.at((_moment(job["deadline"]) - first) / timedelta(hours=1))
            parts.append(svg.line(due, top + 1, due, top + _ROW - 1, "deadline"))
    said = f"{len(jobs)} jobs from {first:%Y-%m-%d} to {last:%Y-%m-%d}; a thick line marks a deadline"
    return svg.drawing(parts, "When each job runs", said, bottom + svg.BOTTOM - 16)


def stretches(lines: Sequence[Mapping[str, Any]]) -> str:
    """The parts of one run's duration, one after the other. lines: the time lines of an option. [h]"""
    total = sum(line["hours"] for line in lines)
    x = svg.padded([total], _NAMES, svg.WIDTH - svg.RIGHT)
    bottom = svg.TOP + _ROW * max(len(lines), 1)
    parts = []
    for value in x.ticks():
        at = x.at(value)
        parts += [svg.line(at, svg.TOP, at, bottom, "grid")]
        parts += [svg.text(svg.number(value), at, bottom + 16, class_="tick mid")]
    gone = 0.0
    for i, line in enumerate(lines):
        top, begin, finish = svg.TOP + _ROW * i, x.at(gone), x.at(gone + line["hours"])
        said = f"{line['item']}: {figures.hours(line['hours'])} h"
        parts.append(svg.text(_short(line["item"]), _NAMES - 8, top + 17, class_="tick end"))
        parts.append(
            svg.element(
                "rect",
                svg.hint(said),
                x=begin,
                y=top + 4,
                width=max(round(finish - begin, 2), 2),
                height=_ROW - 8,
                rx=2,
                class_="bar",
            )
        )
        gone += line["hours"]
    parts.append(svg.text("hours", (_NAMES + svg.WIDTH) / 2, bottom + 34, class_="label mid"))
    listed = "; ".join(f"{line['item']} {figures.hours(line['hours'])} h" for line in lines)
    return svg.drawing(parts, "Where the hours go", listed, bottom + svg.BOTTOM)


def _dates(x: svg.Scale, first: datetime, last: datetime, bottom: float) -> list[str]:
    days = (last - first) / timedelta(days=1)
    step = next((step for step in _DAYS if days / step <= 7), _DAYS[-1])
    parts = []
    for number in range(int(days / step) + 1):
        at = x.at(number * step * 24.0)
        day = first + timedelta(days=number * step)
        parts += [svg.line(at, svg.TOP, at, bottom, "grid")]
        parts += [svg.text(f"{day:%y-%m-%d}", at, bottom + 16, class_="tick mid")]
    return parts


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _moment(written: str) -> datetime:
    return datetime.fromisoformat(written)
