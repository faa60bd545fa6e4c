"""docs/promises.md answers for every promise, and what it points to is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
ENTRIES = {int(number): body for number, body in re.findall(r"^- \*\*P(\d+)\*\* (.*(?:\n  .*)*)", TEXT, re.M)}
REFERENCE = re.compile(r"`(tests/[\w/.]+\.py)::(\w+)`")


@cache
def names_in(file: Path) -> frozenset[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def test_every_promise_stands_there_once() -> None:
    assert sorted(ENTRIES) == list(range(1, 45))
    assert len(re.findall(r"^- \*\*P\d+\*\*", TEXT, re.M)) == 44


@pytest.mark.parametrize("number", sorted(ENTRIES))
def test_each_is_shown_by_a_test_that_exists_or_says_why_not(number: int) -> None:
    body = ENTRIES[number]
    references = REFERENCE.findall(body)
    assert references or "Not shown:" in body
    for file, name in references:
        assert (ROOT / file).is_file(), file
        assert name in names_in(ROOT / file), f"{file}::{name}"
    assert body.count("::") == len(references), "a reference that does not read"
