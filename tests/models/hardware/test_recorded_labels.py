"""Labels of the published tables: each names a card, is openly ambiguous, or is known to be none of ours."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from planner.models.hardware import catalogue

RECORDED = os.environ.get("PLANNER_RECORDED_DATA", "")
TABLES = Path(RECORDED) / "ground_truth"

pytestmark = pytest.mark.skipif(
    not RECORDED or not TABLES.is_dir(),
    reason="PLANNER_RECORDED_DATA does not point at the recorded tables",
)

# A card measured above its datasheet: boards boost beyond their rated clock, some crowd runs are overclocked.
HIGHEST_BELIEVABLE_RATIO = 1.2
DISBELIEVED = {("RTX 4060 Ti 16GB", "fp16")}  # 1.35 of the dense peak in one crowd-sourced run


def rows(name: str) -> list[dict[str, str]]:
    with (TABLES / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("table", "column", "open_labels"),
    [
        ("throughput", "gpu", set()),
        ("vram", "gpu", {"A100-40GB", "A100-80GB", "H100-80GB", "V100-32GB"}),
        ("achieved_matmul", "gpu_canonical", {"A100 PCIe", "A100 SXM", "V100", "V100 SXM2"}),
        ("achieved_bandwidth", "gpu", {"A100-SXM4", "H100", "RTX PRO 6000"}),
    ],
)
def test_every_label_resolves_or_says_why_not(table: str, column: str, open_labels: set[str]) -> None:
    labels = {row[column] for row in rows(table)}
    resolved = {label for label in labels if len(catalogue.candidates(label)) == 1}
    ambiguous = {label for label in labels if len(catalogue.candidates(label)) > 1}
    assert ambiguous == open_labels
    assert {label for label in labels - resolved - ambiguous if catalogue.why_not(label) is None} == set()
    assert len(resolved) >= 4


def test_every_throughput_label_but_the_unstated_a100_names_one_card() -> None:
    labels = {row["gpu"] for row in rows("throughput")}
    unresolved = {label for label in labels if len(catalogue.candidates(label)) != 1}
    assert unresolved == {"A100 (memory/form factor not stated)"}


def test_the_memory_of_a_label_is_known_where_its_form_is_open() -> None:
    for row in rows("vram"):
        if catalogue.candidates(row["gpu"]):
            card = catalogue.gpu(row["gpu"], memory_only=True)
            assert card.memory_bytes == round(float(row["gpu_mem_GB_nominal"]) * 2**30)


def test_machines_of_the_cost_table_are_counts_of_a_card() -> None:
    for machine in {row["machine"] for row in rows("runtime_and_cost")}:
        assert catalogue.gpu(machine.split("x", 1)[1]).id == "a10g-24gb"


def test_no_card_was_measured_far_above_its_dense_peak() -> None:
    """A halved figure would put achieved rates near twice of it."""
    compared = 0
    for row in rows("achieved_matmul"):
        label, dtype = row["gpu_canonical"], row["dtype"]
        cards = catalogue.candidates(label)
        if not cards or dtype not in cards[0].dense_flops or (label, dtype) in DISBELIEVED:
            continue
        peak = max(card.dense_flops[dtype] or 0.0 for card in cards)
        if peak:
            assert float(row["achieved_tflops"]) * 1e12 < HIGHEST_BELIEVABLE_RATIO * peak, (label, dtype)
            compared += 1
    assert compared > 200
