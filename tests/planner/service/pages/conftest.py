"""A served copy of the pages and a real browser to look at it with."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the pages are served, by a process of its own with a home of its own."""
    home = tmp_path_factory.mktemp("served")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PLANNER_")}
    environment |= {"HOME": str(home), "PLANNER_STORE_URL": f"sqlite:///{home}/prices.sqlite"}
    serving = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("serving.py"))],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert serving.stdout is not None
        port = serving.stdout.readline().strip()
        assert port, "the pages did not come up"
        yield f"http://127.0.0.1:{port}"
    finally:
        serving.terminate()
        serving.wait(20)


class Looked:
    """A page of the browser that remembers what it should not have seen.

    complaints: console errors and uncaught exceptions. outside: addresses that are not the service's.
    """

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address
        self.complaints: list[str] = []
        self.outside: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", self._request)

    def go(self, path: str) -> Any:
        return self.page.goto(self.address + path)

    def _console(self, message: Any) -> None:
        # Chromium itself reports every refused form so; the page says why.
        refused = "status of 422" in message.text or "status of 404" in message.text
        if message.type in ("error", "warning") and not refused:
            self.complaints.append(message.text)

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:")):
            self.outside.append(request.url)


@pytest.fixture
def look(browser: Any, address: str) -> Iterator[Any]:
    """Opens pages: look(width=1280, dark=False, script=True) is a Looked. Fails where one complained."""
    opened: list[tuple[Any, Looked]] = []

    def make(width: int = 1280, dark: bool = False, script: bool = True) -> Looked:
        context = browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme="dark" if dark else "light",
            java_script_enabled=script,
            accept_downloads=True,
        )
        looked = Looked(context.new_page(), address)
        opened.append((context, looked))
        return looked

    yield make
    for context, looked in opened:
        context.close()
        assert looked.complaints == []
        assert looked.outside == []
