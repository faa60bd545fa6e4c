from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from typing import Any

import pytest

from planner.reports import tabular
from planner.reports.look import Look
from planner.reports.pareto_table import DROPPED, brief_rows, pareto_table
from planner.reports.plan_rows import option_rows, worth_showing


@pytest.fixture
def document(plan: Any) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(json.dumps(plan.to_json()))
    return read


def body(page: str) -> list[str]:
    """The lines between heading and legend."""
    lines = page.splitlines()
    first = next(i for i, line in enumerate(lines) if line.lstrip().startswith("#"))
    return lines[first : lines.index("", first)]


@pytest.mark.parametrize("width", [80, 100, 120])
def test_a_terminal_is_never_overrun(document: dict[str, Any], width: int) -> None:
    page = pareto_table(document, Look(width=width, wrap=True))
    assert max(map(len, page.splitlines())) <= width


def test_eighty_columns_hold_cost_range_hours_and_memory(document: dict[str, Any]) -> None:
    heading = body(pareto_table(document, Look(width=80, wrap=True)))[0].split("  ")
    assert [part.strip() for part in heading if part.strip()] == [
        "#", "OPTION", "TOTAL USD", "80 % RANGE", "HOURS", "USD/EPOCH", "MEMORY",
    ]  # fmt: skip


def test_c43_a_pipe_gets_every_column_and_every_name_whole(document: dict[str, Any]) -> None:
    page = pareto_table(document, Look())
    assert "…" not in page
    for option in worth_showing(document["options"]):
        assert option["hardware"] in page
        assert f"{Decimal(option['cost']['p50']):,.2f}" in page
    assert all(word in body(page)[0] for word in ("REGION", "PRECISION", "BATCH", "AGE", "USD/GPU-H"))
    assert len(body(page)) == 1 + len(worth_showing(document["options"]))


def test_columns_are_dropped_in_the_stated_order(document: dict[str, Any]) -> None:
    widths = range(30, 160, 5)
    counts = [len(body(pareto_table(document, Look(width=width)))[0].split()) for width in widths]
    assert counts == sorted(counts)
    assert DROPPED[-1] == "range"
    assert "TOTAL" in body(pareto_table(document, Look(width=30)))[0]


def test_a_locale_without_unicode_gets_ascii_with_the_same_alignment(document: dict[str, Any]) -> None:
    ascii_only = Look(unicode=False)
    page = pareto_table(document, Look())
    folded = ascii_only.text(pareto_table(document, ascii_only))
    assert folded.isascii()
    assert [len(line) for line in folded.splitlines()] == [len(line) for line in page.splitlines()]
    assert "1*" in folded


def test_the_front_comes_first_and_the_famous_machines_are_always_there(document: dict[str, Any]) -> None:
    shown = worth_showing(document["options"])
    assert [option["pareto"] for option in shown] == sorted((o["pareto"] for o in shown), reverse=True)
    there = {(option["hardware"], option["purchase_model"]) for option in shown}
    assert {
        ("p4d.24xlarge", "on_demand"),
        ("rig-1x-rtx-4090", "buy"),
        ("rig-8x-rtx-4090", "amortised"),
    } <= there
    assert ("g5.xlarge", "on_demand") not in there


def test_all_options_are_shown_when_asked_for(document: dict[str, Any]) -> None:
    page = pareto_table(document, Look(), everything=True)
    assert len(body(page)) == 1 + len(document["options"])
    assert "p4d.24xlarge on-demand eu-west-1" in page


def test_no_word_is_said_by_colour_alone(document: dict[str, Any]) -> None:
    import re

    plain = pareto_table(document, Look(width=80, wrap=True))
    colored = pareto_table(document, Look(width=80, wrap=True, color=True))
    assert "\x1b[" in colored
    stripped = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", colored).splitlines()]
    assert stripped == plain.splitlines()


def test_the_page_says_what_was_asked_assumed_and_left_out(document: dict[str, Any]) -> None:
    page = pareto_table(document, Look())
    for said in (
        "bert-base · 10 epochs · 875,990 samples × 384 tokens = 336.4 M tokens · global batch 32",
        "oldest 11 d (2026-11-20) · as of 2026-12-01 · USD excl. tax",
        "Cheapest: rig-1x-rtx-4090 own, 2.96 USD in all, 14.2 h",
        "Fastest: p4d.24xlarge spot, 21.70 USD in all, 1.30 h",
        "Assumed: reference run: SQuAD",
        "Left out: 1 (no price 1",
        "--explain 1",
    ):
        assert said in page


def test_every_format_holds_the_figures_of_the_json(document: dict[str, Any]) -> None:
    rows = list(csv.DictReader(io.StringIO(tabular.to_csv(option_rows(document, "ours")))))
    assert [row["project"] for row in rows] == ["ours"] * len(document["options"])
    for row, option in zip(rows, document["options"], strict=True):
        for part in ("p10", "p50", "p90"):
            assert Decimal(row[f"cost_usd_{part}"]) == Decimal(option["cost"][part])
            assert Decimal(row[f"time_hours_{part}"]) == Decimal(str(option["time_hours"][part]))
        assert Decimal(row["price_usd_per_gpu_hour"]) == Decimal(option["price_per_gpu_hour"])
    by_rank = {option["rank"]: option for option in document["options"]}
    for brief in brief_rows(document):
        assert brief["total USD"] == Decimal(by_rank[brief["rank"]]["cost"]["p50"])
        assert brief["hours"] == by_rank[brief["rank"]]["time_hours"]["p50"]
