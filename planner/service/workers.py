"""Who works on jobs: each job in a process of its own, so that it can be ended and the event loop stays free.

With SQLite the server itself watches over them, in threads. With PostgreSQL queue_postgres.py hands jobs out
among all servers; the work is done by the same `run_apart`.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import threading
import time
from collections.abc import Callable

from planner.pricing.errors import StoreUnusable
from planner.service.dead_workers import DeadWorkers
from planner.service.jobs import Jobs

_LOG = logging.getLogger("planner.service")
# Heartbeats within the silence after which a worker counts as dead: some may be late or lost.
_BEATS = 15
_LOOK_SECONDS = 0.25


def run_apart(
    jobs: Jobs, id: str, claim: str, url: str, silent_seconds: float, stopping: Callable[[], bool]
) -> None:
    """Work on a claimed job in a child until it ended, was cancelled, or the server stops.

    url: of the state, with its password; handed to the child by a pipe and not on a command line.
    silent_seconds: after so long without a heartbeat others take the job, so the child waits no longer
        for a database that is away.
    """
    child = multiprocessing.get_context("spawn").Process(
        target=_work, args=(url, id, claim, silent_seconds), name=f"planner job {id}", daemon=True
    )
    child.start()
    beaten = time.monotonic()
    try:
        while child.is_alive():
            child.join(_LOOK_SECONDS)
            if stopping():
                jobs.give_back(id, claim)
                return
            if time.monotonic() - beaten < silent_seconds / _BEATS:
                continue
            beaten = time.monotonic()
            if not _beats(jobs, id, claim):
                return  # cancelled, done, or somebody else's by now
        # A child that said nothing of its end was killed: memory, or a fault below Python.
        jobs.try_again(id, claim, f"its process ended with status {child.exitcode} before it could answer")
    finally:
        if child.is_alive():
            child.terminate()
            child.join(5)
            if child.is_alive():
                child.kill()


def _beats(jobs: Jobs, id: str, claim: str) -> bool:
    """Whether the job is still ours, as far as we know: a database that is away says nothing of it."""
    try:
        return jobs.beat(id, claim)
    except StoreUnusable as error:
        _LOG.warning("job %s goes on without a heartbeat: %s", id, error)
        return True


def _work(url: str, id: str, claim: str, patience_seconds: float) -> None:
    from planner.service.work import work

    threading.Thread(target=_end_with_the_server, name="server watch", daemon=True).start()
    work(url, id, claim, patience_seconds)


def _end_with_the_server() -> None:
    """A child whose server was killed works for nobody: another server takes the job."""
    server = multiprocessing.parent_process()
    if server is not None:
        server.join()
        os._exit(1)


class LocalWorkers:
    """Threads of the server that take jobs, one each at a time."""

    def __init__(self, jobs: Jobs, url: str, count: int, silent_seconds: float) -> None:
        self.jobs, self.url, self.silent_seconds = jobs, url, silent_seconds
        self._dead = DeadWorkers(jobs, silent_seconds)
        self._stop = threading.Event()
        self._news = threading.Event()
        self._look, self._look_at = threading.Lock(), 0.0
        self._threads = [
            threading.Thread(target=self._loop, name=f"jobs-{number}", daemon=True) for number in range(count)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def tell(self, id: str) -> None:
        """A job was queued."""
        self._news.set()

    def stop(self, seconds: float = 8.0) -> None:
        """Give back what is being worked on and end."""
        self._stop.set()
        self._news.set()
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _loop(self) -> None:
        while not self._stop.is_set():
            try:
                self._retake()
                found = self.jobs.claim()
                if found:
                    run_apart(self.jobs, *found, self.url, self.silent_seconds, self._stop.is_set)
                    continue
            except Exception:  # noqa: BLE001 - say, the database is away; an ended loop would not come back
                _LOG.exception("a worker could not do its round")
                self._stop.wait(2)
            self._news.wait(1)
            self._news.clear()

    def _retake(self) -> None:
        """One thread looks, every third of the silence; the others need not."""
        with self._look:
            if time.monotonic() >= self._look_at:
                self._look_at = time.monotonic() + self.silent_seconds / 3
                self._dead.retake()
