from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import typer

from planner import api
from planner.answer import Assumption, Room, Speed
from planner.cli.app import command
from planner.cli.commands import COMMANDS
from planner.estimates import MemoryAnswer, ThroughputAnswer
from planner.listings import Listing
from planner.models.errors import UnknownName
from planner.models.levers import Setting

Planner = Callable[..., Any]
GIB = 2**30


@pytest.fixture
def offers(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Answers list_prices with two offers, one of unknown amount; what was asked is in the list."""
    asked: list[dict[str, Any]] = []
    known = {
        "item": "p4d.24xlarge",
        "provider": "aws",
        "region": "us-east-1",
        "contract": "on_demand",
        "amount": "21.957642",
        "currency": "USD",
        "unit": "instance_hour",
        "amount_per_gpu": "2.74470525",
        "observed_at": "2026-11-01T00:00:00Z",
        "age_days": 30,
        "source": "aws",
    }

    def list_prices(**filters: Any) -> Listing:
        asked.append(filters)
        return Listing(
            "offers", (known, {**known, "contract": "spot", "amount": None, "amount_per_gpu": None})
        )

    monkeypatch.setattr(api, "list_prices", list_prices)
    return asked


def test_prices_stand_in_full_with_source_and_age(planner: Planner, offers: list[dict[str, Any]]) -> None:
    said = planner(
        "prices", "list", "--item", "p4d.24xlarge", "--region", "us-east-1", "--as-of", "2025-05-31"
    )
    assert said.code == 0
    assert {k: v for k, v in offers[0].items() if v is not None} == {
        "item": "p4d.24xlarge",
        "region": "us-east-1",
        "as_of": "2025-05-31",
    }
    for shown in ("21.957642", "2.74470525", "instance_hour", "on_demand", "aws", "30"):
        assert shown in said.out


def test_an_unknown_price_is_empty_never_zero(planner: Planner, offers: list[dict[str, Any]]) -> None:
    rows = list(csv.DictReader(planner("prices", "list", "--format", "csv").out.splitlines()))
    assert [row["amount"] for row in rows] == ["21.957642", ""]
    document = json.loads(planner("prices", "list", "--format", "json").out)
    assert [offer["amount"] for offer in document["offers"]] == ["21.957642", None]


def test_an_unknown_kind_of_hardware_is_refused(planner: Planner) -> None:
    said = planner("hardware", "list", "--kind", "gpus")
    assert said.code == 2
    assert 'Did you mean "gpu"?' in said.err


def test_showing_an_unknown_name_names_the_nearest(planner: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    def show(name: str) -> Any:
        raise UnknownName("GPU, instance or rig", name, ["rtx-4090-24gb"])

    monkeypatch.setattr(api, "show_hardware", show)
    said = planner("hardware", "show", "rtx-4900")
    assert (said.code, said.out) == (2, "")
    assert 'Did you mean "rtx-4090-24gb"?' in said.err


def test_a_card_is_shown_with_source_and_date_of_each_figure(planner: Planner) -> None:
    from planner.models.hardware.catalogue import gpu

    document = json.loads(planner("hardware", "show", "rtx-4090-24gb", "--format", "json").out)
    assert document["id"] == "rtx-4090-24gb"
    assert document["memory_bytes"] == gpu("rtx-4090-24gb").memory_bytes
    page = planner("hardware", "show", "RTX 4090").out
    figure = document["figures"]["memory_gib"]
    assert figure["source"] in page
    assert figure["checked"] in page
    assert " 1,008,000,000,000\n" in page  # bytes a second: whole, though kept as a float


def _room(fits: str) -> Room:
    return Room(
        allocated_bytes=(20 * GIB, 21 * GIB),
        reserved_bytes=(22 * GIB, 23 * GIB),
        process_bytes=(23 * GIB, 25 * GIB),
        capacity_bytes=24 * GIB,
        fits=fits,
        breakdown={"weights": 5 * GIB, "saved_activations": 15 * GIB, "slack": 3 * GIB},
        peak_phase="backward",
        peak_op="aten.mm",
        tier="replay",
    )


def test_the_memory_page_leads_with_the_verdict(planner: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = {"fits": "yes", "process_bytes": 12 * GIB, "saved_bytes": 13 * GIB}
    alone = {"name": "activation checkpointing", "time_factor": 1.25, **figures}
    combined = {
        "name": "mixed precision + smaller micro-batch",
        "time_factor": None,
        "micro_batch": 32,
        **figures,
    }
    answer = MemoryAnswer(
        workload="bert-large",
        gpu="rtx-4090-24gb",
        size=384,
        size_unit="tokens",
        setting=Setting("bf16-amp", micro_batch=64),
        host_bytes=0,
        room=_room("too_close"),
        max_micro_batch=56,
        needs=(8 * GIB, GIB // 4),
        replayed=None,
        levers=(
            {**combined, "goal": "all weights, same GPUs"},
            {**alone, "goal": None},
        ),
        checkpointing={"memory_factor": 0.5, "time_factor": 1.25},
        assumptions=(Assumption("size", "384 tokens a sample", "zoo"),),
    )
    asked: list[Any] = []

    def estimate(model: str, gpu: str, **options: Any) -> MemoryAnswer:
        asked.append((model, gpu, options["batch_size"], options["activation_checkpointing"]))
        return answer

    monkeypatch.setattr(api, "estimate_memory", estimate)
    ask = ("estimate", "memory", "--model", "bert-large", "--gpu", "rtx-4090-24gb", "--batch-size", "64")
    page = planner(*ask).out
    assert asked == [("bert-large", "rtx-4090-24gb", 64, False)]
    assert page.splitlines()[1].startswith("Too close to call: 23.00 of 24.00 GiB (P95 25.00)")
    assert "largest micro-batch that fits: 56" in page
    assert page.index("saved activations") < page.index("\nweights")
    assert "take 8.00 GiB whatever the batch, and each of 64 samples adds 0.25 GiB" in page
    assert "activation checkpointing     12.00  ×1.25  yes" in page
    assert "same GPUs (12.00 GiB, time not known): mixed precision + micro-batch 32" in page
    assert "alone trades 25 % more time for 50 % less memory here" in page
    document = json.loads(planner(*ask, "--format", "json").out)
    assert (document["fits"], document["process_bytes"]) == ("too_close", {"p50": 23 * GIB, "p95": 25 * GIB})


def test_the_throughput_page_shows_the_band_and_where_time_goes(
    planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    speed = Speed(
        value=2400.0,
        low=2100.0,
        high=2800.0,
        step_seconds=0.2,
        step_seconds_low=0.18,
        step_seconds_high=0.25,
        steps=0,
        precision="bf16-amp",
        global_batch_size=512,
        micro_batch_size=64,
        accumulation=1,
        activation_checkpointing=False,
        strategy="ddp",
        link="nvswitch-a100",
        network="none",
        communication_seconds=0.01,
        tier="profile",
        breakdown=(("matmul", "forward", 0.05), ("matmul", "backward", 0.15)),
    )
    answer = ThroughputAnswer("resnet50", "a100-sxm4-40gb", "a100-sxm4-40gb", 8, 224, "pixels", speed, ())
    monkeypatch.setattr(api, "estimate_throughput", lambda model, gpu, **options: answer)
    ask = ("estimate", "throughput", "--model", "resnet50", "--gpu", "a100-sxm4-40gb", "--gpus", "8")
    page = planner(*ask).out
    assert "2,400 samples/s (80 % band 2,100–2,800)" in page
    lines = [line.split() for line in page.splitlines()]
    assert lines.index(["matmul", "backward", "150.000", "75", "%"]) < lines.index(
        ["matmul", "forward", "50.000", "25", "%"]
    )
    document = json.loads(planner(*ask, "--format", "json").out)
    assert document["throughput"] == {"value": 2400.0, "low": 2100.0, "high": 2800.0, "unit": "samples/s"}


@pytest.mark.parametrize("flag", ["--batch-size", "--gpus", "--seq-len", "--accumulation"])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "1.5", "99999999999"])
def test_a_count_that_is_none_is_refused_by_flag(planner: Planner, flag: str, value: str) -> None:
    said = planner("estimate", "memory", "--model", "bert-base", "--gpu", "t4-16gb", flag, value)
    assert said.code == 2
    assert f"{flag} {value}: must be a whole number" in said.err


def leaves(group: Any) -> Iterator[Any]:
    for sub_command in getattr(group, "commands", {}).values():
        yield from leaves(sub_command)
    if not getattr(group, "commands", {}):
        yield group


# Text, a switch, or several texts: what the parser hands over unconverted.
AS_TYPED = (str, bool, list[str], tuple[str, str])


def test_every_value_of_every_command_is_text_or_a_switch() -> None:
    """app.py hands values over as typed, so a command may not ask typer for anything else."""
    root = command()
    context = root.make_context("planner", ["completion"])
    found = [
        f"{name} {parameter.name}: {parameter.type_descriptor.annotation}"
        for name in COMMANDS
        for leaf in leaves(root.get_command(context, name))
        for parameter in leaf.params
        if parameter.name != "help" and parameter.type_descriptor.annotation not in AS_TYPED
    ]
    assert found == []
    assert isinstance(root, typer.core.TyperGroup)
