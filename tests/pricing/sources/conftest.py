"""Recorded answers of sellers (not part of the project: PLANNER_RECORDED_DATA says where), and fake clients."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "helpers"))


@pytest.fixture
def recorded() -> Path:
    """The folder of recorded price answers; skips when it is not there."""
    folder = Path(os.environ.get("PLANNER_RECORDED_DATA", "")) / "prices"
    if not folder.is_dir():
        pytest.skip("PLANNER_RECORDED_DATA does not point at the recorded price answers")
    return folder
