"""The accuracy that ships for pages is the accuracy that docs/accuracy.md shows."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from planner.reports.accuracy import accuracy

ROOT = Path(__file__).resolve().parents[3]


def test_the_page_and_the_data_are_of_one_making() -> None:
    spec = importlib.util.spec_from_file_location("accuracy_page", ROOT / "tools" / "accuracy_page.py")
    assert spec
    assert spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    found = accuracy()
    written = tool.page(found["about"], found["tables"]).rstrip() + "\n"
    assert written == (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
