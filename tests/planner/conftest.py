"""A real browser; and tests/planner/helpers importable, as tests are collected without a package."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

CHROMIUM = shutil.which("chromium")


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


@pytest.fixture
def planner_cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """planner_cli("optimize", "--model", …) -> exit code, stdout, stderr."""

    def run(*arguments: str) -> Said:
        from planner.cli import running

        capsys.readouterr()
        code = running.run(arguments)
        out, err = capsys.readouterr()
        return Said(code, out, err)

    return run


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()
