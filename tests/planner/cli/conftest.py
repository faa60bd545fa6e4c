"""A command line run in this process, and one whose plan is the made-up one of tests/conftest.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


@pytest.fixture
def planner(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """planner("optimize", "--model", …) -> exit code, stdout, stderr."""

    def run(*arguments: str) -> Said:
        from planner.cli import running

        capsys.readouterr()
        code = running.run(arguments)
        out, err = capsys.readouterr()
        return Said(code, out, err)

    return run


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
