"""Runs that may start in one month or another, told apart by the part of the calendar they start in.

A run of own rigs holds them without a break. Hours of a month as a heap let a long run be thinned out over
many months; where it is known when about it starts, it holds most of them whole. So such an option is written
once for each month of its start, or part of one, with that as the window of its start.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from .flat import SAME_HOURS, Floats, Options

# Shorter runs lose little by being thinned out. Share of a month.
_SHORT = 0.15


def by_start(options: Options, opens: Sequence[float], parts: int) -> Options:
    """Long own options that may start in several months, once for each part of a month they may start in.

    opens: start of each month and end of the last. [h] parts: of each month.
    """
    edges = [
        start + part * (end - start) / parts
        for start, end in itertools.pairwise(opens)
        for part in range(parts)
    ] + [opens[-1]]
    month = (opens[-1] - opens[0]) / (len(opens) - 1)
    rows: list[int] = []
    starts: list[tuple[float, float]] = []
    for row in range(len(options)):
        earliest, hours = float(options.earliest[row]), float(options.hours[row])
        last = float(options.latest[row]) - hours
        windows = [
            (max(earliest, start), min(last, end))
            for start, end in itertools.pairwise(edges)
            if start <= last + SAME_HOURS and end > earliest + SAME_HOURS
        ]
        long = options.rig[row] >= 0 and hours >= _SHORT * month and last - earliest > month / 2
        for window in windows if long and windows else [(earliest, last)]:
            rows.append(row)
            starts.append(window)
    found = options.take(np.array(rows, dtype=np.int64))
    found.earliest[:] = [first for first, _ in starts]
    found.latest[:] = np.array([last for _, last in starts]) + found.hours
    return found


def overlap(first: Floats, last: Floats, hours: Floats, opens: float, closes: float) -> tuple[Floats, Floats]:
    """Least and most hours inside [opens, closes] of runs that start between first and last. [h]"""

    def inside(start: Floats) -> Floats:
        both = np.minimum(start + hours, closes) - np.maximum(start, opens)
        return np.asarray(np.maximum(both, 0.0))

    ends = inside(first), inside(last)
    edges = (opens, closes - hours)
    reaches = (first <= np.maximum(*edges)) & (last >= np.minimum(*edges))
    most = np.where(reaches, np.minimum(hours, closes - opens), np.maximum(*ends))
    return np.minimum(*ends), most
