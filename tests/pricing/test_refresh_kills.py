"""A refresh that is killed at any moment leaves the prices of before or after it, never a mixture."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_HELPERS = Path(__file__).parent / "helpers"


def _kill(tmp_path: Path, kills: int) -> dict[str, int]:
    program = _HELPERS / "kill_refreshes.py"
    environ = {**os.environ, "PYTHONPATH": str(_HELPERS)}
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path / "prices.sqlite"), str(kills)],
        capture_output=True,
        text=True,
        env=environ,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("*-journal"))
    return dict(json.loads(done.stdout))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_p1_fifty_kills_tear_nothing(tmp_path: Path) -> None:
    seen = _kill(tmp_path, 50)
    assert 0 < seen["landed"] < 50, "kills fall before and after the commit"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_p1_two_hundred_kills_tear_nothing(tmp_path: Path) -> None:
    assert _kill(tmp_path, 200)["kills"] == 200
