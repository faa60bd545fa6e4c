"""Fifty times kill -9, of workers, servers and the database, while jobs and refreshes run: nothing is lost,
nothing is done twice."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_server_client import all_done, opened
from waiting import until

from planner.pricing.store import PriceStore
from planner.service.jobs import MOST_TRIES
from planner.service.state import State

pytestmark = pytest.mark.slow

_OUTSTANDING = 3


class Crowd:
    """Keeps servers busy with plans and refreshes, and remembers what was accepted."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.accepted: list[str] = []
        self.refreshes: list[str] = []
        self.asked = 0

    def feeds(self, server: Any) -> None:
        """A few jobs wait or run, one of them a refresh."""
        open_jobs = self._open()
        for _ in range(_OUTSTANDING - len(open_jobs)):
            self.asked += 1
            self._keep(server.schedule(f"plan {self.asked}", tenths=4))
        if not any(row["kind"] == "refresh" for row in open_jobs):
            self.asked += 1
            id = server.refresh(self.asked)
            self._keep(id)
            self.refreshes += [f"{100 + self.asked}"] if id else []

    def may_be_killed(self) -> bool:
        """Something runs, and no job is at its last try, after which it fails rightly."""
        tries = [row["tries"] for row in self._open() if row["state"] == "running"]
        return bool(tries) and max(tries) < MOST_TRIES

    def nothing_is_lost_or_doubled(self) -> None:
        until(lambda: not self._open(), 120, "all jobs are done")
        assert all_done(self.state, self.accepted)
        done = self.state.rows("SELECT id, kind, state, plan_id FROM service_jobs")
        assert {row["state"] for row in done} == {"done"}
        plans = self.state.plans(None, limit=1000)
        assert sorted(row["plan_id"] for row in done if row["plan_id"]) == sorted(
            plan["id"] for plan in plans
        )
        assert len({plan["name"] for plan in plans}) == len(plans)
        assert len(plans) == sum(row["kind"] == "schedule" for row in done)

    def _open(self) -> list[dict[str, Any]]:
        return self.state.rows(
            "SELECT id, kind, state, tries FROM service_jobs WHERE state IN ('queued', 'running')"
        )

    def _keep(self, id: str | None) -> None:
        self.accepted += [id] if id else []


def _prices(url: str, crowd: Crowd) -> None:
    """Each refresh that was accepted stored its price once."""
    with PriceStore.open(url) as store:
        assert store.damage() is None
        amounts = [str(offer.amount) for offer in store.history(provider="made")]
    assert len(set(amounts)) == len(amounts)
    assert set(crowd.refreshes) <= set(amounts)


def _at_some_moment(crowd: Crowd, servers: list[Any], chance: random.Random) -> int:
    """Wait a little, and on until jobs run; returns the process of one that runs."""

    def running() -> list[int]:
        crowd.feeds(servers[0])
        return [pid for each in servers for pid in each.children()] if crowd.may_be_killed() else []

    threading.Event().wait(chance.uniform(0, 0.5))
    return chance.choice(until(running, 60, "a job runs"))


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # its job was done by then


def test_p1_p18_p43_twenty_five_kills_with_sqlite(tmp_path: Path, started: Callable[..., Any]) -> None:
    chance, url = random.Random(20261207), f"sqlite:///{tmp_path}/prices.sqlite"
    server = started(url, workers=2)
    with opened(url) as state:
        crowd = Crowd(state)
        for kill in range(25):
            worker = _at_some_moment(crowd, [server], chance)
            if kill % 5 == 4:
                server.kill()
                server = started(url, workers=2)
            else:
                _kill(worker)
        crowd.nothing_is_lost_or_doubled()
        _prices(url, crowd)


def test_p1_p18_p43_twenty_five_kills_with_two_servers_on_postgresql(
    cluster: Any, started: Callable[..., Any]
) -> None:
    chance = random.Random(20261208)
    servers = [started(cluster.url), started(cluster.url)]
    with opened(cluster.url) as state:
        crowd = Crowd(state)
        for kill in range(25):
            worker = _at_some_moment(crowd, servers, chance)
            if kill % 5 == 4:
                servers[kill % 2].kill()
                servers[kill % 2] = started(cluster.url)
            elif kill % 2:
                _kill(worker)
            else:
                cluster.kill()
                cluster.start()
                state.engine.dispose()
        crowd.nothing_is_lost_or_doubled()
        _prices(cluster.url, crowd)
