"""Jobs among several servers on one PostgreSQL: procrastinate hands each out once.

procrastinate's own tables say whose turn it is; ours (jobs.py) say what was asked and what came of it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

from sqlalchemy import text

from planner.service.dead_workers import DeadWorkers
from planner.service.jobs import Jobs
from planner.service.workers import run_apart

_LOG = logging.getLogger("planner.service")
_TASK = "planner.work"
_SCHEMA_LOCK = 7281106330904
# Whoever asked waits no longer for the queue's database than this.
_TELL_SECONDS = 3.0


class PostgresWorkers:
    """The same face as workers.LocalWorkers; an event loop of its own in a thread of its own."""

    def __init__(self, jobs: Jobs, url: str, count: int, silent_seconds: float) -> None:
        import procrastinate

        self.jobs, self.url, self.count, self.silent_seconds = jobs, url, count, silent_seconds
        self._dead = DeadWorkers(jobs, silent_seconds)
        self._stop = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._worker: asyncio.Task[None] | None = None
        place = jobs.state.where.url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=place))
        self._sender = procrastinate.App(
            connector=procrastinate.SyncPsycopgConnector(conninfo=place, timeout=_TELL_SECONDS)
        )
        self._app.task(name=_TASK)(self._one)
        self._thread = threading.Thread(target=self._run, name="procrastinate", daemon=True)

    def start(self) -> None:
        self._sender.open()
        self._make_tables()
        self._thread.start()

    def tell(self, id: str) -> None:
        """Hand the job to whichever server is free. Twice does no harm: a job is claimed once."""
        from procrastinate.exceptions import ConnectorException

        try:
            self._sender.configure_task(_TASK).defer(id=id)
        except ConnectorException as error:
            # The job is kept in our own table, and `_hand_out` finds those that nobody was told of.
            _LOG.warning("job %s waits for the database: %s", id, error.__cause__ or error)

    def stop(self, seconds: float = 8.0) -> None:
        self._stop.set()
        if self._loop is not None and self._worker is not None:
            self._loop.call_soon_threadsafe(self._worker.cancel)
        self._thread.join(seconds)
        self._sender.close()

    def _make_tables(self) -> None:
        with self.jobs.state.writes() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _SCHEMA_LOCK})
            there = connection.execute(text("SELECT to_regclass('procrastinate_jobs')")).scalar()
            if there is None:
                # On a connection of its own; whoever starts beside us waits for our lock meanwhile.
                self._sender.schema_manager.apply_schema()

    async def _one(self, id: str) -> None:
        await asyncio.to_thread(self._work, id)

    def _work(self, id: str) -> None:
        found = self.jobs.claim(id)
        if found is None:
            return  # done, cancelled, or another server has it
        run_apart(self.jobs, *found, self.url, self.silent_seconds, self._stop.is_set)
        self._hand_out()  # it may have been given back

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        while not self._stop.is_set():
            try:
                async with self._app.open_async():
                    self._worker = asyncio.create_task(
                        self._app.run_worker_async(
                            concurrency=self.count,
                            install_signal_handlers=False,
                            delete_jobs="successful",
                            update_heartbeat_interval=self.silent_seconds / 3,
                            stalled_worker_timeout=self.silent_seconds,
                        )
                    )
                    watching = asyncio.create_task(self._watch())
                    try:
                        await self._worker
                    finally:
                        watching.cancel()
            except asyncio.CancelledError:
                return
            except Exception:  # noqa: BLE001 - the database was away; a server without workers would be no use
                _LOG.exception("the worker lost its database; it tries again")
                await asyncio.sleep(2)

    async def _watch(self) -> None:
        """Hand out anew what a dead server held, and what was queued when nobody could be told."""
        while True:
            try:
                await asyncio.to_thread(self._dead.retake)
                await asyncio.to_thread(self._hand_out)
                await self._forget_the_dead()
            except Exception:  # noqa: BLE001 - as above
                _LOG.exception("jobs of dead workers could not be looked for")
            await asyncio.sleep(self.silent_seconds / 3)

    def _hand_out(self) -> None:
        # One that is "doing" while nobody has claimed it was fetched by a server that died on the way.
        lost: list[dict[str, Any]] = self.jobs.state.rows(
            "SELECT id FROM service_jobs WHERE state = 'queued' AND NOT EXISTS ("
            "SELECT 1 FROM procrastinate_jobs "
            "WHERE args->>'id' = service_jobs.id AND task_name = :task AND status = 'todo')",
            task=_TASK,
        )
        for row in lost:
            self.tell(row["id"])

    async def _forget_the_dead(self) -> None:
        """What procrastinate still has of workers that died; our own table knows how those jobs went on."""
        from procrastinate.jobs import Status

        manager = self._app.job_manager
        for job in await manager.get_stalled_jobs(seconds_since_heartbeat=self.silent_seconds):
            await manager.finish_job(job, Status.FAILED, delete_job=True)
        await manager.delete_old_jobs(nb_hours=24, include_failed=True, include_cancelled=True)
