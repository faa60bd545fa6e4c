"""The first command on the data that ships, run as a reader would run it."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

Planner = Callable[..., Any]
ASK = ("optimize", "--model", "bert-base", "--epochs", "10", "--as-of", "2026-12-01")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One price store for this file: filling it takes a second."""
    return f"sqlite:///{tmp_path_factory.mktemp('store')}/prices.sqlite"


@pytest.fixture(autouse=True)
def _stored(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_STORE_URL", store)


def piped(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Through a pipe, COLUMNS unset."""
    entry = (sys.executable, "-c", "from planner.cli.entry import main; main()", *arguments)
    return subprocess.run(entry, capture_output=True, text=True, env=dict(os.environ), timeout=120)


@pytest.fixture
def document(planner: Planner) -> dict[str, Any]:
    said = planner(*ASK, "--format", "json")
    assert said.code == 0, said.err
    answer: dict[str, Any] = json.loads(said.out)
    return answer


def test_cloud_and_rigs_stand_side_by_side_and_every_sum_is_exact(document: dict[str, Any]) -> None:
    hardware = {option["hardware"] for option in document["options"]}
    assert {
        "p4d.24xlarge",
        "rig-1x-rtx-4090",
        "rig-2x-rtx-4090",
        "rig-4x-rtx-4090",
        "rig-8x-rtx-4090",
    } <= hardware
    for option in document["options"]:
        lines = sum((Decimal(line["amount"]) for line in option["cost_lines"]), Decimal(0))
        assert lines == Decimal(option["cost"]["p50"])


def test_the_front_is_a_front(document: dict[str, Any]) -> None:
    front = sorted(
        (o["time_hours"]["p50"], Decimal(o["cost"]["p50"])) for o in document["options"] if o["pareto"]
    )
    assert len(front) >= 2
    assert all(slower[1] <= faster[1] for faster, slower in itertools.pairwise(front))
    ids = {option["id"] for option in document["options"]}
    for option in document["options"]:
        assert (option["dominated_by"] is None) is option["pareto"]
        assert option["pareto"] or option["dominated_by"] in ids


def test_c43_c44_a_pipe_cuts_nothing_and_colours_nothing(document: dict[str, Any]) -> None:
    said = piped(*ASK)
    assert said.returncode == 0
    assert "…" not in said.stdout
    assert "\x1b" not in said.stdout + said.stderr
    rows = re.findall(r"^ *(\d+)[★ ]  (\S.*)$", said.stdout, re.MULTILINE)
    by_rank = {str(option["rank"]): option for option in document["options"]}
    assert len(rows) >= 10
    for rank, row in rows:
        assert by_rank[rank]["hardware"] in row
        assert f"{by_rank[rank]['count']}× " in row or by_rank[rank]["count"] == 1
    shown = {by_rank[rank]["hardware"] for rank, _ in rows}
    assert {"p4d.24xlarge", "rig-1x-rtx-4090", "rig-4x-rtx-4090", "rig-8x-rtx-4090"} <= shown


@pytest.mark.parametrize("which", ["p4d.24xlarge", "rig-4x-rtx-4090"])
def test_the_amounts_that_explain_prints_add_up_to_the_total(planner: Planner, which: str) -> None:
    page = planner(*ASK, "--explain", which).out
    total = re.search(r"^\S+ = (\S+) USD$", page, re.MULTILINE)
    below_cost = page.split("cost: ", 1)[1].splitlines()[1:]
    amounts = [re.match(r"^[│ ]*[├└]─ [^:]+: (-?[\d.]+) USD", line) for line in below_cost]
    assert total is not None
    assert sum((Decimal(found[1]) for found in amounts if found), Decimal(0)) == Decimal(total[1])


def test_a_limit_nothing_meets_names_it_and_the_nearest_plan(planner: Planner) -> None:
    said = planner(*ASK, "--budget", "0.0001")
    assert (said.code, said.out) == (3, "")
    assert "budget 0.0001, cheapest plan 0." in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("flag", "value", "nearest"),
    [
        ("--model", "bert-bse", "bert-base"),
        ("--gpu", "rtx-4900-24gb", "rtx-4090-24gb"),
        ("--provider", "awz", "aws"),
        ("--own", "rig-4x-rtx-4900", "rig-4x-rtx-4090"),
    ],
)
def test_an_unknown_name_is_one_line_with_the_nearest_and_code_2(
    planner: Planner, flag: str, value: str, nearest: str
) -> None:
    said = planner(*ASK, flag, value)
    assert (said.code, said.out) == (2, "")
    assert said.err.count("\n") == 1
    assert f'"{nearest}"' in said.err


def test_a_table_on_a_terminal_of_eighty_columns_overruns_nothing(document: dict[str, Any]) -> None:
    from planner.reports.look import Look
    from planner.reports.pareto_table import pareto_table

    for width in (80, 100, 120):
        page = pareto_table(document, Look(width=width, wrap=True))
        assert max(map(len, page.splitlines())) <= width


def test_the_price_of_p4d_is_what_was_known_then(planner: Planner) -> None:
    """21.957642 USD/h in us-east-1 on demand now, 32.7726 at the end of May 2025."""

    def price(*more: str) -> set[str]:
        ask = ("prices", "list", "--item", "p4d.24xlarge", "--region", "us-east-1", "--format", "json")
        offers = json.loads(planner(*ask, *more).out)["offers"]
        return {offer["amount"] for offer in offers if offer["contract"] == "on_demand"}

    assert price() == {"21.957642"}
    assert price("--as-of", "2025-05-31") == {"32.7726"}


def test_lists_know_the_main_names(planner: Planner, tmp_path: Path) -> None:
    workloads = json.loads(planner("workloads", "list", "--format", "json").out)["workloads"]
    counts = {workload["id"]: workload["parameters"] for workload in workloads}
    assert len(counts) >= 40
    assert counts["bert-large"] == 335_141_888
    hardware = json.loads(planner("hardware", "list", "--format", "json").out)["hardware"]
    assert {"rtx-4090-24gb", "p4d.24xlarge", "rig-8x-rtx-4090"} <= {item["id"] for item in hardware}
