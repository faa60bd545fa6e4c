"""Recorded answers of sellers, and a web server on this machine.

The answers are not part of the project: PLANNER_RECORDED_DATA says where they are.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_socket
from pytest_httpserver import HTTPServer

sys.path.insert(0, str(Path(__file__).parent / "helpers"))


@pytest.fixture
def recorded() -> Path:
    """The folder of recorded price answers; skips when it is not there."""
    folder = Path(os.environ.get("PLANNER_RECORDED_DATA", "")) / "prices"
    if not folder.is_dir():
        pytest.skip("PLANNER_RECORDED_DATA does not point at the recorded price answers")
    return folder


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    """A web server on this machine; other hosts stay out of reach."""
    pytest_socket.enable_socket()
    pytest_socket.socket_allow_hosts(["127.0.0.1"], allow_unix_socket=True)
    with HTTPServer(host="127.0.0.1") as server:
        yield server
    pytest_socket.disable_socket(allow_unix_socket=True)
