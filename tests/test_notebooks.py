"""Notebooks tell their story with code that runs: every code cell, in order, in one fresh interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


def code_of(notebook: Path) -> str:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def test_there_is_a_first_notebook() -> None:
    assert "first_plan.ipynb" in [path.name for path in NOTEBOOKS]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_code_cell_runs_in_order(notebook: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code_of(notebook)], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_outputs_are_stored(notebook: Path) -> None:
    """Stored outputs go stale; a reader runs the cells."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    assert [cell["outputs"] for cell in cells if cell["cell_type"] == "code" and cell["outputs"]] == []
