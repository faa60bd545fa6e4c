"""SIGTERM: what is asked is answered, what is worked on is given back, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from made_server_client import all_done, opened
from waiting import until

from planner.service.jobs import Jobs

pytestmark = pytest.mark.slow

_ASKED = {"model": "bert-base", "epochs": 10}


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/prices.sqlite"
    url: str = request.getfixturevalue("cluster").url
    return url


def test_p43_what_runs_is_given_back_and_what_is_asked_is_answered(
    store_url: str, started: Callable[..., Any]
) -> None:
    server = started(store_url)
    id = server.schedule("long", tenths=100)
    until(server.children, 30, "it is worked on")
    assert server.get("/readyz").json()["ready"]
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(server.post, "/v1/optimize", _ASKED)
        until(lambda: "planner_http_inside 2.0" in server.get("/metrics").text, 30, "it is being answered")
        server.terminate()
    assert answer.result().status_code == 200
    assert answer.result().json()["kind"] == "optimize"
    with opened(store_url) as state:
        job = Jobs(state).get(id, None)
    assert job is not None
    assert (job["state"], job["tries"]) == ("queued", 0)


def test_p43_restarts_under_load_lose_no_accepted_job(store_url: str, started: Callable[..., Any]) -> None:
    accepted: list[str] = []
    for restart in range(5):
        server = started(store_url)
        with ThreadPoolExecutor(4) as pool:
            asked = pool.map(lambda n, r=restart, s=server: s.schedule(f"plan {r} {n}", tenths=2), range(4))
            until(server.children, 30, "jobs are worked on")
            server.terminate()
            accepted += [id for id in asked if id]
    started(store_url, workers=2)
    with opened(store_url) as state:
        until(lambda: all_done(state, accepted), 120, "all jobs are done")
        done = state.rows("SELECT state FROM service_jobs")
        assert len(state.plans(None)) == len(done) >= len(accepted)
