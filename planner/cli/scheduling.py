"""`planner optimize SCHEDULE.yaml`: from flags to the front of a schedule, with word of how far it is."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from planner.cli.output import Answer
from planner.errors import UsageError
from planner.reports.look import look_of

ABOVE_LIMIT = 7
# Flags that a schedule takes beside its file; all else stands in the file, where each job may differ.
FLAGS = frozenset({"budget", "currency", "as_of", "seed", "confidence", "points", "objective", "fail_above"})
_QUIET_SECONDS = 0.5


def schedule_answer(schedule: str, given: Mapping[str, Any], ceiling: Decimal | None) -> Answer:
    """The answer to a schedule file. given: every flag of `optimize`, None where it was not said."""
    from planner import api
    from planner.reports.schedule_table import header, schedule_rows, schedule_table

    settings = _settings(given)
    plan = api.optimize_schedule(schedule, progress=Progress(), **settings)
    for warning in plan.warnings:
        print(look_of(sys.stderr).text(f"warning: {warning}"), file=sys.stderr)
    document = plan.to_json()
    above = ceiling is not None and plan.front[0].cost.p50 > ceiling
    if above:
        cheapest = f"{plan.front[0].cost.p50} {plan.currency}"
        said = f"above --fail-above {ceiling}: the cheapest plan costs {cheapest}"
        print(said, file=sys.stderr)
    notes = header(document)
    return Answer(
        document=document,
        items=document["front"],
        rows=lambda: schedule_rows(document),
        table=lambda look: schedule_table(document, look),
        title=notes[0],
        notes=notes[1:],
        exit_code=ABOVE_LIMIT if above else 0,
    )


def _settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Flags as settings. Raises UsageError for one that belongs into the file, or that does not read."""
    from planner.config import use_store
    from planner.request import CONVERT, number

    use_store()
    for key, value in given.items():
        if value not in (None, False, (), []) and key not in FLAGS | {"schedule"}:
            flag = f"--{key.replace('_', '-')}"
            raise UsageError(f"{flag} belongs into the schedule file; see: planner schedule schema", key)
    found: dict[str, Any] = {
        key: given[key]
        for key in ("budget", "currency", "as_of", "seed", "objective")
        if given[key] is not None
    }
    try:
        if given["confidence"] is not None:
            found["confidence"] = CONVERT["confidence"](given["confidence"])
        if given["points"] is not None:
            found["points"] = int(number(given["points"]))
    except ValueError as error:
        key = "points" if given["confidence"] is None else "confidence"
        raise UsageError(f"--{key} {given[key]}: {error}", key) from error
    if not 1 <= found.get("points", 1) <= 200:
        raise UsageError("--points: from 1 to 200", "points")
    return found


class Progress:
    """A line on a terminal's stderr once it takes longer than half a second; elsewhere silence."""

    def __init__(self) -> None:
        # Summed once, here: from then on there is something to wait for.
        self._from = time.monotonic() + _QUIET_SECONDS
        self._shown = False

    def __call__(self, what: str, done: int, of: int) -> None:
        if not sys.stderr.isatty() or time.monotonic() < self._from:
            return
        end = "\n" if what.startswith(("points", "limits", "sweep")) and done >= of else ""
        print(f"\r{what}: {done} of {of}   ", end=end, file=sys.stderr, flush=True)
