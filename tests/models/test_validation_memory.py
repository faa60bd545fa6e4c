"""Published peaks against ours: bars set in advance, every row scored or listed with its reason."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from planner.models import memory_features
from planner.models.errors import BadData
from planner.models.memory_runs import NotCovered, read_run
from planner.models.validation_memory import (
    KINDS,
    SHIPPED_ROWS,
    MemoryReport,
    accuracy_rows,
    read_rows,
    validate_memory,
)


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, str]]:
    return {row["row_id"]: row for row in read_rows(SHIPPED_ROWS)}


@pytest.fixture(scope="module")
def report() -> MemoryReport:
    return validate_memory()


@pytest.fixture(scope="module")
def left_out() -> dict[str, Any]:
    """The honest setting: no constant read off a row's own source."""
    return validate_memory(leave_out="source").to_json()


def test_every_row_is_scored_or_has_a_reason(report: MemoryReport) -> None:
    answer = report.to_json()
    assert answer["rows"] == len(read_rows(SHIPPED_ROWS)) == 394
    assert answer["scored"] + sum(answer["not_covered"].values()) == answer["rows"]
    assert set(answer["by_kind"]) == set(KINDS)
    sources = {row["source_group"] for row in read_rows(SHIPPED_ROWS)}
    assert sum(answer["groups"][name]["rows"] for name in sources) == answer["rows"]
    assert sum(answer["groups"][name]["rows"] for name in ("adapters", "full training")) == answer["scored"]
    assert all(bool(row.reason) != (row.predicted is not None) for row in report.scored)


def test_bert_large_on_a_v100_is_within_two_percent_of_device_use(report: MemoryReport) -> None:
    """HF documentation, rows v0030 to v0034: torch 1.10's defaults, its own 1,343 MiB of context.

    Gradients zeroed in place, AdamW's for-loop, softmax's input kept for backward (pytorch#64000).
    """
    scored = {row.row["row_id"]: row for row in report.scored}
    for row_id in ("v0030", "v0031", "v0032", "v0033", "v0034"):
        error = scored[row_id].ape
        assert error is not None, scored[row_id].reason
        assert error <= 0.02, (row_id, scored[row_id].predicted)


def test_measured_rows_meet_the_bars_with_their_source_left_out(left_out: dict[str, Any]) -> None:
    assert left_out["median_ape"] <= 0.04
    assert left_out["p90_ape"] <= 0.10
    assert left_out["by_kind"]["nvml"]["p90_ape"] <= 0.10


def test_optimizers_with_small_states_are_within_ten_percent(report: MemoryReport) -> None:
    """HF documentation, rows v0035 to v0038: Adafactor of transformers and 8-bit Adam of bitsandbytes."""
    scored = {row.row["row_id"]: row for row in report.scored}
    for row_id, bar in (("v0035", 0.02), ("v0036", 0.10), ("v0037", 0.02), ("v0038", 0.05)):
        error = scored[row_id].ape
        assert error is not None, scored[row_id].reason
        assert error <= bar, row_id


def test_allocated_peaks_meet_the_bar_with_their_source_left_out(left_out: dict[str, Any]) -> None:
    """Lit-GPT's tables of LoRA, QLoRA and Adapter: 31 runs on one card, 9 under FSDP."""
    allocated = left_out["by_kind"]["allocated"]
    assert allocated["scored"] == 40
    assert allocated["median_ape"] <= 0.03
    assert allocated["p90_ape"] <= 0.08
    assert allocated["under_by_5_percent"] <= 0.05
    adapters = left_out["groups"]["adapters"]
    assert adapters["scored"] == 49
    assert adapters["inside"] == 1.0  # all nine that ran out of memory are seen to


def test_adapters_on_one_card_are_within_a_percent(report: MemoryReport) -> None:
    """Rows v0051 to v0085 and v0098: no constant is fitted on them, so the causes must be the right ones."""
    alone = [row for row in report.scored if row.adapters and row.row["parallelism"] == "1 GPU"]
    apes = [row.ape for row in alone if row.ape is not None]
    assert len(apes) == 30
    assert max(apes) <= 0.01


def test_the_headline_is_over_rows_that_train_all_weights(report: MemoryReport) -> None:
    answer = report.to_json()
    assert answer["median_ape"] == answer["groups"]["full training"]["median_ape"]
    assert answer["median_ape"] != answer["groups"]["adapters"]["median_ape"]


def test_at_least_85_percent_of_the_rows_are_covered(report: MemoryReport) -> None:
    answer = report.to_json()
    assert answer["scored"] / answer["rows"] >= 0.85


def test_brackets_meet_the_bars_with_their_source_left_out(left_out: dict[str, Any]) -> None:
    brackets = left_out["by_kind"]["bracket"]
    assert brackets["scored"] == 94
    assert brackets["inside"] >= 0.85
    verdicts = left_out["groups"]["timm-train-bench"]
    assert verdicts["said_no_but_ran"] <= 0.03


def test_no_fully_sharded_batch_that_ran_is_said_not_to_fit(left_out: dict[str, Any]) -> None:
    """MPT from 125M to 30B on 8 and 16 GPUs, 512 to 65,536 tokens, tuned to fill the card."""
    sharded = left_out["groups"]["llm-foundry-throughput"]
    assert sharded["scored"] >= 150
    assert sharded["said_no_but_ran"] <= 0.03


def test_ours_is_closer_than_the_tools_that_do_not_run_the_step(report: MemoryReport) -> None:
    """xMem runs it, for minutes: on the five convolutional rows its median is 2.9 %, ours 3.8 %."""
    baselines = report.to_json()["baselines"]
    assert set(baselines) >= {"xMem", "DNNMem", "SchedTune", "four_times_weights"}
    for name, figures in baselines.items():
        slack = 0.01 if name == "xMem" else 0.0
        assert figures["ours_median_ape"] < figures["median_ape"] + slack, name


def test_a_prediction_does_not_look_at_what_was_measured(rows: dict[str, Any], tmp_path: Path) -> None:
    row = rows["v0030"]
    files = []
    for name, figure in (("true.csv", row["peak_GiB_measured"]), ("false.csv", "1.0")):
        files.append(tmp_path / name)
        _write(files[-1], [{**row, "peak_GiB_measured": figure, "extra": "ignored"}])
    true, false = (validate_memory(file).scored[0] for file in files)
    assert true.predicted == false.predicted
    assert (true.low, true.high) == (false.low, false.high)
    assert true.measured != false.measured


def test_unknown_values_are_not_covered_and_never_an_error(rows: dict[str, Any], tmp_path: Path) -> None:
    row = rows["v0030"]
    changes = {
        "gpu": ("Voodoo 3", "card not in the catalogue: Voodoo 3"),
        "model": ("nobody's net", "no class for the model: nobody's net"),
        "precision": ("", "precision not stated"),
        "batch_per_gpu": ("a few", "batch size not stated"),
        "seq_or_image": ("not in JSON", "sequence length or image size not stated"),
        "optimizer": ("Voodoo", "optimizer not known: Voodoo"),
        "kind": ("rumour", "kind of row not known: rumour"),
        "what_is_measured": ("heat", "what was measured is not known"),
        "method": ("LoRA", "adapters whose rank and targets are not known"),
        "peak_GiB_measured": ("nan", "measured row without a figure in GiB"),
        "grad_checkpointing": ("selective", "selective checkpointing is not traced yet"),
    }
    path = tmp_path / "rows.csv"
    _write(path, [{**row, column: value} for column, (value, _) in changes.items()])
    assert [scored.reason for scored in validate_memory(path).scored] == [why for _, why in changes.values()]


def test_each_row_goes_out_with_its_prediction_or_its_reason(report: MemoryReport) -> None:
    out = report.rows()
    assert len(out) == 394
    assert all(bool(row["not_covered"]) != bool(row["predicted"]) for row in out)
    bracket = next(row for row in out if row["row_id"] == "v0408")
    assert 192 <= float(bracket["predicted"]) < 256
    assert bracket["inside"] == "yes"


@pytest.mark.parametrize(
    ("row_id", "figure", "keeps_gradients", "softmax_keeps_input", "cuda"),
    [
        ("v0001", "reserved", False, False, "12.4"),  # torch 2.6, zero_grad just before backward
        ("v0030", "nvml", True, True, "11.2"),  # torch 1.10
        ("v0408", "bracket", True, False, "11.3"),  # torch 1.12
    ],
)
def test_a_rows_era_decides_what_its_defaults_did(
    rows: dict[str, Any],
    row_id: str,
    figure: str,
    keeps_gradients: bool,
    softmax_keeps_input: bool,
    cuda: str,
) -> None:
    run = read_run(rows[row_id])
    assert (run.figure, run.cuda) == (figure, cuda)
    assert run.keeps_gradients is keeps_gradients
    assert run.softmax_keeps_input is softmax_keeps_input
    assert run.late_zero_grad is (row_id == "v0001")


def test_fully_sharded_mixed_precision_hands_16_bit_weights_to_the_forward(rows: dict[str, Any]) -> None:
    run = read_run(rows["v0213"])
    assert (run.strategy, run.gpu_count, run.precision) == ("fsdp", 8, "bf16-amp")
    assert run.gathers_in_half
    assert run.fused_loss
    summary = memory_features.feature(run)
    assert summary.variant.precision_policy == "amp"
    # fp32 shards: weights, gradients and two moments of four bytes each.
    assert summary.gradient_bytes == 4 * summary.parameters
    assert summary.memory[0].breakdown["weights"] == pytest.approx(4 * summary.parameters, rel=1e-3)


def test_out_of_scope_rows_say_why(rows: dict[str, Any]) -> None:
    with pytest.raises(NotCovered, match="tensor, pipeline or context parallelism"):
        read_run(next(row for row in rows.values() if "TP" in row["parallelism"]))
    with pytest.raises(NotCovered, match="TensorFlow"):
        read_run(rows["v0493"])


def test_a_file_without_the_columns_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("row_id,gpu\n1,T4\n")
    with pytest.raises(BadData, match=r"other\.csv: no column source_group"):
        validate_memory(path)


def test_the_accuracy_table_has_well_known_rows_with_signed_errors() -> None:
    table = accuracy_rows()
    assert len(table) >= 5
    for row in table:
        assert row["error"] == pytest.approx(row["predicted_gib"] / row["measured_gib"] - 1, abs=0.005)
        assert row["source"]


@pytest.mark.slow
def test_the_shipped_features_are_those_a_new_trace_gives(rows: dict[str, Any]) -> None:
    pytest.importorskip("torch")
    for row_id in ("v0003", "v0034", "v0396"):
        run = read_run(rows[row_id])
        shipped = memory_features.feature(run)
        assert memory_features.make(run).memory == shipped.memory, row_id


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
