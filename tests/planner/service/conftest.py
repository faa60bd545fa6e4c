"""A service on a store of this test's own: in this process, asked without a socket, or in one of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_socket
from starlette.testclient import TestClient

from planner.service.app import create_app
from planner.service.settings import ServiceSettings
from planner.service.state import State

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

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


@pytest.fixture
def loopback() -> None:
    """Sockets to this machine are allowed."""
    pytest_socket.enable_socket()
    pytest_socket.socket_allow_hosts(["127.0.0.1"], allow_unix_socket=True)


@pytest.fixture
def started(loopback: None, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """started(store_url, **settings) is a MadeServer; all of them are ended afterwards."""
    from made_server_client import MadeServer

    opened: list[Any] = []

    def make(store_url: str, **settings: Any) -> Any:
        opened.append(MadeServer(store_url, tmp_path / "log", **settings))
        return opened[-1]

    yield make
    for server in opened:
        server.end()


@pytest.fixture
def cluster(loopback: None) -> Iterator[Any]:
    """A started PostgreSQL of this test's own."""
    from own_postgres import Cluster

    made = Cluster()
    try:
        made.start()
        yield made
    finally:
        made.remove()
