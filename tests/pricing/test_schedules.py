"""planner.pricing.schedules: unit files as they will be installed, and late runs that are caught up once."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from planner.pricing.schedules import FORMS, BadSchedule, due, unit_files

GOLDEN = Path(__file__).parent / "golden" / "schedules"
HOUR = timedelta(hours=1)


@pytest.mark.parametrize("form", FORMS)
def test_unit_files_are_as_reviewed(form: str) -> None:
    """Rewrite them with REWRITE_GOLDEN=1 and look at the difference."""
    made = unit_files(form, program="/opt/planner/bin/planner" if form != "kubernetes" else "planner")
    made += "\n=== with a store ===\n\n"
    made += unit_files(form, at="23:05", store="postgresql://planner@db.example/prices")
    golden = GOLDEN / f"{form}.txt"
    if os.environ.get("REWRITE_GOLDEN"):
        golden.write_text(made, encoding="utf-8")
    assert made == golden.read_text(encoding="utf-8")


def test_no_unit_file_holds_a_placeholder_that_was_not_filled_in() -> None:
    for form in FORMS:
        assert "${" not in unit_files(form)


@pytest.mark.parametrize("at", ["24:00", "4", "04:60", "4:1", "noon", "-1:30", ""])
def test_a_time_that_is_none_is_refused(at: str) -> None:
    with pytest.raises(BadSchedule, match="04:17 is meant"):
        unit_files("cron", at=at)


@pytest.mark.parametrize("program", ["planner; rm -rf /", "a b"])
def test_a_program_with_spaces_or_signs_stays_one_word_of_the_shell(program: str) -> None:
    assert f"'{program}' prices refresh" in unit_files("cron", program=program)


@pytest.mark.parametrize("program", ["$(id)", "a'b", "a\nb", "50%"])
def test_what_a_unit_file_would_run_or_expand_is_refused(program: str) -> None:
    with pytest.raises(BadSchedule, match="not taken here"):
        unit_files("systemd", program=program)


def test_an_unknown_form_names_the_known_ones() -> None:
    with pytest.raises(BadSchedule, match="cron, systemd, kubernetes"):
        unit_files("launchd")


def test_c42_a_clock_that_jumps_over_slots_gives_one_run_that_names_them() -> None:
    last = datetime(2026, 9, 11, 1, tzinfo=UTC)
    before = due(last, datetime(2026, 9, 11, 1, 59, 30, tzinfo=UTC), HOUR)
    assert not before.run
    found = due(last, datetime(2026, 9, 11, 5, 10, tzinfo=UTC), HOUR)
    assert found.run
    assert [slot.hour for slot in found.missed] == [2, 3, 4, 5]
    assert found.text == (
        "one catch-up run for 4 missed: 2026-09-11 02:00, 2026-09-11 03:00, 2026-09-11 04:00, "
        "2026-09-11 05:00 UTC"
    )
    served = found.missed[-1]
    assert not due(served, datetime(2026, 9, 11, 5, 10, tzinfo=UTC), HOUR).run


def test_a_run_in_time_misses_nothing() -> None:
    found = due(datetime(2026, 9, 11, 1, tzinfo=UTC), datetime(2026, 9, 11, 2, 0, 1, tzinfo=UTC), HOUR)
    assert (found.run, found.missed, found.text) == (True, (), "")


def test_p21_a_clock_that_went_back_makes_nothing_due() -> None:
    assert not due(datetime(2026, 9, 11, 1, tzinfo=UTC), datetime(2026, 9, 10, tzinfo=UTC), HOUR).run
