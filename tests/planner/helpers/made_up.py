"""Made-up parts for planning tests: offers at fixture prices, hours that are exact, memory that is given.

Prices here are fixture values, not anybody's list prices.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from planner.answer import Job
from planner.assumptions import assumptions
from planner.estimator import Setting
from planner.market import Market
from planner.models.hardware import catalogue
from planner.models.throughput import StepEstimate
from planner.models.vram import MemoryEstimate, Quantiles
from planner.options import Machine
from planner.own_rigs import at_hand
from planner.plan import Plan
from planner.planning import Planning, make_plan
from planner.pricing.offer import Offer
from planner.request import OptimizeRequest

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
OBSERVED = datetime(2026, 11, 20, tzinfo=UTC)
GIB = 2**30

# With these, a run takes exactly its training hours: nothing starts, is saved, lost or interrupted.
NOTHING_EXTRA: dict[str, Decimal] = {
    "cloud_start_hours": Decimal(0),
    "own_start_hours": Decimal(0),
    "checkpoint_bytes_per_parameter": Decimal(0),
    "spot_restart_hours": Decimal(0),
    "spot_mean_outage_hours": Decimal(0),
    "spot_mean_hours_to_loss": Decimal("1e12"),
}


def offer(item: str, amount: str | None, contract: str = "on_demand", **changed: Any) -> Offer:
    """A cloud offer of the made-up seller "aws" (billed by the second, as the real one)."""
    values: dict[str, Any] = {
        "kind": "cloud_instance",
        "provider": "aws",
        "item": item,
        "region": "us-east-1",
        "contract": contract,
        "unit": "instance_hour",
        "amount": None if amount is None else Decimal(amount),
        "currency": "USD",
        "observed_at": OBSERVED,
        "source": "fixture",
    }
    return Offer(**(values | changed))


def part(item: str, amount: str, **changed: Any) -> Offer:
    """The retail price of one piece."""
    kind = "gpu_retail" if "rtx" in item else "part_retail"
    return offer(
        item,
        amount,
        **{
            "kind": kind,
            "provider": "shop",
            "region": "us",
            "contract": "purchase",
            "unit": "each",
            "condition": "new",
            **changed,
        },
    )


def tariff(amount: str) -> Offer:
    """A commercial electricity price."""
    return offer(
        "electricity-commercial",
        amount,
        kind="electricity",
        provider="utility",
        region="us",
        contract="purchase",
        unit="kwh",
    )


def machine(
    name: str, gpus: int = 1, *, gpu: str = "a100-sxm4-40gb", network: str = "efa", provider: str = "aws"
) -> Machine:
    """An instance with such GPUs."""
    link = "none" if gpus == 1 else "nvswitch-a100"
    return Machine(name, provider, catalogue.gpu(gpu), gpus, link, network)


def rig_of(rig_id: str) -> Machine:
    """A rig of the catalogue."""
    from planner.own_rigs import machine_of_rig

    return machine_of_rig(catalogue.rig(rig_id))


class ExactEstimator:
    """Steps take `seconds[gpu id]` on one GPU (a number for all), divided by the GPUs; memory is given too.

    band: factor of the 80 % band. need_gib: process P95 of a micro-batch of one; grows with the micro-batch.
    """

    can_checkpoint = True

    def __init__(
        self,
        seconds: float | Mapping[str, float],
        *,
        speedup: bool = False,
        band: float = 1.0,
        need_gib: float = 1.0,
        refuse: Mapping[str, Exception] | None = None,
    ) -> None:
        self._seconds = seconds
        self._speedup = speedup
        self._band = band
        self._need_gib = need_gib
        self._refuse = refuse or {}

    def memory(self, gpu: catalogue.Gpu, setting: Setting) -> MemoryEstimate:
        if setting.precision in self._refuse:
            raise self._refuse[setting.precision]
        need = int(self._need_gib * GIB * (0.5 + 0.5 * setting.micro_batch))
        if setting.activation_checkpointing:
            need = int(0.6 * need)
        both = Quantiles(need, need)
        return MemoryEstimate(
            allocated_bytes=both,
            reserved_bytes=both,
            process_bytes=both,
            capacity_bytes=gpu.memory_bytes,
            headroom_bytes=gpu.memory_bytes - need,
            fits="yes" if need <= gpu.memory_bytes else "no",
            breakdown={"weights": need},
            peak_phase="backward",
            peak_op="mm",
            assumptions=(),
        )

    def flops(self, gpu: catalogue.Gpu, setting: Setting) -> tuple[tuple[str, float], ...]:
        return (("matmul", 1e12),)

    def step(self, gpu: catalogue.Gpu, setting: Setting, power_limit_watts: float | None) -> StepEstimate:
        base = self._seconds if isinstance(self._seconds, int | float) else self._seconds[gpu.id]
        seconds = base / (setting.gpu_count if self._speedup else 1)
        seconds *= 1.3 if setting.activation_checkpointing else 1.0
        samples = setting.micro_batch * setting.accumulation * setting.gpu_count
        return StepEstimate(
            step_seconds=seconds,
            low_seconds=seconds / self._band,
            high_seconds=seconds * self._band,
            samples_per_second=samples / seconds,
            tier="made up",
            breakdown=(("matmul", "forward", seconds),),
            communication_seconds=0.0,
            launch_share=0.0,
            mfu=0.4,
            assumptions=(),
            notes=(),
        )


def job(steps: int = 3600, global_batch: int = 64) -> Job:
    """A run of 3,600 steps: its hours are the seconds of a step."""
    return Job(
        workload="bert-base",
        title="BERT base",
        parameters=110_000_000,
        epochs=Decimal(1),
        tokens=None,
        dataset="made up",
        dataset_samples=steps * global_batch,
        samples=steps * global_batch,
        size=384,
        size_unit="tokens",
        global_batch_size=global_batch,
        steps=steps,
        optimizer="adamw-foreach",
    )


def plan(
    machines: Sequence[Machine],
    offers: Sequence[Offer],
    hours: float | Mapping[str, float] = 10.0,
    *,
    estimator: ExactEstimator | None = None,
    job_: Job | None = None,
    assume: Mapping[str, Decimal] | None = None,
    used_history: Sequence[Offer] = (),
    **request: Any,
) -> Plan:
    """A plan of a job that takes `hours` on each machine, without any extra unless `assume` says so."""
    request.setdefault("max_gpus", max((m.gpu_count for m in machines), default=1))
    asked = OptimizeRequest.of(model="bert-base", as_of=NOW, **request)
    market = Market(
        offers,
        as_of=NOW,
        currency=asked.currency,
        fx=asked.fx,
        used_history=used_history,
        max_age_hours=asked.max_price_age,
    )
    owned = at_hand(asked.own, market)
    return make_plan(
        Planning(
            request=asked,
            job=job_ or job(),
            job_assumptions=(),
            machines=[*machines, *owned.machines],
            at_hand=owned,
            market=market,
            assume=assumptions(NOTHING_EXTRA if assume is None else assume),
            estimator=estimator or ExactEstimator(hours),
            precisions=asked.precision or ("bf16-amp",),
            now=NOW,
        )
    )


def with_price(offers: Sequence[Offer], index: int, amount: Decimal) -> list[Offer]:
    """The same offers with another amount at `index`."""
    return [dataclasses.replace(o, amount=amount) if i == index else o for i, o in enumerate(offers)]
