"""C26 from end to end: a declared input pipeline caps the estimate and keeps dearer cards off a front."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from made_up import job, machine, offer, plan

from planner import api
from planner.errors import UsageError
from planner.estimator import TracedEstimator
from planner.feeding import Feeding
from planner.models.input_pipeline import CoresUnknown
from planner.models.workloads import zoo

# 1,000 steps of 8 samples; one core hands over a batch in 0.217 s.
SLOW_LOADER = {"sample_cpu_seconds": str(Decimal("0.217") / 8), "cores_per_gpu": 1}


def bert(cards: dict[str, str], **request: Any) -> Any:
    """A plan of bert-base on one GPU of each card, at those prices an hour."""
    return plan(
        [machine(card, gpu=card) for card in cards],
        [offer(card, price) for card, price in cards.items()],
        estimator=TracedEstimator(zoo.workload("bert-base"), 384, "adamw-foreach"),  # type: ignore[arg-type]
        job_=job(steps=1000, global_batch=8),
        **request,
    )


def test_c26_a_faster_dearer_gpu_is_not_on_the_front_of_a_starved_job() -> None:
    """C26: 217 s on either card; without the loader's cap the faster card is on the front."""
    cards = {"a100-sxm4-40gb": "2.00", "h100-sxm5-80gb": "3.50"}
    fed, starved = bert(cards), bert(cards, **SLOW_LOADER)
    assert {o.gpu for o in fed.options if o.pareto} == set(cards)
    assert {o.gpu for o in starved.options if o.pareto} == {"a100-sxm4-40gb"}
    for option in starved.options:
        assert option.throughput.step_seconds * 1000 == pytest.approx(217)
        assert option.time_hours.p50 == pytest.approx(Decimal(217) / 3600, rel=Decimal("0.01"))
        assert any("data loading binds" in note for note in option.notes)


def test_c26_the_estimate_is_capped_and_names_what_binds() -> None:
    found = api.estimate_throughput("bert-base", "h100-sxm5-80gb", batch_size=8, **SLOW_LOADER)  # type: ignore[arg-type]
    assert found.speed.step_seconds == pytest.approx(0.217)
    assert ("input pipeline", "all") in {(name, phase) for name, phase, _ in found.speed.breakdown}
    assert any("data loading binds" in note for note in found.speed.notes)


def test_storage_is_shared_by_the_gpus_of_a_machine() -> None:
    asked = {"batch_size": 8, "link": "nvswitch-a100", "sample_bytes": 1e6, "storage_bytes_per_second": 1e8}
    one, eight = (
        api.estimate_throughput("bert-base", "a100-sxm4-40gb", gpus=gpus, **asked)  # type: ignore[arg-type]
        for gpus in (1, 8)
    )
    assert one.speed.step_seconds == pytest.approx(0.08)
    assert eight.speed.step_seconds == pytest.approx(0.64)
    assert any("storage binds" in note for note in eight.speed.notes)


def test_cores_not_named_are_those_of_the_instance_two_threads_to_a_core() -> None:
    """p4d.24xlarge: 96 vCPUs, 48 cores, 6 for each of its 8 GPUs."""
    found = Feeding(0.02, None, 0.0, None).pipeline("p4d.24xlarge", 8, 96)
    assert found.workers == 6
    answer = api.estimate_throughput("resnet50", "p4d.24xlarge", sample_cpu_seconds=0.02)
    assert any("20 ms on 6 cores a GPU" in said.text for said in answer.assumptions)


def test_cores_nobody_knows_are_asked_for_and_never_guessed() -> None:
    with pytest.raises(CoresUnknown, match="give cores_per_gpu"):
        Feeding(0.02, None, 0.0, None).pipeline("rig-1x-rtx-4090", 1, None)
    with pytest.raises(UsageError, match="CPU cores of rtx-4090-24gb are not known"):
        api.estimate_throughput("resnet50", "rtx-4090-24gb", sample_cpu_seconds=0.02)
    cards = {"a100-sxm4-40gb": "2.00", "h100-sxm5-80gb": "3.50"}
    with pytest.raises(Exception, match="CPU cores of a100-sxm4-40gb are not known"):
        bert(cards, sample_cpu_seconds="0.02")


@pytest.mark.parametrize(
    ("half", "says"),
    [
        ({"cores_per_gpu": 4}, "needs sample_cpu_seconds"),
        ({"sample_bytes": 1000}, "give storage_bytes_per_second"),
        ({"storage_bytes_per_second": 1e9}, "give sample_bytes"),
    ],
)
def test_half_a_declaration_is_refused(half: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Feeding.of(half)
    assert Feeding.of({}) is None


def test_compiling_is_a_key_of_the_request_and_is_named_as_assumed() -> None:
    cards = {"a100-sxm4-40gb": "2.00"}
    plain, compiled = bert(cards).options[0], bert(cards, torch_compile=True).options[0]
    assert compiled.throughput.step_seconds < plain.throughput.step_seconds
    band = (compiled.throughput.high / compiled.throughput.low, plain.throughput.high / plain.throughput.low)
    assert band[0] > band[1]


def test_splits_adapters_and_accumulation_are_reached_from_the_estimate() -> None:
    qlora = api.estimate_throughput(
        "llama-2-7b", "rtx-4090-24gb", adapter="qlora", precision="bf16", batch_size=4
    )
    full = api.estimate_throughput("llama-2-7b", "rtx-4090-24gb", precision="bf16", batch_size=4)
    assert qlora.speed.value > full.speed.value
    split = api.estimate_throughput(
        "llama-2-7b",
        "p4d.24xlarge",
        nodes=2,
        tensor_parallel=4,
        pipeline_parallel=2,
        accumulation=8,
        batch_size=1,
        precision="bf16",
    )
    document = json.loads(json.dumps(split.to_json()))
    assert (document["gpus"], document["global_batch_size"]) == (16, 2 * 8)
    assert sum(part["seconds"] for part in document["breakdown"]) == pytest.approx(document["step_seconds"])


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"nodes": 2, "gpus": 16}, "network is needed"),
        ({"nodes": 3, "gpus": 8, "network": "efa"}, "do not divide"),
        ({"adapter": "dora"}, "or say lora or qlora"),
    ],
)
def test_what_cannot_be_asked_says_what_to_do(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        api.estimate_throughput("llama-2-7b", "a100-sxm4-40gb", batch_size=1, **asked)
