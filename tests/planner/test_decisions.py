"""Wrong picks between two cards: figures that can be checked by hand, and the whole table a second way."""

from __future__ import annotations

import csv
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.models.calibration.parameters import data_path
from planner.models.hardware import catalogue
from planner.models.validation import validate_throughput

AS_OF = "2026-12-01"
PUBLISHED = data_path()


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    with PUBLISHED.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def measured(rows: list[dict[str, str]], gpu: str, **changed: str) -> dict[str, str]:
    """The BERT-large row on one such GPU at mixed precision, changed."""
    found = next(
        row
        for row in rows
        if (row["gpu"], row["model"], row["n_gpus"], row["precision"]) == (gpu, "bert-large", "1", "fp16-amp")
        and row["source_repo"] == "lambdal/deeplearning-benchmark"
    )
    return {**found, **changed}


def written(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as lines:
        out = csv.DictWriter(lines, list(rows[0]))
        out.writeheader()
        out.writerows(rows)
    return path


def cheapest(gpu: str) -> Decimal:
    """Read from the list command's rows, by what those say of a GPU's hour."""
    items = {instance.id for instance in catalogue.instances() if instance.gpu == gpu}
    offers = planner.list_prices(contract="on_demand", as_of=AS_OF).rows
    return min(
        Decimal(offer["amount_per_gpu"])
        for offer in offers
        if offer["item"] in items and offer["availability"] != "listed_only"
    )


def test_a_wrong_pick_costs_what_the_measured_speeds_say(tmp_path: Path, rows: list[dict[str, str]]) -> None:
    """A 4090 written down far too slow: the model picks it, and an A6000 would have been cheaper."""
    slow = "2.0"
    pair = [measured(rows, "RTX 4090", throughput=slow), measured(rows, "RTX A6000", throughput="40")]
    report = planner.validate_decisions(written(tmp_path / "m.csv", pair), as_of=AS_OF)
    cost_4090 = cheapest("rtx-4090-24gb") / Decimal(slow)
    cost_a6000 = cheapest("rtx-a6000-48gb") / Decimal(40)
    assert cost_4090 > cost_a6000
    (wrong,) = report.decisions
    assert (wrong.pick, wrong.best) == ("rtx-4090-24gb", "rtx-a6000-48gb")
    assert wrong.regret == pytest.approx(float(cost_4090 / cost_a6000) - 1)
    body = report.body
    assert (body["pairs"], body["wrong_share"]) == (1, 1.0)
    assert body["mean_regret"] == body["worst_regret"] == round(wrong.regret, 6)
    assert body["wrong"] == [wrong.to_json()]


def test_what_a_card_measured_does_not_change_its_own_pick(
    tmp_path: Path, rows: list[dict[str, str]]
) -> None:
    """Only the best can move with the measured column: no prediction looks at it."""

    def pick(throughput: str) -> str:
        pair = [measured(rows, "RTX 4090", throughput=throughput), measured(rows, "RTX A6000")]
        (found,) = planner.validate_decisions(written(tmp_path / "m.csv", pair), as_of=AS_OF).decisions
        return found.pick

    assert pick("0.001") == pick("100000")


def test_cards_without_a_price_are_listed_and_a_lone_card_is_no_decision(
    tmp_path: Path, rows: list[dict[str, str]]
) -> None:
    only = [measured(rows, "RTX 4090"), measured(rows, "TITAN RTX")]
    body = planner.validate_decisions(written(tmp_path / "m.csv", only), as_of=AS_OF).body
    assert body["without_price"] == ["titan-rtx-24gb"]
    assert (body["pairs"], body["mean_regret"], body["wrong_share"]) == (0, None, None)


def test_no_price_at_all_is_an_error_of_its_own(tmp_path: Path, rows: list[dict[str, str]]) -> None:
    with pytest.raises(planner.NoPrice, match="none of the measured cards"):
        planner.validate_decisions(written(tmp_path / "m.csv", [measured(rows, "TITAN RTX")]), as_of=AS_OF)


def test_what_is_no_table_or_no_date_is_refused(tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("a,b\n1,2\n")
    with pytest.raises(planner.UsageError, match="not a table of throughput rows"):
        planner.validate_decisions(bad)
    with pytest.raises(planner.UsageError, match="as_of = then"):
        planner.validate_decisions(PUBLISHED, as_of="then")


@pytest.mark.slow
def test_all_published_pairs_a_second_way() -> None:
    """Pairs, regrets and both rules, from the rows and the price list alone."""
    body = planner.validate_decisions(PUBLISHED, as_of=AS_OF).body
    best: dict[Any, dict[str, Any]] = {}
    for result in validate_throughput(PUBLISHED, leave_out="gpu").rows:
        row = result.row
        if result.ape is None or row.gpu_count != 1 or row.recipe is None or row.throughput is None:
            continue
        cards = best.setdefault((row.recipe.id, row.model, row.recipe.size, row.precision), {})
        rate = row.throughput * row.samples_per_unit
        if row.gpu not in cards or rate > cards[row.gpu][0]:
            cards[row.gpu] = (rate, (result.predicted or 0.0) * row.samples_per_unit)
    priced = {each["gpu"]: float(each["usd_per_gpu_hour"]) for each in body["prices"]}
    for gpu, usd in priced.items():
        assert usd == pytest.approx(float(cheapest(gpu)), rel=1e-4), gpu
    ours, bandwidth = [], []
    for cards in best.values():
        for a, b in combinations([gpu for gpu in cards if gpu in priced], 2):
            cost = {gpu: priced[gpu] / cards[gpu][0] for gpu in (a, b)}
            least = min(cost.values())
            guess = min((a, b), key=lambda gpu: priced[gpu] / cards[gpu][1])
            ratio = min((a, b), key=lambda gpu: priced[gpu] / catalogue.gpu(gpu).bandwidth_bytes_per_second)
            ours.append(cost[guess] / least - 1)
            bandwidth.append(cost[ratio] / least - 1)
    assert body["pairs"] == len(ours)
    assert body["mean_regret"] == pytest.approx(sum(ours) / len(ours), abs=1e-5)
    assert body["worst_regret"] == pytest.approx(max(ours), abs=1e-5)
    rule = body["baselines"]["bandwidth_ratio"]
    assert rule["mean_regret"] == pytest.approx(sum(bandwidth) / len(bandwidth), abs=1e-5)
    assert rule["wrong_share"] == pytest.approx(sum(r > 1e-12 for r in bandwidth) / len(bandwidth), abs=1e-5)
    assert body["mean_regret"] < min(each["mean_regret"] for each in body["baselines"].values())
