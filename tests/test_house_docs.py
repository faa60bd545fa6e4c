"""The manual cannot lie: what README shows is run, and every command of the program is in it."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from planner.cli.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_command_that_readme_shows_runs_and_prints_what_is_shown() -> None:
    check = [sys.executable, str(ROOT / "tools/readme.py"), "--check", str(ROOT / "README.md")]
    done = subprocess.run(check, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{done.stderr}\nmake readme writes the outputs again"


def test_readme_mentions_every_command() -> None:
    assert [name for name in COMMANDS if f"planner {name}" not in README] == []


def test_readme_explains_every_exit_code() -> None:
    from planner.cli import running
    from planner.cli.commands.optimize import ABOVE_LIMIT
    from planner.errors import EXIT_CODES

    codes = {*EXIT_CODES.values(), ABOVE_LIMIT, running.INTERRUPTED, running.PIPE_CLOSED}
    assert [code for code in sorted(codes) if not re.search(rf"^\| {code} \|", README, re.MULTILINE)] == []


def test_every_target_of_make_has_a_line_of_help() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    helped = set(re.findall(r"^([a-z][a-z-]*):.*## ", makefile, re.MULTILINE))
    assert targets == helped


def test_links_inside_the_documents_lead_somewhere() -> None:
    missing = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
        for link in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", page.read_text(encoding="utf-8"))
        if not (page.parent / link).exists()
    ]
    assert missing == []


def test_no_path_of_somebodys_machine_stands_in_a_file() -> None:
    """Paths of home folders and build hosts tell strangers nothing."""
    pattern = re.compile(r"(?<![\w.])/(?:root|home/\w+|Users/\w+|work)/[\w.-]+")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        return
    found = []
    for name in filter(None, listed.stdout.split("\0")):
        file = ROOT / name
        if file.suffix in {".gz", ".png"} or not file.is_file() or file == Path(__file__):
            continue
        found += [
            f"{name}: {hit}" for hit in pattern.findall(file.read_text(encoding="utf-8", errors="replace"))
        ]
    assert found == []


def with_examples() -> list[str]:
    """Modules whose docstrings hold examples, by the name they are imported under."""
    found = []
    for folder in ("planner", "models", "pricing"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            inside = file.relative_to(ROOT)
            linked = folder == "planner" and inside.parts[1] in ("models", "pricing")
            if not linked and ">>> " in file.read_text(encoding="utf-8"):
                name = ".".join(inside.with_suffix("").parts).removesuffix(".__init__")
                found.append(name if folder == "planner" else f"planner.{name}")
    return found


@pytest.mark.parametrize("name", with_examples())
def test_examples_in_docstrings_hold(name: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0
    assert failed == 0
