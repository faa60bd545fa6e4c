"""catalogue.json is made from the TOML files, never edited, and never read when stale."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from planner.models.hardware import catalogue, compile
from planner.models.hardware.schema import FILES
from planner.models.hardware.toml_tables import read_catalogue


def test_the_compiled_catalogue_equals_the_toml_files() -> None:
    shipped = json.loads(compile.COMPILED.read_bytes())
    assert shipped == compile.compiled(), "run: python -m planner.models.hardware.compile"


def test_a_stale_compiled_file_is_passed_over_for_the_toml_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "fingerprint", lambda: "edited since")
    tables = catalogue._tables.__wrapped__()
    assert "made_from" not in tables
    assert tables == read_catalogue(compile.DATA)


def test_a_compiled_file_cut_short_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in FILES:
        shutil.copy(compile.DATA / name, tmp_path / name)
    cut = tmp_path / "catalogue.json"
    cut.write_bytes(compile.COMPILED.read_bytes()[:5000])
    monkeypatch.setattr(catalogue, "COMPILED", cut)
    assert catalogue._tables.__wrapped__() == read_catalogue(compile.DATA)


def test_any_edit_changes_the_fingerprint(tmp_path: Path) -> None:
    for name in FILES:
        shutil.copy(compile.DATA / name, tmp_path / name)
    assert compile.fingerprint(tmp_path) == compile.fingerprint()
    with (tmp_path / "gpus.toml").open("a") as file:
        file.write("# a comment\n")
    assert compile.fingerprint(tmp_path) != compile.fingerprint()
