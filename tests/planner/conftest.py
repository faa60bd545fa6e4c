"""Makes tests/planner/helpers importable: tests are collected without a package of their own."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "helpers"))
