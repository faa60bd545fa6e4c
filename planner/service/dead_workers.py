"""Jobs whose worker died or hangs are queued again."""

from __future__ import annotations

import time

from planner.service.jobs import MOST_TRIES, Jobs

_KILLED = f"its worker died {MOST_TRIES} times, so it is not tried again; see the log, then ask for it anew"


class DeadWorkers:
    """Finds them by heartbeats that stand still while this process watches.

    How long is counted by this process's own steady clock: the time of day of any server may jump or be
    wrong, and nobody's job is taken for that. A server that has just started therefore waits its
    `silent_seconds` before it takes anything.
    """

    def __init__(self, jobs: Jobs, silent_seconds: float) -> None:
        self.jobs, self.silent_seconds = jobs, silent_seconds
        self._seen: dict[tuple[str, str, str], float] = {}

    def retake(self) -> list[str]:
        """Queue again what the dead held, MOST_TRIES at most; returns the ids that are queued again."""
        at = time.monotonic()
        self._seen = {held: self._seen.get(held, at) for held in self.jobs.held()}
        return [
            id
            for (id, claim, _), since in self._seen.items()
            if at - since >= self.silent_seconds and self.jobs.try_again(id, claim, _KILLED)
        ]
