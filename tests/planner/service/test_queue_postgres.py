"""Several servers on one PostgreSQL: each job is done once, whoever dies on the way."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest
from made_server_client import all_done, opened
from waiting import until

from planner.service.jobs import Jobs

pytestmark = pytest.mark.slow


def test_two_servers_share_the_jobs_and_each_is_done_once(cluster: Any, started: Callable[..., Any]) -> None:
    servers = [started(cluster.url), started(cluster.url)]
    asked = [servers[n % 2].schedule(f"plan {n}", tenths=3) for n in range(6)]
    worked: set[int] = set()

    def watch() -> bool:
        worked.update(n for n, server in enumerate(servers) if server.children())
        return all_done(state, asked)

    with opened(cluster.url) as state:
        until(watch, 120, "all jobs are done")
        assert sorted(plan["name"] for plan in state.plans(None)) == [f"plan {n}" for n in range(6)]
    assert worked == {0, 1}, "one server did everything"


def test_a_worker_that_is_killed_has_its_job_retaken_and_finished_once(
    cluster: Any, started: Callable[..., Any]
) -> None:
    server = started(cluster.url)
    id = server.schedule("killed", tenths=8)
    (child,) = until(server.children, 30, "a process works on the job")
    os.kill(child, signal.SIGKILL)
    with opened(cluster.url) as state:
        until(lambda: all_done(state, [id]), 60, "the job is done")
        assert [plan["name"] for plan in state.plans(None)] == ["killed"]
        assert Jobs(state).get(id, None)["tries"] == 2


def test_a_database_that_is_restarted_under_load_is_found_again(
    cluster: Any, started: Callable[..., Any]
) -> None:
    server = started(cluster.url)
    answers: list[int] = []
    enough = threading.Event()

    def load() -> None:
        while not enough.is_set():
            answers.append(server.get("/v1/jobs").status_code)

    askers = [threading.Thread(target=load) for _ in range(4)]
    for asker in askers:
        asker.start()
    asked = [server.schedule("before", tenths=10)]
    until(server.children, 30, "it is worked on")
    for name in ("first", "second"):
        cluster.stop()
        until(lambda: server.get("/readyz").status_code == 503, 30, "the server says it is not ready")
        assert server.schedule(f"{name} while it is away") is None
        cluster.start()
        until(lambda: server.get("/readyz").status_code == 200, 30, "the server is ready again")
        asked.append(until(lambda: server.schedule(f"{name} after it is back"), 30, "a job is accepted"))  # noqa: B023
    with opened(cluster.url) as state:
        until(lambda: all_done(state, asked), 60, "all jobs are done")
        assert len(state.plans(None)) == len(asked)
    enough.set()
    for asker in askers:
        asker.join()
    assert set(answers) == {200, 503}, "nothing but answers and refusals that say to come again"


def test_of_several_servers_one_makes_up_for_a_missed_refresh(
    cluster: Any, started: Callable[..., Any]
) -> None:
    with opened(cluster.url) as state:
        with state.writes() as connection:
            connection.exec_driver_sql(
                "INSERT INTO fetches (fetch_id, source, scope, status, fetched_at, offers, added, waiting, "
                "quarantined) VALUES ('f', 'made', '', 'good', '2026-01-03T05:00:00.000000Z', 1, 1, 0, 0)"
            )
        servers = [started(cluster.url, refresh_at="04:17") for _ in range(2)]
        made = "SELECT id, state, message, tries FROM service_jobs WHERE kind = 'refresh'"
        until(lambda: [row for row in state.rows(made) if row["state"] == "done"], 60, "it is refreshed")
        for server in servers:
            server.terminate()
        (row,) = state.rows(made)
        assert row["id"].startswith("refresh-")
        assert (row["message"], row["tries"]) == ("1 rows added", 1)


def test_a_second_refresh_meanwhile_says_so_and_stores_nothing(
    cluster: Any, started: Callable[..., Any]
) -> None:
    servers = [started(cluster.url) for _ in range(2)]
    ids = [server.refresh(number) for number, server in enumerate(servers)]
    ended = "SELECT state, message, error FROM service_jobs WHERE state IN ('done', 'failed')"
    with opened(cluster.url) as state:
        rows = until(lambda: state.rows(ended) if len(state.rows(ended)) == len(ids) else [], 60, "both end")
    done = [row for row in rows if row["state"] == "done"]
    assert done
    assert all("being refreshed already" in row["error"] for row in rows if row not in done)
