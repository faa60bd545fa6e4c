"""Starts made_server.py, asks it over HTTP and ends it in several ways."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from planner.service.state import State

_HERE = Path(__file__).parent
_PRICED = _HERE.parents[2] / "pricing" / "helpers"


class MadeServer:
    """A service in a process of its own. log: the file its log lines go to."""

    def __init__(self, store_url: str, log: Path, **settings: Any) -> None:
        asked = {"store_url": store_url, "port": 0, "silent_seconds": 3.0, **settings}
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(_HERE), str(_PRICED)))}
        self.log = log
        self.process = subprocess.Popen(
            [sys.executable, str(_HERE / "made_server.py"), json.dumps(asked)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        said = self.process.stderr.readline()
        assert said.startswith("http://"), said + self.process.stderr.read()
        self.address = said.split("/  ")[0]
        # Whatever it says further goes to the file: a full pipe would stop it.
        self._copy = subprocess.Popen(["cat"], stdin=self.process.stderr, stdout=log.open("ab"))
        self._client = httpx2.Client(base_url=self.address, timeout=20)

    def get(self, path: str) -> Any:
        return self._client.get(path)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._client.post(path, json=body)

    def asks(self, path: str, body: dict[str, Any]) -> str | None:
        """The id of the job that was accepted; None where the server did not say that it was."""
        try:
            answer = self.post(path, body)
        except httpx2.TransportError:
            return None
        assert answer.status_code in (202, 503), answer.text
        return answer.json()["id"] if answer.status_code == 202 else None

    def schedule(self, name: str, tenths: int = 5) -> str | None:
        body = {
            "name": name,
            "starts": "2027-01",
            "months": tenths,
            "jobs": [{"id": "a", "workload": "bert-base"}],
        }
        return self.asks("/v1/schedules/optimize", {"schedule": body})

    def refresh(self, number: int) -> str | None:
        return self.asks("/v1/prices/refresh", {"sources": [f"made-{number}"]})

    def children(self) -> list[int]:
        """Processes that work on its jobs."""
        pid = self.process.pid
        found = Path(f"/proc/{pid}/task").glob("*/children")
        pids = [int(each) for file in found for each in _read(file).split()]
        return [each for each in pids if "spawn_main" in _read(Path(f"/proc/{each}/cmdline"))]

    def terminate(self) -> None:
        """SIGTERM, and it ends by that, within its grace."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(20) in (0, -signal.SIGTERM)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(20)

    def end(self) -> None:
        if self.process.poll() is None:
            self.kill()
        self._client.close()
        self._copy.wait(20)


@contextmanager
def opened(store_url: str) -> Iterator[State]:
    """What the servers keep, looked at beside them."""
    state = State.open(store_url)
    try:
        yield state
    finally:
        state.close()


def all_done(state: State, ids: Collection[str]) -> bool:
    """Whether these jobs have ended well. Raises AssertionError where one has ended otherwise or is gone."""
    rows = state.rows("SELECT id, state, tries, message, error FROM service_jobs")
    found = {row["id"]: row for row in rows}
    ended = [found[id] for id in ids if found[id]["state"] not in ("queued", "running")]
    assert all(row["state"] == "done" for row in ended), ended
    return len(ended) == len(ids)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""  # it ended meanwhile
