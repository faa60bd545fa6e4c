from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.cli.output import write_whole

Planner = Callable[..., Any]
ASK = ("optimize", "--model", "bert-base")


@pytest.mark.parametrize(
    ("name", "starts"),
    [
        ("plan.json", "{"),
        ("plan.jsonl", '{"rank"'),
        ("plan.csv", "rank,"),
        ("plan.md", "| rank"),
        ("plan.html", "<!doctype html>"),
        ("plan.txt", "bert-base"),
    ],
)
def test_the_suffix_of_a_file_tells_the_format(
    planner: Planner, asked: list[Any], tmp_path: Path, name: str, starts: str
) -> None:
    file = tmp_path / name
    said = planner(*ASK, "-o", str(file))
    assert (said.code, said.out) == (0, "")
    assert f"wrote {file}" in said.err
    assert file.read_text(encoding="utf-8").startswith(starts)
    assert list(tmp_path.iterdir()) == [file]


def test_a_format_stands_before_the_suffix(planner: Planner, asked: list[Any], tmp_path: Path) -> None:
    planner(*ASK, "-o", str(tmp_path / "plan.data"), "--format", "csv")
    assert next(csv.DictReader((tmp_path / "plan.data").open()))["rank"] == "1"


@pytest.mark.parametrize(
    ("output", "says"),
    [("plan.data", "--format"), ("nowhere/plan.csv", "no folder"), (".", "cannot tell a format")],
)
def test_a_file_that_cannot_be_written_is_refused_before_any_work(
    planner: Planner,
    asked: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    output: str,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    said = planner(*ASK, "-o", output)
    assert said.code == 2
    assert says in said.err
    assert asked == []


def test_c45_a_file_is_replaced_only_with_yes(planner: Planner, asked: list[Any], tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text("mine")
    said = planner(*ASK, "-o", str(file))
    assert said.code == 2
    assert "--yes" in said.err
    assert (file.read_text(), asked) == ("mine", [])
    assert planner(*ASK, "-o", str(file), "--yes").code == 0
    assert json.loads(file.read_text())["kind"] == "optimize"


def test_an_interrupt_leaves_the_old_file_and_no_part_of_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from planner.cli import output

    file = tmp_path / "plan.csv"
    file.write_text("old")

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(output.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        output.write_whole(file, "new")
    assert (list(tmp_path.iterdir()), file.read_text()) == ([file], "old")


@pytest.mark.parametrize("waiting", [False, True])
def test_c45_nobody_is_asked_whatever_stdin_is(tmp_path: Path, waiting: bool) -> None:
    """/dev/null, and an open pipe that never says a word: both end at once, naming the flag."""
    file = tmp_path / "settings.csv"
    file.write_text("mine")
    reader, writer = os.pipe()
    try:
        entry = (
            sys.executable,
            "-c",
            "from planner.cli.entry import main; main()",
            "config",
            "show",
            "-o",
            str(file),
        )
        said = subprocess.run(
            entry, stdin=reader if waiting else subprocess.DEVNULL, capture_output=True, text=True, timeout=60
        )
    finally:
        os.close(reader)
        os.close(writer)
    assert said.returncode == 2
    assert "--yes" in said.stderr
    assert file.read_text() == "mine"


def test_a_device_is_never_replaced_by_a_file(planner: Planner) -> None:
    ended = planner(*ASK, "-o", "/dev/null", "--format", "csv", "--yes")
    assert ended.code == 2
    assert "device" in ended.err
    assert not Path("/dev/null").is_file()


def test_a_link_keeps_pointing_where_it_did(tmp_path: Path) -> None:
    link, target = tmp_path / "link.csv", tmp_path / "target.csv"
    link.symlink_to(target)
    write_whole(link, "a\n")
    assert link.is_symlink()
    assert target.read_text() == "a\n"


def test_a_name_no_disk_takes_is_one_sentence(planner: Planner, asked: list[Any], tmp_path: Path) -> None:
    ended = planner(*ASK, "-o", str(tmp_path / ("a" * 300 + ".csv")))
    assert ended.code == 2
    assert "File name too long" in ended.err
