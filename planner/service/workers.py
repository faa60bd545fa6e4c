"""Who works on jobs: each job in a process of its own, so that it can be ended and the event loop stays free.

With SQLite the server itself watches over them, in threads. With PostgreSQL queue_postgres.py hands jobs out
among all servers; the work is done by the same `run_apart`.
"""

from __future__ import annotations

import logging
import multiprocessing
import threading
import time
from collections.abc import Callable

from planner.service.jobs import SILENT_SECONDS, Jobs

_LOG = logging.getLogger("planner.service")
_BEAT_SECONDS = 2.0
_LOOK_SECONDS = 0.25


def run_apart(jobs: Jobs, id: str, claim: str, url: str, stopping: Callable[[], bool]) -> None:
    """Work on a claimed job in a child until it ended, was cancelled, or the server stops.

    url: of the state, with its password; handed to the child by a pipe and not on a command line.
    """
    child = multiprocessing.get_context("spawn").Process(
        target=_work, args=(url, id, claim), name=f"planner job {id}", daemon=True
    )
    child.start()
    beaten = time.monotonic()
    try:
        while child.is_alive():
            child.join(_LOOK_SECONDS)
            if stopping():
                jobs.give_back(id, claim)
                return
            if time.monotonic() - beaten < _BEAT_SECONDS:
                continue
            beaten = time.monotonic()
            if not jobs.beat(id, claim):
                return  # cancelled, done, or somebody else's by now
        # A child that said nothing of its end was killed: memory, or a fault below Python.
        jobs.fail(id, claim, f"its process ended with status {child.exitcode} before it could answer")
    finally:
        if child.is_alive():
            child.terminate()
            child.join(5)
            if child.is_alive():
                child.kill()


def _work(url: str, id: str, claim: str) -> None:
    from planner.service.work import work

    work(url, id, claim)


class LocalWorkers:
    """Threads of the server that take jobs, one each at a time."""

    def __init__(self, jobs: Jobs, url: str, count: int) -> None:
        self.jobs, self.url = jobs, url
        self._stop = threading.Event()
        self._news = threading.Event()
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
        looked = 0.0
        while not self._stop.is_set():
            try:
                if time.monotonic() - looked > SILENT_SECONDS / 3 or not looked:
                    looked = time.monotonic()
                    self.jobs.take_from_the_dead()
                found = self.jobs.claim()
                if found:
                    run_apart(self.jobs, *found, self.url, self._stop.is_set)
                    continue
            except Exception:  # noqa: BLE001 - say, the database is away; an ended loop would not come back
                _LOG.exception("a worker could not do its round")
                self._stop.wait(2)
            self._news.wait(1)
            self._news.clear()
