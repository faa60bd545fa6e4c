from __future__ import annotations

import io

import pytest

from planner.reports.look import Look, look_of


class Stream(io.StringIO):
    def __init__(self, terminal: bool, encoding: str = "utf-8") -> None:
        super().__init__()
        self.terminal = terminal
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize(
    ("terminal", "flag", "environ", "colored"),
    [
        (True, "auto", {}, True),
        (False, "auto", {}, False),
        (True, "auto", {"NO_COLOR": "1"}, False),
        (True, "auto", {"NO_COLOR": ""}, True),
        (False, "auto", {"FORCE_COLOR": "1"}, True),
        (False, "auto", {"FORCE_COLOR": "0"}, False),
        (True, "auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (True, "auto", {"TERM": "dumb"}, False),
        (False, "always", {"NO_COLOR": "1"}, True),
        (True, "never", {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colour_follows_flag_then_environment_then_stream(
    terminal: bool, flag: str, environ: dict[str, str], colored: bool
) -> None:
    assert look_of(Stream(terminal), flag, environ).color is colored


def test_a_pipe_has_no_width_unless_the_environment_says_one() -> None:
    assert look_of(Stream(False), environ={}).width is None
    narrow = look_of(Stream(False), environ={"COLUMNS": "80"})
    assert (narrow.width, narrow.wrap) == (80, False)
    assert look_of(Stream(True), environ={"COLUMNS": "60"}).width == 60


@pytest.mark.parametrize(
    ("environ", "encoding", "unicode"),
    [
        ({}, "utf-8", True),
        ({"LANG": "en_US.UTF-8"}, "utf-8", True),
        ({"LC_ALL": "C"}, "utf-8", False),
        ({"LC_ALL": "POSIX", "LANG": "en_US.UTF-8"}, "utf-8", False),
        ({"LC_ALL": "C.UTF-8"}, "utf-8", True),
        ({"LANG": "de_DE.ISO-8859-1"}, "utf-8", False),
        ({"LANG": "en_US.UTF-8"}, "ascii", False),
    ],
)
def test_letters_beyond_ascii_need_a_utf_8_locale(
    environ: dict[str, str], encoding: str, unicode: bool
) -> None:
    assert look_of(Stream(False, encoding), environ=environ).unicode is unicode


def test_control_characters_of_a_name_are_spelt_out() -> None:
    assert Look().text("a\x1b[31mb\rc\u202ed\n") == "a\\x1b[31mb\\rc\\u202ed\n"
    assert (
        Look(color=True).text("\x1b[1mbold\x1b[0m \x1b]0;title\x07")
        == "\x1b[1mbold\x1b[0m \\x1b]0;title\\x07"
    )


def test_a_width_in_other_digits_is_no_width() -> None:
    assert look_of(io.StringIO(), environ={"COLUMNS": "²"}).width is None
    assert look_of(io.StringIO(), environ={"COLUMNS": "9" * 5000}).width is None
