"""`make audit` cannot pass by being told nothing (P44)."""

from __future__ import annotations

import importlib.util
import sys
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
TODAY = date(2026, 12, 1)
PINNED = {"alembic": "1.20.1", "jinja2": "3.1.6"}


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    spec = importlib.util.spec_from_file_location("audit_tool", ROOT / "tools" / "audit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["audit_tool"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def report(**of: Any) -> dict[str, Any]:
    return {"dependencies": [{"name": name, "version": PINNED[name], **rest} for name, rest in of.items()]}


CLEAN: dict[str, Any] = {"vulns": []}
SKIPPED = {"skip_reason": "Dependency not found on PyPI and could not be audited"}
BAD = {"vulns": [{"id": "PYSEC-2027-1", "aliases": ["CVE-2027-1"], "fix_versions": ["4.0"]}]}


def test_p44_clean_means_that_every_package_was_answered_for(audit: ModuleType) -> None:
    assert audit.judged(report(alembic=CLEAN, jinja2=CLEAN), PINNED, today=TODAY).code == audit.CLEAN


@pytest.mark.parametrize("told", [report(alembic=CLEAN, jinja2=SKIPPED), report(alembic=CLEAN)])
def test_p44_a_skipped_package_fails(audit: ModuleType, told: dict[str, Any]) -> None:
    verdict = audit.judged(told, PINNED, today=TODAY)
    assert verdict.code == audit.FOUND
    assert "skipped: jinja2 3.1.6" in verdict.lines[0]


@pytest.mark.parametrize("told", [None, {}, report(alembic=SKIPPED, jinja2=SKIPPED)])
def test_p44_no_answer_at_all_is_said_plainly(audit: ModuleType, told: Any) -> None:
    """pip-audit itself ends such a run with "No known vulnerabilities found" and 0."""
    assert audit.judged(told, PINNED, today=TODAY).code == audit.UNREACHED


def test_p44_a_vulnerability_fails_unless_a_dated_exception_holds(audit: ModuleType) -> None:
    told = report(alembic=CLEAN, jinja2=BAD)
    assert "fixed in 4.0" in audit.judged(told, PINNED, today=TODAY).lines[0]
    lived_with = audit.Accepted("CVE-2027-1", "Jinja2", "templates are ours", TODAY)
    assert audit.judged(told, PINNED, [lived_with], today=TODAY).code == audit.CLEAN
    later = audit.judged(told, PINNED, [lived_with], today=date(2026, 12, 2))
    assert later.code == audit.FOUND
    assert "run out" in later.lines[0]


def test_p44_an_exception_that_nothing_needs_fails(audit: ModuleType) -> None:
    unused = audit.Accepted("CVE-2020-1", "alembic", "old", TODAY)
    assert (
        audit.judged(report(alembic=CLEAN, jinja2=CLEAN), PINNED, [unused], today=TODAY).code == audit.FOUND
    )


def test_p44_an_installed_package_that_is_not_pinned_is_told(audit: ModuleType) -> None:
    installed = [("Jinja2", "3.1.6"), ("alembic", "1.0"), ("left_pad", "1"), ("training-planner", "0.1.0")]
    found = audit.unpinned(installed, PINNED)
    assert [line.rsplit(" ", 1)[1] for line in found] == ["alembic", "left_pad"]
    assert audit.unpinned([("torch", "2.13.0+cpu")], {"torch": "2.13.0"}) == []


def test_the_constraints_pin_every_line(audit: ModuleType) -> None:
    assert len(audit.pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))) > 100
    with pytest.raises(ValueError, match="line 1"):
        audit.pins("jinja2>=3")


def test_exceptions_say_why_and_until_when(audit: ModuleType) -> None:
    for one in audit.exceptions(audit.EXCEPTIONS):
        assert one.reason
        assert isinstance(one.until, date)


def test_main_ends_with_three_where_no_feed_answers(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit, "asked", lambda feed, constraints: None)
    monkeypatch.setattr(audit, "bill_of_materials", lambda out: None)
    assert audit.main(["--sbom", str(tmp_path / "sbom.json")]) == audit.UNREACHED
    assert "NOT AUDITED" in capsys.readouterr().out
