"""How much there is to train: the reference run, changed by what the user says."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from planner.answer import Job
from planner.errors import UsageError
from planner.models.workloads import zoo
from planner.request import OptimizeRequest
from planner.work import job_of


def of(model: str, **values: Any) -> Job:
    return job_of(zoo.workload(model), OptimizeRequest.of(model=model, **values))[0]


def test_bert_base_for_ten_epochs_is_its_reference_data_ten_times() -> None:
    job = of("bert-base", epochs=10)
    assert (job.samples, job.global_batch_size, job.size) == (875_990, 32, 384)
    assert job.steps == -(-875_990 // 32)


def test_what_is_taken_from_the_reference_run_is_said() -> None:
    _, told = job_of(zoo.workload("bert-base"), OptimizeRequest.of(model="bert-base", epochs=10))
    assert "SQuAD" in told[0].text
    assert "global batch 32" in told[0].text
    assert "epochs" not in told[0].text.split("taken from it:")[1]


def test_everything_can_be_given() -> None:
    job = of("bert-base", epochs="1.5", dataset_samples=1001, batch_size=10, seq_len=128)
    assert (job.samples, job.steps, job.size) == (1502, 151, 128)
    assert job.epochs == Decimal("1.5")


def test_tokens_count_samples_by_their_length() -> None:
    assert of("bert-base", tokens=3840).samples == 10
    assert of("bert-base", tokens=3841).samples == 11
    assert of("bert-base", tokens=1280, seq_len=128).samples == 10


def test_images_have_no_tokens() -> None:
    with pytest.raises(UsageError, match="not tokens"):
        of("resnet50", tokens=1000)


def test_a_sequence_past_the_position_table_is_refused() -> None:
    with pytest.raises(UsageError, match=r"seq_len = 513: bert-base holds at most 512 positions") as error:
        of("bert-base", seq_len=513)
    assert error.value.key == "seq_len"


def test_an_absurd_number_of_steps_is_refused() -> None:
    with pytest.raises(UsageError, match="optimizer steps"):
        of("bert-base", epochs=1_000_000, dataset_samples=10**12, batch_size=1)


def test_a_workload_of_ones_own_needs_its_data() -> None:
    own = replace(zoo.workload("bert-base"), reference=None)
    for missing in ("epochs", "dataset_samples", "batch_size"):
        given = {"epochs": 1, "dataset_samples": 100, "batch_size": 10}
        del given[missing]
        with pytest.raises(UsageError, match=missing):
            job_of(own, OptimizeRequest.of(model="x", **given))
    full = OptimizeRequest.of(model="x", epochs=1, dataset_samples=100, batch_size=10)
    assert job_of(own, full)[0].steps == 10
