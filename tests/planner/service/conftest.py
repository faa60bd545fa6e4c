"""A service on a store of this test's own, asked without a socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from planner.service.app import create_app
from planner.service.settings import ServiceSettings
from planner.service.state import State

Served = Callable[..., TestClient]


@pytest.fixture
def served() -> Iterator[Served]:
    """served(**settings) is a client of a started service."""
    opened: list[TestClient] = []

    def make(**settings: Any) -> TestClient:
        app = create_app(ServiceSettings(**settings))
        client = TestClient(app, base_url="http://127.0.0.1:8080", raise_server_exceptions=False)
        client.__enter__()
        opened.append(client)
        return client

    yield make
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def state(home: Path) -> Iterator[State]:
    found = State.open()
    yield found
    found.close()
