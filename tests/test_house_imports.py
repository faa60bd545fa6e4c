"""Who imports whom, and when: a command loads what it uses and no more."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAVY = {"torch", "transformers", "boto3", "google", "matplotlib", "scipy", "pandas"}
NOT_FOR_HELP = HEAVY | {"numpy", "pydantic", "sqlalchemy"}
PACKAGES = ("planner", "models", "pricing")


def imported(*arguments: str) -> tuple[set[str], str]:
    """Top-level names that a command imported, and its stdout."""
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "from planner.cli.entry import main; main()", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=dict(os.environ),
    )
    assert run.returncode == 0, run.stderr.splitlines()[-1:]
    names = re.findall(r"^import time:\s*\d+ \|\s*\d+ \|\s*(\S+)$", run.stderr, re.MULTILINE)
    return {name.split(".")[0] for name in names}, run.stdout


def test_the_version_is_answered_before_anything_is_imported() -> None:
    names, out = imported("--version")
    assert out.startswith("planner ")
    assert not names & (NOT_FOR_HELP | {"typer", "rich", "importlib_metadata", "json"})


def test_help_imports_nothing_heavy() -> None:
    names, out = imported("--help")
    assert "optimize" in out
    assert not names & NOT_FOR_HELP


@pytest.mark.parametrize("form", ["table", "json"])
def test_the_first_command_runs_without_what_only_tracing_fitting_and_fetching_need(form: str) -> None:
    names, out = imported("optimize", "--model", "bert-base", "--epochs", "10", "--format", form)
    assert "p4d.24xlarge" in out
    assert not names & HEAVY
    assert "pydantic" not in names, "typer converts values through pydantic unless told that they are text"


def test_a_warm_plan_reads_its_store_without_sqlalchemy() -> None:
    """Importing it takes a quarter of what a warm plan takes (planner/pricing/reading.py)."""
    arguments = ("optimize", "--model", "bert-base", "--epochs", "10")
    imported(*arguments)
    names, out = imported(*arguments)
    assert "p4d.24xlarge" in out
    assert not names & {"sqlalchemy", "alembic"}


def test_the_library_is_imported_lazily() -> None:
    code = "import planner, sys; print(sorted(name for name in sys.modules if name.startswith('planner')))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "['planner']"


def sources() -> list[Path]:
    return sorted(
        file
        for folder in ("planner", "models", "pricing", "tests", "tools", "notebooks")
        for file in (ROOT / folder).rglob("*.py")
        if not {"models", "pricing"} & set(file.relative_to(ROOT).parts[1:2]) or folder == "tests"
    )


def test_nothing_imports_the_folders_by_their_bare_names() -> None:
    """`models` and `pricing` belong to whoever installs us; ours are planner.models and planner.pricing."""
    found = []
    for file in sources():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            else:
                continue
            found += [
                f"{file.relative_to(ROOT)}:{node.lineno}"
                for name in names
                if name.split(".")[0] in PACKAGES[1:]
            ]
    assert found == []


def test_models_and_pricing_know_only_themselves() -> None:
    """import-linter keeps the layers inside `planner`; this also sees relative imports that climb out."""
    found = []
    for package in PACKAGES[1:]:
        for file in sorted((ROOT / package).rglob("*.py")):
            depth = len(file.relative_to(ROOT).parts) - 1
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and node.level > depth:
                    found.append(f"{file.relative_to(ROOT)}:{node.lineno}")
                if isinstance(node, ast.ImportFrom | ast.Import):
                    module = getattr(node, "module", None) or node.names[0].name
                    if node.__dict__.get("level", 0) == 0 and module.split(".")[0] == "planner":
                        found.append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert found == []


def test_the_command_line_and_the_pages_hold_no_arithmetic() -> None:
    """They call the public API and show what it answers; sums belong behind it."""
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for skin in ("planner/cli", "planner/service/pages")
        for file in sorted((ROOT / skin).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mult | ast.Div | ast.Sub | ast.Pow | ast.FloorDiv)
    ]
    assert found == []
