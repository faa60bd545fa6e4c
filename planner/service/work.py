"""One job, in its own process: what each kind of job does."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from planner.pricing.errors import StoreUnusable
from planner.pricing.locks import RefreshRunning
from planner.service.jobs import Jobs
from planner.service.state import State

_LOG = logging.getLogger("planner.service")
Tell = Callable[[str, int, int], None]


def work(url: str, id: str, claim: str, patience_seconds: float) -> None:
    """Do a claimed job and write down how it ended, waiting so long for a database that is away."""
    os.environ["PLANNER_STORE_URL"] = url
    patiently = Retrying(
        retry=retry_if_exception_type(StoreUnusable),
        wait=wait_random_exponential(multiplier=0.1, max=2),
        stop=stop_after_delay(patience_seconds),
        reraise=True,
    )
    state = patiently(State.open, url)
    try:
        patiently(_done(Jobs(state), id, claim))
    finally:
        state.close()


def _done(jobs: Jobs, id: str, claim: str) -> Callable[[], bool]:
    """Work on the job; returns what writes its end down."""
    try:
        (row,) = jobs.state.rows("SELECT kind, asked FROM service_jobs WHERE id = :id", id=id)
        document, message = KINDS[row["kind"]](json.loads(row["asked"]), _teller(jobs, id, claim))
    except RefreshRunning as error:
        return partial(jobs.fail, id, claim, str(error))
    except StoreUnusable as error:
        # Not the job's fault: the database went away, or its disk is full.
        return partial(jobs.try_again, id, claim, str(error))
    except Exception as error:  # noqa: BLE001 - whatever it was, the job has ended and must say so
        return partial(jobs.fail, id, claim, _told(error))
    return partial(jobs.done, id, claim, document, message)


def _told(error: Exception) -> str:
    from planner.service.faults import TELLABLE

    if isinstance(error, TELLABLE):
        return str(error)
    _LOG.exception("a job failed by a fault of ours")
    return f"a fault of ours ({type(error).__name__}); the log says where"


def _teller(jobs: Jobs, id: str, claim: str) -> Tell:
    """Writes progress down, twice a second at most."""
    last = 0.0

    def tell(what: str, done: int, of: int) -> None:
        nonlocal last
        if time.monotonic() - last > 0.5:
            last = time.monotonic()
            try:
                jobs.tell(id, claim, f"{what}: {done} of {of}", done / of if of else None)
            except StoreUnusable as error:
                _LOG.warning("job %s: its progress is not shown: %s", id, error)

    return tell


def _schedule(asked: dict[str, Any], tell: Tell) -> tuple[dict[str, Any], str]:
    from planner import optimize_schedule

    plan = optimize_schedule(
        asked["schedule"], points=asked.get("points", 12), seconds=asked.get("seconds", 45.0), progress=tell
    )
    return plan.to_json(), f"{len(plan.front)} plans on the front"


def _optimize(asked: dict[str, Any], tell: Tell) -> tuple[dict[str, Any], str]:
    from planner import optimize
    from planner.request import OptimizeRequest

    plan = optimize(OptimizeRequest.of(**asked))
    return plan.to_json(), f"{len(plan.options)} options"


def _refresh(asked: dict[str, Any], tell: Tell) -> tuple[None, str]:
    from planner.prices import refresh_prices

    done = refresh_prices(asked.get("sources", ()), progress=lambda line: tell(line, 0, 0))
    return None, f"{done.report.added} rows added, exit code {done.report.exit_code}"


KINDS: dict[str, Callable[[dict[str, Any], Tell], tuple[dict[str, Any] | None, str]]] = {
    "schedule": _schedule,
    "optimize": _optimize,
    "refresh": _refresh,
}
