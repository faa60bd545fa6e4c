"""Timers as they will be installed, and the folder of a date."""

from __future__ import annotations

import json
import os
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
import yaml
from made_documents import document, payment

from planner.errors import UsageError
from planner.pricing.schedules import FORMS
from planner.reports.dated.folder import Asked, day_of, document_of, write_dated
from planner.reports.dated.timers import timer

GOLDEN = Path(__file__).parent / "golden"
DAY = date(2027, 1, 31)


@pytest.mark.parametrize("form", FORMS)
def test_timers_are_as_reviewed(form: str) -> None:
    """Rewrite them with REWRITE_GOLDEN=1 and look at the difference."""
    made = timer(form, "/srv/plan.yaml", "/srv/reports")
    made += "\n=== monthly, with a store ===\n\n"
    made += timer(form, "/srv/a plan.json", "/srv/my reports", day="1", store="postgresql://db.example/p")
    golden = GOLDEN / f"{form}.txt"
    if os.environ.get("REWRITE_GOLDEN"):
        golden.write_text(made, encoding="utf-8")
    assert made == golden.read_text(encoding="utf-8")
    assert "${" not in made


def test_the_arguments_of_a_pod_are_the_command_word_for_word() -> None:
    job = yaml.safe_load(timer("kubernetes", "/srv/a plan.json", "/srv/my reports"))
    container = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]
    assert container["args"] == ["report", "run", "/srv/a plan.json", "-o", "/srv/my reports"]
    assert container["volumeMounts"][0]["mountPath"] == "/srv/my reports"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"day": "31"}, "a day that every month has"),
        ({"at": "25:00"}, "04:17 is meant"),
        ({"form": "launchd"}, "cron, systemd, kubernetes"),
        ({"source": "plan.json"}, "the whole path"),
        ({"source": "/srv/$(id).json"}, "not taken here"),
    ],
)
def test_what_a_timer_cannot_hold_is_refused(change: dict[str, str], said: str) -> None:
    asked = {"form": "cron", "source": "/srv/plan.yaml", "root": "/srv/reports"} | change
    with pytest.raises(UsageError, match=said):
        timer(**asked)  # type: ignore[arg-type]


def made() -> dict[str, object]:
    starts, ends = datetime(2027, 1, 1, tzinfo=UTC), datetime(2027, 3, 1, tzinfo=UTC)
    found = document([payment("10", "3.5", datetime(2027, 1, 9, tzinfo=UTC))], starts=starts, ends=ends)
    return json.loads(json.dumps(found))


@pytest.mark.slow
def test_a_date_s_folder_holds_plan_page_and_tables_and_is_replaced(tmp_path: Path) -> None:
    first = write_dated(made(), tmp_path / "reports", DAY, Asked())
    names = {path.name for path in first.iterdir()}
    assert first == tmp_path / "reports" / "2027-01-31"
    assert {"plan.json", "plan.html", "payments.csv", "report.xlsx", "finance.json", "manifest.json"} <= names
    before = {path.name: path.read_bytes() for path in first.iterdir()}
    write_dated(document_of(first / "plan.json"), tmp_path / "reports", DAY, Asked())
    assert {path.name: path.read_bytes() for path in first.iterdir()} == before
    assert [path.name for path in (tmp_path / "reports").iterdir()] == ["2027-01-31"]


def test_a_folder_of_somebody_else_s_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "2027-01-31").mkdir()
    (tmp_path / "2027-01-31" / "notes.txt").touch()
    with pytest.raises(UsageError, match="holds files that no report wrote"):
        write_dated(made(), tmp_path, DAY, Asked())


def test_a_date_that_is_none_is_refused() -> None:
    assert day_of("2027-01-31") == DAY
    with pytest.raises(UsageError, match="--date soon"):
        day_of("soon")
