"""The daily price refresh inside the service: APScheduler says when, the jobs do it.

The slot is in UTC, which knows no daylight saving. A run that was missed is made up once; of several servers
one refreshes, since each slot is a job with the slot's name and the refresh itself holds the store's lock.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from planner.errors import UsageError
from planner.pricing.offer import format_time
from planner.service.jobs import Jobs
from planner.service.state import now

_LOG = logging.getLogger("planner.service")
_DAY = timedelta(days=1)
# A slot that was served further ahead than this was served by a clock that was wrong: it would else keep
# every refresh from running until its date comes.
_AHEAD = timedelta(days=7)
# A waiting scheduler does not notice that the clock was set; somebody has to look.
_LOOK_MINUTES = 10
OWNER = "schedule"


def time_of_day(written: str) -> tuple[int, int]:
    """(hour, minute) out of HH:MM. Raises UsageError."""
    try:
        found = datetime.strptime(written, "%H:%M")  # noqa: DTZ007 - a time of day
    except ValueError as error:
        raise UsageError(
            f'refresh_at = {written}: a time of day such as "04:17" (UTC) is meant', "refresh_at"
        ) from error
    return found.hour, found.minute


def last_slot(at: str, moment: datetime) -> datetime:
    """The newest slot that is not after the moment. [UTC]"""
    hour, minute = time_of_day(at)
    slot = moment.astimezone(UTC).replace(hour=hour, minute=minute, second=0, microsecond=0)
    return slot if slot <= moment else slot - _DAY


def run_slot(jobs: Jobs, at: str, tell: Callable[[str], None], moment: datetime | None = None) -> str | None:
    """Queue the refresh of the newest slot unless that was done; returns the job's id, None where it was.

    However many slots went by, one run makes up for all: nobody needs the same prices thrice.
    """
    slot = last_slot(at, moment or datetime.now(UTC))
    id = _id(slot)
    try:
        with jobs.state.writes() as connection:
            newest = connection.execute(
                text("SELECT max(id) FROM service_jobs WHERE owner = :owner AND id < :ahead"),
                {"owner": OWNER, "ahead": _id(slot + _AHEAD)},
            ).scalar()
            if newest is not None and newest >= id:
                return None  # done, or the clock went back a little
            connection.execute(
                text(
                    "INSERT INTO service_jobs (id, kind, owner, state, asked, created_at, tries) "
                    "VALUES (:id, 'refresh', :owner, 'queued', '{}', :at, 0)"
                ),
                {"id": id, "owner": OWNER, "at": now()},
            )
    except IntegrityError:
        return None  # another server was faster by a moment
    tell(id)
    return id


def _id(slot: datetime) -> str:
    return f"refresh-{slot:%Y%m%dT%H%MZ}"


def missed(jobs: Jobs, at: str, moment: datetime) -> bool:
    """Whether the newest slot went by unserved, in a store that was refreshed before."""
    slot = format_time(last_slot(at, moment))
    found = jobs.state.rows("SELECT max(fetched_at) AS newest FROM fetches")
    newest = found[0]["newest"]
    return newest is not None and newest < slot


def make_up(jobs: Jobs, at: str, tell: Callable[[str], None]) -> str | None:
    """Queue the newest slot's refresh where it was missed; returns the job's id, None where it was not."""
    moment = datetime.now(UTC)
    return run_slot(jobs, at, tell, moment) if missed(jobs, at, moment) else None


def scheduler(jobs: Jobs, at: str, tell: Callable[[str], None]) -> Any:
    """A started APScheduler that queues one refresh a day, and at once where one was missed."""
    from apscheduler.schedulers.background import BackgroundScheduler
    from apscheduler.triggers.cron import CronTrigger
    from apscheduler.triggers.interval import IntervalTrigger

    hour, minute = time_of_day(at)
    made = BackgroundScheduler(timezone=UTC)
    # However late it comes to it (a laptop slept), the slot is run once.
    made.add_job(
        run_slot,
        CronTrigger(hour=hour, minute=minute, timezone=UTC),
        (jobs, at, tell),
        coalesce=True,
        max_instances=1,
        misfire_grace_time=None,
    )
    made.add_job(
        make_up,
        IntervalTrigger(minutes=_LOOK_MINUTES, timezone=UTC),
        (jobs, at, tell),
        next_run_time=datetime.now(UTC),
        coalesce=True,
        misfire_grace_time=None,
    )
    made.start()
    return made
