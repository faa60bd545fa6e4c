from __future__ import annotations

import csv
import json
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.models.errors import BadData

Planner = Callable[..., Any]


class Report:
    """As much of a validation report as the command reads."""

    def to_json(self) -> dict[str, Any]:
        figures = {
            "scored": 2,
            "median_ape": 0.073,
            "mean_ape": 0.1,
            "p90_ape": 0.2,
            "interval_coverage": 0.9,
            "median_band_width": 0.15,
        }
        return {
            "rows": 3,
            **figures,
            "not_covered": {"precision not stated": 1},
            "groups": {"a100": figures},
            "by_kind": {},
            "baselines": {"datasheet": {**figures, "median_ape": 0.5}},
        }

    def rows(self) -> list[dict[str, str]]:
        return [{"model": "bert-base", "predicted": "1.5", "note": "=1+1"}]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Answers both validations with the report above; what they were asked is in the list."""
    calls: list[Any] = []

    def validate(file: Path, **options: Any) -> Report:
        calls.append((file, options))
        return Report()

    for name, function in (("validation", "validate_throughput"), ("validation_memory", "validate_memory")):
        module = types.ModuleType(name)
        setattr(module, function, validate)
        module.LEAVE_OUT = ("gpu", "family", "host", "source")  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, f"planner.models.{name}", module)
    return calls


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    file = tmp_path / "measured.csv"
    file.write_text("model\nbert-base\n")
    return file


def test_the_document_holds_what_the_report_holds(planner: Planner, asked: list[Any], measured: Path) -> None:
    said = planner("validate", "throughput", str(measured), "--format", "json")
    assert said.code == 0
    assert Report().to_json().items() <= json.loads(said.out).items()
    assert asked == [(measured, {})]


def test_options_reach_the_validation(planner: Planner, asked: list[Any], measured: Path) -> None:
    planner("validate", "throughput", str(measured), "--leave-out", "gpu", "--nested")
    planner("validate", "memory", str(measured), "--leave-out", "source")
    assert [options for _, options in asked] == [
        {"leave_out": "gpu", "nested": True},
        {"leave_out": "source"},
    ]


def test_the_page_shows_errors_in_percent_and_what_was_not_covered(
    planner: Planner, asked: list[Any], measured: Path
) -> None:
    out = planner("validate", "memory", str(measured)).out
    assert "2 of 3 rows scored" in out
    assert "7.3 %" in out
    assert "1 precision not stated" in out


def test_each_row_is_written_with_its_prediction(
    planner: Planner, asked: list[Any], measured: Path, tmp_path: Path
) -> None:
    out = tmp_path / "rows.csv"
    assert planner("validate", "memory", str(measured), "--rows", str(out)).code == 0
    with out.open(newline="") as file:
        assert list(csv.DictReader(file)) == [{"model": "bert-base", "predicted": "1.5", "note": "'=1+1"}]


def test_a_file_that_is_not_there_or_does_not_read_is_refused(
    planner: Planner, asked: list[Any], measured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = planner("validate", "memory", str(measured) + ".gone")
    assert (said.code, asked) == (2, [])
    assert "there is no file" in said.err

    def broken(file: Path) -> Report:
        raise BadData(f"{file}: no column gpu")

    monkeypatch.setattr(sys.modules["planner.models.validation_memory"], "validate_memory", broken)
    said = planner("validate", "memory", str(measured))
    assert (said.code, said.err) == (2, f"error: {measured}: no column gpu\n")


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("throughput", "--leave-out", "gpus"), 'Did you mean "gpu"?'),
        (("throughput", "--nested"), "--nested needs --leave-out gpu or family"),
        (("throughput", "--nested", "--leave-out", "host"), "--nested needs --leave-out gpu or family"),
        (("memory", "--leave-out", "gpu"), "Known: source."),
    ],
)
def test_what_cannot_be_left_out_is_refused(
    planner: Planner, asked: list[Any], measured: Path, flags: tuple[str, ...], says: str
) -> None:
    said = planner("validate", flags[0], str(measured), *flags[1:])
    assert (said.code, asked) == (2, [])
    assert says in said.err


def test_a_report_of_results_is_written_beside_the_columns_of_the_file(tmp_path: Path) -> None:
    from planner.reports.validation_page import report_body, report_rows

    file = tmp_path / "measured.csv"
    file.write_text("model,throughput\nbert-base,100\nnobody,5\n")
    results = (
        types.SimpleNamespace(predicted=90.0, low=80.0, high=99.0, tier="profile", ape=0.1, reason=""),
        types.SimpleNamespace(predicted=None, low=None, high=None, tier="", ape=None, reason="no such model"),
    )
    report = types.SimpleNamespace(body={"rows": 2}, rows=results)
    assert report_body(report) == {"rows": 2}
    first, second = report_rows(file, report)
    assert (first["model"], first["throughput"], first["predicted"], first["ape"]) == (
        "bert-base",
        "100",
        90.0,
        0.1,
    )
    assert (second["predicted"], second["not_covered"]) == (None, "no such model")


def test_decisions_are_shown_beside_rules_that_need_no_model(
    planner: Planner, measured: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from planner import api
    from planner.decisions import Decision, DecisionReport, regrets

    wrong = Decision(
        workload="bert-base", size=384, precision="tf32", script="squad",
        cards=("a100-sxm4-40gb", "rtx-4090-24gb"), best="rtx-4090-24gb", pick="a100-sxm4-40gb",
        regret=0.125, regret_by_rule={"bandwidth_ratio": 0.0, "flops_ratio": 0.125},
    )  # fmt: skip
    body = {
        "as_of": "2026-12-01T23:59:59Z",
        **regrets([0.125, 0.0]),
        "baselines": {"bandwidth_ratio": regrets([0.0, 0.0]), "flops_ratio": regrets([0.125, 0.0])},
        "without_price": ["titan-v-12gb"],
        "prices": [],
        "wrong": [wrong.to_json()],
    }
    monkeypatch.setattr(api, "validate_decisions", lambda file, as_of: DecisionReport(body, (wrong,)))
    page = planner("validate", "decisions", str(measured), "--rows", str(tmp_path / "pairs.csv")).out
    assert "6.25 %" in page
    assert "a100-sxm4-40gb instead of rtx-4090-24gb, 12.50 % dearer" in page
    assert "no price: titan-v-12gb" in page
    with (tmp_path / "pairs.csv").open(newline="") as file:
        assert [row["regret"] for row in csv.DictReader(file)] == ["0.125"]
    document = json.loads(planner("validate", "decisions", str(measured), "--format", "json").out)
    assert {"pairs", "mean_regret", "worst_regret", "wrong_share", "baselines"} <= set(document)
    assert planner("validate", "decisions", "gone.csv").code == 2
