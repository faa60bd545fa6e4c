"""What holds for every test: no network, and a home of its own without settings or credentials."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import pytest_socket
from hypothesis import settings

# In CI the same examples each time, so that red means the change; elsewhere new ones look for trouble.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("dev", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

_KEPT = ("PLANNER_RECORDED_DATA",)
_CLOUDS = ("AWS_", "GOOGLE_", "AZURE_", "PLANNER_")


def pytest_runtest_setup() -> None:
    pytest_socket.disable_socket(allow_unix_socket=True)


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home for this test alone; child processes inherit it."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(_CLOUDS) and name not in _KEPT:
            monkeypatch.delenv(name)
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PLANNER_STORE_URL", f"sqlite:///{home}/prices.sqlite")
    return home


@pytest.fixture
def plan() -> Any:
    """A plan of made-up figures: two on the front, dominated rows of several kinds, one in two regions."""
    return _plan(
        [
            _option(1, "rig-1x-rtx-4090", "own", "own", "", "rtx-4090-24gb", 1, "2.96", 14.2, None),
            _option(2, "p4d.24xlarge", "aws", "spot", "us-east-2", "a100-sxm4-40gb", 8, "21.70", 1.3, None),
            _option(3, "g4dn.xlarge", "aws", "on_demand", "us-east-1", "t4-16gb", 1, "31.10", 60.0, "own"),
            _option(
                4, "p4d.24xlarge", "aws", "on_demand", "us-east-1", "a100-sxm4-40gb", 8, "35.00", 1.4, "p4d"
            ),
            _option(
                5, "p4d.24xlarge", "aws", "on_demand", "eu-west-1", "a100-sxm4-40gb", 8, "39.00", 1.4, "p4d"
            ),
            _option(6, "g5.xlarge", "aws", "on_demand", "us-east-1", "a10g-24gb", 1, "41.00", 40.0, "own"),
            _option(
                7,
                "lambda.gpu_8x_a100_80gb_sxm4",
                "lambda",
                "on_demand",
                "all",
                "a100-sxm4-80gb",
                8,
                "52.00",
                1.5,
                "p4d",
            ),
            _option(8, "rig-8x-rtx-4090", "own", "amortised", "", "rtx-4090-24gb", 8, "61.00", 4.0, "p4d"),
            _option(9, "rig-1x-rtx-4090", "own", "buy", "", "rtx-4090-24gb", 1, "2001.88", 14.2, "own"),
        ]
    )


def _option(
    rank: int,
    hardware: str,
    provider: str,
    purchase_model: str,
    region: str,
    gpu: str,
    gpus: int,
    total: str,
    time: float,
    dominated_by: str | None,
) -> Any:
    from planner.answer import Chance, Cost, CostLine, Hours, PlanOption, PriceUsed, Room, Speed, TimeLine

    seen = datetime(2026, 11, 20, tzinfo=UTC)
    cost, duration = Decimal(total), Decimal(str(time))
    credit = Decimal("-12.50")
    lines = (
        CostLine(
            "compute",
            Decimal(1),
            "run",
            cost - credit,
            cost - credit,
            "USD",
            "whole run",
            "seller",
            seen,
            "quoted",
        ),
        CostLine("credit", Decimal(1), "run", credit, credit, "USD", "given", "seller", seen, "quoted"),
    )
    price = PriceUsed(
        id=f"{hardware}-{region}",
        item=hardware,
        provider=provider,
        region=region,
        contract=purchase_model,
        amount=Decimal("21.957642"),
        currency="USD",
        unit="h",
        source="seller",
        source_ref="list",
        age_days=11,
        observed_at=seen,
        quality="list",
        fx_rate=Decimal(1),
        fx_source=None,
        fx_observed_at=None,
    )
    speed = Speed(
        value=123.456789,
        low=100.5,
        high=150.25,
        step_seconds=0.26,
        step_seconds_low=0.21,
        step_seconds_high=0.32,
        steps=27_375,
        precision="bf16-amp",
        global_batch_size=32,
        micro_batch_size=32 // min(gpus, 32),
        accumulation=1,
        activation_checkpointing=False,
        strategy="ddp",
        link="none",
        network="none",
        communication_seconds=0.0,
        tier="profile",
        breakdown=(("matmul", "forward", 0.26),),
    )
    gib = 2**30
    room = Room(
        allocated_bytes=(5 * gib, 6 * gib),
        reserved_bytes=(6 * gib, 7 * gib),
        process_bytes=(7 * gib, 8 * gib),
        capacity_bytes=24 * gib,
        fits="yes",
        breakdown={"weights": gib},
        peak_phase="backward",
        peak_op="mm",
        tier="replay",
    )
    return PlanOption(
        rank=rank,
        id=f"{provider}:{hardware}:{purchase_model}:{region}",
        provider=provider,
        hardware=hardware,
        count=1,
        gpu=gpu,
        gpu_count=gpus,
        purchase_model=purchase_model,
        region=region,
        pareto=dominated_by is None,
        dominated_by=dominated_by,
        cost=Cost(cost * Decimal("0.9"), cost, cost * Decimal("1.2")),
        time_hours=Hours(duration * Decimal("0.9"), duration, duration * Decimal("1.1")),
        cash_upfront=Decimal(0),
        cost_per_epoch=cost / 10,
        price_per_gpu_hour=Decimal("2.74470525"),
        cost_lines=lines,
        time_lines=(TimeLine("training", duration, "steps × step", "estimate", "modelled"),),
        memory=room,
        throughput=speed,
        prices=(price,),
        chance=Chance(None, None),
    )


def _plan(options: list[Any]) -> Any:
    from planner.answer import Assumption, Excluded, Job
    from planner.plan import Plan

    job = Job(
        workload="bert-base",
        title="BERT base",
        parameters=109_482_240,
        epochs=Decimal(10),
        tokens=None,
        dataset="SQuAD v1.1",
        dataset_samples=87_599,
        samples=875_990,
        size=384,
        size_unit="tokens",
        global_batch_size=32,
        steps=27_375,
        optimizer="adamw",
    )
    return Plan(
        job=job,
        as_of=datetime(2026, 12, 1, 12, tzinfo=UTC),
        currency="USD",
        options=tuple(options),
        excluded=(Excluded("aws:g4dn.xlarge:eu-west-3", "no_price", "no price in eu-west-3"),),
        assumptions=(
            Assumption("dataset", "reference run: SQuAD v1.1, 87,599 samples of 384 tokens", "zoo"),
        ),
        warnings=("one price is older than a year",),
        seed=0,
        evaluated=1_812,
        snapshot="sha256:3f",
        limits={},
        discount_rate=Decimal("0.08"),
    )
