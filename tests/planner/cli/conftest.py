"""A command line run in this process, and one whose plan is the made-up one of tests/conftest.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def planner(planner_cli: Callable[..., Any]) -> Callable[..., Any]:
    """planner("optimize", "--model", …) -> exit code, stdout, stderr."""
    return planner_cli


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, plan: Any) -> list[Any]:
    """Answers `optimize` with the made-up plan; the requests made are in the list."""
    from planner import api

    requests: list[Any] = []

    def optimize(request: Any) -> Any:
        requests.append(request)
        return plan

    monkeypatch.setattr(api, "optimize", optimize)
    return requests
