"""A disk that is full: a clear refusal, a whole store, and work again when there is room."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from made_server_client import all_done, opened
from waiting import until

from planner.pricing.store import PriceStore

pytestmark = pytest.mark.slow

_ASKED = {"model": "bert-base", "epochs": 1, "gpu": "t4-16gb", "spot": False}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 48 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    asked = ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(place)]
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    if subprocess.run(asked, capture_output=True, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_p2_a_full_disk_is_named_and_nothing_is_lost(small_disk: Path, started: Callable[..., Any]) -> None:
    url = f"sqlite:///{small_disk}/prices.sqlite"
    server = started(url)
    kept = server.post("/v1/plans", _ASKED).json()["id"]
    running = server.schedule("over the full disk", tenths=20)
    until(server.children, 30, "it is worked on")
    _fill(small_disk / "filler")
    refused = server.post("/v1/plans", {**_ASKED, "epochs": 2})
    assert refused.status_code == 503, refused.text
    assert "no space is left on its disk" in refused.json()["message"]
    assert server.schedule("another") is None
    assert server.get("/v1/prices?item=p4d.24xlarge").status_code == 200
    assert server.get(f"/v1/plans/{kept}").status_code == 200
    with PriceStore.open(url) as store:
        assert store.damage() is None
    (small_disk / "filler").unlink()
    again = until(lambda: server.schedule("when there is room"), 30, "a job is accepted")
    with opened(url) as state:
        until(lambda: all_done(state, [running, again]), 90, "both are done")
        assert {plan["name"] for plan in state.plans(None)} == {
            "bert-base",
            "over the full disk",
            "when there is room",
        }


def _fill(file: Path) -> None:
    with file.open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(b"x" * 4096)
        except OSError:
            return  # full, which was the point
