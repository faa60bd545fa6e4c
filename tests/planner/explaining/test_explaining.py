"""A plan explained: limits solved again against plans made anew, and inputs against sums of the lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import planner
from planner import api
from planner.explaining.explanation import PlanExplanation
from planner.explaining.lines import costed
from planner.explaining.tornado import MOST_BARS, tornado
from planner.reports.look import PLAIN
from planner.reports.plan_explanation import explanation_page

AS_OF = "2026-12-01"
# Few options and runs, so that every search ends with a proof.
SMALL: dict[str, Any] = {
    "name": "small",
    "starts": "2027-01-01",
    "months": 2,
    "as_of": AS_OF,
    "objective": "turnaround",
    "hardware": {"may_buy": [{"rig": "rig-1x-rtx-4090", "most": 1}], "power_limit": "2 kW"},
    "cloud": {
        "providers": ["aws"],
        "spot": False,
        "max_gpus": 8,
        "gpus": ["rtx-4090-24gb", "l40s-48gb", "a100-sxm4-40gb"],
        "quotas": [{"provider": "aws", "gpu": "a100-sxm4-40gb", "gpus": 8}],
    },
    "costs": {"electricity": "0.30 USD/kWh", "staff": "0 USD/rig-year"},
    "jobs": [
        {"id": "first", "workload": "gpt2", "tokens": "6e9", "deadline": "30h"},
        {"id": "second", "workload": "bert-base", "epochs": "40", "deadline": "20d"},
    ],
}


def made(patch: pytest.MonkeyPatch, folder: Path) -> None:
    patch.setenv("PLANNER_STORE_URL", f"sqlite:///{folder}/prices.sqlite")


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        made(patch, tmp_path_factory.mktemp("store"))
        return api.optimize_schedule(SMALL, draws=200).to_json()


@pytest.fixture(scope="module")
def explanation(document: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> PlanExplanation:
    with pytest.MonkeyPatch.context() as patch:
        made(patch, tmp_path_factory.mktemp("store"))
        return api.explain_plan(document)


def worth(explanation: PlanExplanation, limit: str, item: str = "") -> Any:
    return next(each for each in explanation.worths if (each.limit, each.item) == (limit, item))


def least(changed: dict[str, Any]) -> Decimal:
    """The cheapest plan of a schedule made anew."""
    return min(point.cost.p50 for point in planner.optimize_schedule(changed, draws=20).front)


def test_the_searches_of_a_small_schedule_are_proven(explanation: PlanExplanation) -> None:
    assert explanation.same_prices
    assert explanation.searched is not None
    assert explanation.searched[1] < 1e-3


@pytest.mark.parametrize("job", [0, 1])
def test_a_deadline_a_day_later_saves_what_the_schedule_planned_anew_saves(
    explanation: PlanExplanation, job: int
) -> None:
    jobs = [dict(each) for each in SMALL["jobs"]]
    jobs[job]["deadline"] = {0: "54h", 1: "21d"}[job]
    saved = least(SMALL) - least({**SMALL, "jobs": jobs})
    found = worth(explanation, "deadline", jobs[job]["id"])
    assert float(found.saving) == pytest.approx(float(saved), abs=1e-3 * float(least(SMALL)))
    assert (found.verdict in ("binds", "found")) == (found.saving > 0)


def test_the_tight_deadline_binds_and_the_loose_one_does_not(explanation: PlanExplanation) -> None:
    tight, loose = worth(explanation, "deadline", "first"), worth(explanation, "deadline", "second")
    assert tight.saving > 0
    assert tight.per_unit == pytest.approx(tight.saving / 24, rel=Decimal("1e-6"))
    assert (loose.saving, loose.verdict) == (0, "none")


def test_a_cent_per_kwh_costs_the_plan_kept_its_kwh_and_the_best_plan_no_more(
    document: dict[str, Any], explanation: PlanExplanation
) -> None:
    found = worth(explanation, "electricity")
    kwh = Decimal(explanation.plan["energy_kwh"] or 0)
    assert found.kept == pytest.approx(kwh / 100, abs=Decimal("1e-6"))
    dearer = {**SMALL, "costs": {**SMALL["costs"], "electricity": "0.31 USD/kWh"}}
    assert float(-found.saving) == pytest.approx(float(least(dearer) - least(SMALL)), abs=1e-3)
    assert -found.saving <= found.kept


def test_what_is_used_of_each_limit_is_read_off_the_plan(
    document: dict[str, Any], explanation: PlanExplanation
) -> None:
    bought = sum(each["count"] for each in explanation.plan["purchases"])
    assert worth(explanation, "rigs", "rig-1x-rtx-4090").used == str(bought)
    assert "before it" in worth(explanation, "deadline", "first").used


def test_the_front_beside_a_plan_says_what_an_hour_costs_there(document: dict[str, Any]) -> None:
    front = document["front"]
    if len(front) < 2:
        pytest.fail("the made-up schedule should leave more than one plan")
    found = api.explain_plan(document, point=2)
    name, cost, hours = found.neighbours[0]
    assert name.startswith("plan 1")
    assert cost == Decimal(front[0]["cost"]["p50"]) - Decimal(front[1]["cost"]["p50"]) < 0
    assert hours > 0
    assert worth(found, "time", "turnaround of this point").used == "all of it"


def test_lines_of_either_kind_add_up_to_the_plan(document: dict[str, Any], plan: Any) -> None:
    for point in document["front"]:
        cost = costed(document, point)
        assert sum(line.amount for line in cost.lines) == cost.total == Decimal(point["cost"]["p50"])
    made_up = plan.to_json()
    cost = costed(made_up, made_up["options"][0])
    assert sum(line.amount for line in cost.lines) == cost.total


def test_a_bar_is_the_plan_with_one_kind_of_line_moved(document: dict[str, Any]) -> None:
    point = document["front"][-1]
    bars = {bar.input: bar for bar in tornado(document, point)}
    rented = [pay for pay in point["ledger"] if pay["category"] == "compute"]
    by_machine: dict[str, Decimal] = {}
    for pay in rented:
        by_machine[pay["hardware"]] = by_machine.get(pay["hardware"], Decimal(0)) + Decimal(pay["amount"])
    total = Decimal(point["cost"]["p50"])
    for machine, amount in by_machine.items():
        bar = bars[f"on demand price of {machine}"]
        assert bar.cost_low == pytest.approx(total - amount / 10, abs=Decimal("1e-6"))
        assert bar.cost_high == pytest.approx(total + amount / 10, abs=Decimal("1e-6"))
        assert "no range is known" in bar.range


def test_bars_are_at_most_ten_widest_first(document: dict[str, Any]) -> None:
    for point in document["front"]:
        bars = tornado(document, point)
        assert 0 < len(bars) <= MOST_BARS
        assert [bar.span for bar in bars] == sorted((bar.span for bar in bars), reverse=True)


def test_it_all_stands_on_one_screen(explanation: PlanExplanation) -> None:
    page = explanation_page(explanation.to_json(), PLAIN)
    assert len(page.splitlines()) <= 40
    assert "What a limit is worth" in page
    assert "What moves its cost most" in page


def test_a_single_run_is_explained_by_planning_it_again(
    planner_cli: Callable[..., Any], tmp_path: Path
) -> None:
    file = str(tmp_path / "plan.json")
    asked = ("--model", "bert-base", "--epochs", "10", "--as-of", AS_OF)
    free = planner.optimize("bert-base", epochs=10, as_of=AS_OF)
    within = float(free.front[0].time_hours.p50) - 0.5
    said = planner_cli("optimize", *asked, "--deadline", f"{within:.2f}h", "-o", file)
    assert said.code == 0
    document = json.loads(planner_cli("explain", file, "--format", "json").out)
    deadline = next(each for each in document["limits"] if each["limit"] == "deadline")
    kept = json.loads(Path(file).read_text())
    saved = min(Decimal(o["cost"]["p50"]) for o in kept["options"]) - free.front[0].cost.p50
    assert (deadline["verdict"], Decimal(deadline["saving"])) == ("binds", saved)
    assert "binds" in planner_cli("explain", file).out


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("gone.json",), 'cannot read "gone.json"'),
        (("plan.json", "--point", "99"), "no plan 99"),
        (("plan.json", "--seconds", "soon"), "seconds = soon: must be a number"),
        (("plan.json", "--seconds", "0"), "must lie between"),
    ],
)
def test_what_cannot_be_explained_is_refused(
    planner_cli: Callable[..., Any], plan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    flags: tuple[str, ...], says: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("plan.json").write_text(json.dumps(plan.to_json()))
    said = planner_cli("explain", *flags)
    assert (said.code, says in said.err) == (2, True), said.err


def test_a_file_without_its_request_says_what_to_do(plan: Any) -> None:
    with pytest.raises(planner.UsageError, match="plan again"):
        planner.explain_plan(plan.to_json())
