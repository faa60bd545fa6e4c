"""A folder is there whole or not at all, whenever the run that writes it is killed."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from planner.reports.finance.directory import MANIFEST, WholeFolder

FILES = 3
# Writes three files and the manifest; at the step asked for, the process kills itself as kill -9 would.
_KILLED = """
import os, signal, sys
from pathlib import Path
from planner.reports.finance import directory

step, target, text = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
steps = 0

def counted(function):
    def run(*arguments, **named):
        global steps
        if steps == step:
            os.kill(os.getpid(), signal.SIGKILL)
        steps += 1
        return function(*arguments, **named)
    return run

for name in ("fsync", "rename", "chmod"):
    setattr(os, name, counted(getattr(os, name)))
directory._exchange = counted(directory._exchange)
directory.shutil.rmtree = counted(directory.shutil.rmtree)
folder = directory.WholeFolder(target)
for number in range(3):
    folder.write(f"{number}.csv", [text.encode() * 1000])
folder.finish({"text": text})
print(steps)
"""


def written(step: int, target: Path, text: str) -> int | None:
    """How many steps it took; None where it was killed."""
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, str(step), str(target), text],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return int(done.stdout) if done.returncode == 0 else None


def text_of(target: Path) -> str | None:
    """What a whole folder holds; None where there is none. Fails for one that is not whole."""
    if not target.exists():
        return None
    manifest = json.loads((target / MANIFEST).read_text())
    assert {path.name for path in target.iterdir()} == {file["name"] for file in manifest["files"]} | {
        MANIFEST
    }
    for file in manifest["files"]:
        assert hashlib.sha256((target / file["name"]).read_bytes()).hexdigest() == file["sha256"]
    return str(manifest["text"])


def test_a_run_killed_at_any_step_leaves_the_old_folder_or_the_new_one(tmp_path: Path) -> None:
    steps = written(-1, tmp_path / "counted", "old")
    assert steps is not None
    for step in range(steps):
        assert written(step, tmp_path / f"new-{step}", "new") is None
        assert text_of(tmp_path / f"new-{step}") in (None, "new")
    assert written(-1, tmp_path / "target", "old") is not None
    again = written(-1, tmp_path / "counted", "new")
    assert again is not None
    assert again > steps - 1
    for step in range(again):
        assert written(step, tmp_path / "target", "new") is None
        found = text_of(tmp_path / "target")
        assert found in ("old", "new")
        if found == "new":
            assert written(-1, tmp_path / "target", "old") is not None


def test_two_folders_change_places_without_the_system_s_help_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from planner.reports.finance import directory

    monkeypatch.setattr(directory.ctypes, "CDLL", lambda *a, **b: object())
    for text in ("old", "new"):
        folder = WholeFolder(tmp_path / "target")
        folder.write("0.csv", [text.encode()])
        folder.finish({"text": text})
    assert text_of(tmp_path / "target") == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_what_a_killed_run_left_is_taken_away_a_day_later(tmp_path: Path) -> None:
    left, fresh = tmp_path / ".target.a.partial", tmp_path / ".target.b.partial"
    left.mkdir()
    fresh.mkdir()
    os.utime(left, (0, 0))
    WholeFolder(tmp_path / "target").finish({})
    assert sorted(path.name for path in tmp_path.iterdir()) == [".target.b.partial", "target"]
