from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from planner.cli.commands import COMMANDS

Planner = Callable[..., Any]
ENTRY = (sys.executable, "-c", "from planner.cli.entry import main; main()")


def run(*arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, **extra}
    return subprocess.run([*ENTRY, *arguments], capture_output=True, text=True, env=environ, timeout=60)


def in_terminal(*arguments: str, **extra: str) -> str:
    """What the command writes to a pseudo-terminal of 80 columns."""
    main, side = pty.openpty()
    environ = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **extra}
    child = subprocess.Popen([*ENTRY, *arguments], stdout=side, stderr=side, stdin=side, env=environ)
    os.close(side)
    written = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:  # Linux answers EIO when the other side has closed
            break
        if not part:
            break
        written += part
    os.close(main)
    child.wait(timeout=60)
    return written.decode()


def test_the_version_is_that_of_the_package() -> None:
    said = run("--version")
    assert (said.returncode, said.stdout) == (0, f"planner {version('training-planner')}\n")


def test_help_is_one_page_with_examples_first(planner: Planner) -> None:
    said = planner("--help")
    assert said.code == 0
    lines = said.out.splitlines()
    assert len(lines) <= 24
    assert lines.index("Examples:") < lines.index("Commands:")
    assert max(map(len, lines)) <= 80
    for entry in COMMANDS.values():
        assert any(
            entry.name in line[:23].replace(",", " ").split() and entry.summary in line for line in lines
        )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(planner: Planner, name: str) -> None:
    import importlib

    import typer

    module = importlib.import_module(f"planner.cli.commands.{COMMANDS[name].module}")
    command = typer.main.get_command(module.app)
    for path in [(name, part) for part in getattr(command, "commands", {})] or [(name,)]:
        said = planner(*path, "--help")
        assert said.code == 0
        assert "Example" in said.out
        assert f"planner {' '.join(path)}" in said.out


def test_every_module_of_commands_is_in_the_table() -> None:
    from planner.cli import commands

    there = {file.stem for file in Path(str(commands.__file__)).parent.glob("*.py")} - {"__init__"}
    assert {entry.module for entry in COMMANDS.values()} == there


@pytest.mark.parametrize(
    ("typed", "meant"), [("optimise", "optimize"), ("price", "prices"), ("workload", "workloads")]
)
def test_an_unknown_command_names_the_nearest(planner: Planner, typed: str, meant: str) -> None:
    said = planner(typed)
    assert said.code == 2
    assert f'no command "{typed}". Did you mean "{meant}"?' in said.err
    assert said.err.count("\n") == 1


def test_a_closed_pipe_ends_quietly_with_141(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    said = subprocess.run(
        [*ENTRY, "config", "show"], stdout=writer, stderr=subprocess.PIPE, env=dict(os.environ), timeout=60
    )
    os.close(writer)
    assert (said.returncode, said.stderr) == (141, b"")


def test_ctrl_c_exits_130_without_a_traceback(planner: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    from planner import api

    def interrupted(request: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "optimize", interrupted)
    said = planner("optimize", "--model", "bert-base")
    assert (said.code, said.out, said.err) == (130, "", "error: interrupted\n")


def test_c44_no_escape_codes_in_a_pipe_nor_under_no_color() -> None:
    assert "\x1b" not in run("config", "show").stdout
    assert "\x1b" not in in_terminal("config", "show", NO_COLOR="1")
    assert "\x1b" not in in_terminal("config", "show", TERM="dumb")
    assert "\x1b" not in in_terminal("config", "show", "--color", "never")
    assert "\x1b[" in in_terminal("config", "show")
    assert "\x1b[" in run("config", "show", FORCE_COLOR="1").stdout
    assert "\x1b[" in run("config", "show", "--color", "always", NO_COLOR="1").stdout


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_scripts_ask_the_planner(planner: Planner, shell: str) -> None:
    said = planner("completion", shell)
    assert said.code == 0
    assert "_PLANNER_COMPLETE" in said.out


def test_completing_a_command_answers_its_name() -> None:
    said = run(_PLANNER_COMPLETE="complete_bash", COMP_WORDS="planner opt", COMP_CWORD="1")
    assert said.stdout.split() == ["optimize"]


def test_a_message_shows_no_control_characters_and_no_endless_word() -> None:
    ended = run("optimize", "--model", "\x1b[31m" + "x" * 5000)
    assert ended.returncode == 2
    assert "\x1b" not in ended.stderr
    assert len(ended.stderr) < 1000


def test_a_full_disk_is_one_sentence() -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [*ENTRY, "hardware", "list"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert ended.returncode == 2
    assert ended.stderr == "error: cannot write the output: No space left on device\n"


def test_closed_streams_leave_no_traceback() -> None:
    command = " ".join(f"'{word}'" for word in (*ENTRY, "hardware", "list"))
    ended = subprocess.run(["sh", "-c", f"{command} 2>&1 >&-"], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "")


def test_help_into_a_closed_pipe_ends_quietly_with_141() -> None:
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(
        [*ENTRY, "optimize", "--help"], stdout=write, stderr=subprocess.PIPE, text=True, timeout=60
    )
    os.close(write)
    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.mark.parametrize("format", ["json", "jsonl", "csv", "markdown", "html"])
def test_what_programs_read_is_utf_8_in_every_locale(format: str) -> None:
    asked = ("optimize", "--model", "bert-base", "--gpu", "t4", "--format", format)
    plain, ascii_only = run(*asked), run(*asked, LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert (ascii_only.returncode, ascii_only.stdout) == (0, plain.stdout)
    assert ascii_only.stderr.isascii()
    assert "\\u" not in ascii_only.stderr
