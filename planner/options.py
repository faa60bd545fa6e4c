"""What could run the job: every machine × count, in every way of running a step that fits in memory.

Why only the largest micro-batches are priced. For fixed GPUs, precision, strategy and checkpointing the
samples of a step are fixed, so step time = per-sample work (constant) + fixed work and launches ×
accumulation + exchange (which never shrinks with accumulation): the largest fitting micro-batch is never
slower. Cost never falls with time for one offer and count (billing rounds up, energy and wear grow), so that
variant is never dearer either. Recomputing activations adds work and only saves memory, so it is tried where
it allows a larger micro-batch. What remains is compared on its central time, and with --confidence also on
the slow end of its band, because a limit then looks at the latter.

Out of scope rather than proved: plain replicas (ddp) are planned wherever they fit at the full micro-batch,
sharding (fsdp) only where they do not. That is how people choose; the estimators would favour sharding for
its cheaper optimizer update, and have seen few measured runs of it.

Precisions that are the same work on the same units are tried once (`distinct_precisions`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .answer import Excluded
from .estimator import Estimator, Setting
from .feeding import Feeding
from .models.errors import BadConfig, BadData, ModelsError, TraceUnavailable

if TYPE_CHECKING:
    from .models.hardware.catalogue import Gpu, Rig
    from .models.throughput import StepEstimate
    from .models.vram import MemoryEstimate

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Machine:
    """One thing that can be rented or owned. provider: "own" for rigs.

    rig: the bill of materials, None for cloud instances. vcpus: of the machine; None where nobody says.
    """

    id: str
    provider: str
    gpu: Gpu
    gpu_count: int
    link: str
    network: str
    rig: Rig | None = None
    power_limit_watts: float | None = None
    vcpus: int | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run the job on `count` machines that fits in memory."""

    machine: Machine
    count: int
    setting: Setting
    step: StepEstimate
    memory: MemoryEstimate

    @property
    def gpu_count(self) -> int:
        return self.machine.gpu_count * self.count


@dataclass(frozen=True, slots=True)
class _Misfit:
    """Why a way of running does not fit, and how near it came. [B]"""

    need_bytes: int
    capacity_bytes: int
    said: str


def counts(machine: Machine, max_gpus: int) -> tuple[int, ...]:
    """1, 2, 4, … machines up to max_gpus GPUs; one alone where no network joins them."""
    if machine.gpu_count > max_gpus:
        return ()
    most = max_gpus // machine.gpu_count if machine.network != "none" else 1
    return tuple(1 << power for power in range(most.bit_length()))


def divisors(number: int) -> tuple[int, ...]:
    """All divisors, largest first."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return tuple(sorted({*small, *(number // d for d in small)}, reverse=True))


def distinct_precisions(gpu: Gpu, precisions: Sequence[str]) -> list[str]:
    """Those worth trying on this card, in order.

    fp16 and bf16 run on the same units at the same dense rate and move the same bytes, so of two such the
    first named stands for both; fp32 is left out where TF32 is asked for too and the card has it, or falls
    back to it. One that the card cannot run stays, to be refused with its reason if nothing else runs.
    """
    found: list[str] = []
    seen: set[object] = set()
    for name in precisions:
        rate = gpu.dense_flops.get("bf16" if name.startswith("bf16") else "fp16")
        known = name.startswith(("fp16", "bf16")) and rate is not None
        units: object = (name.removeprefix("fp16").removeprefix("bf16"), rate) if known else name
        if name == "fp32" and "tf32" in precisions:
            continue
        if units not in seen:
            seen.add(units)
            found.append(name)
    return found


class OptionFinder:
    """Finds the variants of machines for one job; equal questions are asked once."""

    def __init__(
        self,
        estimator: Estimator,
        precisions: Sequence[str],
        global_batch: int,
        *,
        by_slow_end: bool = False,
        feeding: Feeding | None = None,
        compiled: bool = False,
    ) -> None:
        self._estimator = estimator
        self._precisions = precisions
        self._global_batch = global_batch
        self._by_slow_end = by_slow_end
        self._feeding = feeding
        self._compiled = compiled
        self._memory: dict[tuple[object, ...], MemoryEstimate] = {}
        self._steps: dict[tuple[object, ...], StepEstimate] = {}
        # (need over capacity, what and why) of what came nearest to fitting.
        self.nearest_misfit: tuple[float, Excluded] | None = None

    def variants(self, machine: Machine, count: int) -> tuple[list[Variant], list[Excluded]]:
        """The variants worth pricing, and what was left out and why when nothing remains."""
        gpus = machine.gpu_count * count
        name = _name(machine, count)
        if self._global_batch % gpus:
            reason = f"global batch {self._global_batch:,} does not divide over {gpus} GPUs"
            return [], [Excluded(name, "batch", reason)]
        found: list[Variant] = []
        refused: list[Excluded] = []
        misfits: list[_Misfit] = []
        for precision in distinct_precisions(machine.gpu, self._precisions):
            try:
                found += self._of_precision(machine, count, precision, misfits)
            except (BadConfig, BadData, TraceUnavailable):
                raise  # says nothing about this machine
            except ModelsError as error:
                refused.append(Excluded(name, _code(error), str(error)))
        if found:
            return _worth_pricing(found, self._by_slow_end), []
        if misfits:
            nearest = min(misfits, key=lambda m: m.need_bytes)
            why = Excluded(name, "memory", _does_not_fit(nearest))
            over = nearest.need_bytes / nearest.capacity_bytes
            if self.nearest_misfit is None or over < self.nearest_misfit[0]:
                self.nearest_misfit = over, why
            return [], [why]
        return [], refused[:1]

    def _of_precision(
        self, machine: Machine, count: int, precision: str, misfits: list[_Misfit]
    ) -> Iterator[Variant]:
        gpus = machine.gpu_count * count
        share = self._global_batch // gpus
        reached = 0
        for strategy in ("ddp",) if gpus == 1 else ("ddp", "fsdp"):
            for checkpointing in (False, True) if self._estimator.can_checkpoint else (False,):
                if reached == share:
                    break
                setting = self._largest(machine, count, precision, strategy, checkpointing, share, misfits)
                if setting is None or setting.micro_batch <= reached:
                    continue
                reached = setting.micro_batch
                yield Variant(
                    machine, count, setting, self._step(machine, setting), self._room(machine.gpu, setting)
                )

    def _largest(
        self,
        machine: Machine,
        count: int,
        precision: str,
        strategy: str,
        checkpointing: bool,
        share: int,
        misfits: list[_Misfit],
    ) -> Setting | None:
        """The setting with the largest micro-batch that fits; None where not even one sample does."""
        fed = None
        if self._feeding is not None:
            fed = self._feeding.pipeline(machine.id, machine.gpu_count, machine.vcpus)
        for micro_batch in divisors(share):
            setting = Setting(
                precision=precision,
                micro_batch=micro_batch,
                accumulation=share // micro_batch,
                gpu_count=machine.gpu_count * count,
                node_count=count,
                link=machine.link if machine.gpu_count > 1 else "none",
                network=machine.network if count > 1 else "none",
                strategy=strategy,
                activation_checkpointing=checkpointing,
                compiled=self._compiled,
                input_pipeline=fed,
            )
            room = self._room(machine.gpu, setting)
            if room.fits == "yes":
                return setting
        misfits.append(_Misfit(room.process_bytes.p95, room.capacity_bytes, _described(setting)))
        return None

    def _room(self, gpu: Gpu, setting: Setting) -> MemoryEstimate:
        sharded_over = setting.gpu_count if setting.strategy != "ddp" else min(setting.gpu_count, 2)
        key = (
            gpu.id,
            setting.precision,
            setting.micro_batch,
            setting.accumulation > 1,
            sharded_over,
            setting.strategy,
            setting.activation_checkpointing,
        )
        if key not in self._memory:
            self._memory[key] = self._estimator.memory(gpu, setting)
        return self._memory[key]

    def _step(self, machine: Machine, setting: Setting) -> StepEstimate:
        key = (machine.gpu.id, setting, machine.power_limit_watts)
        if key not in self._steps:
            self._steps[key] = self._estimator.step(machine.gpu, setting, machine.power_limit_watts)
        return self._steps[key]


def _worth_pricing(found: list[Variant], by_slow_end: bool) -> list[Variant]:
    """The fastest, and with by_slow_end each that no other beats on both the central and the slow step time.

    Of equals the first named.
    """
    kept: list[Variant] = []
    for variant in sorted(found, key=lambda v: (v.step.step_seconds, v.step.high_seconds)):
        if not kept or (by_slow_end and variant.step.high_seconds < kept[-1].step.high_seconds):
            kept.append(variant)
    return kept


def _name(machine: Machine, count: int) -> str:
    return machine.id if count == 1 else f"{count}x {machine.id}"


def _described(setting: Setting) -> str:
    recompute = ", activation checkpointing" if setting.activation_checkpointing else ""
    return f"{setting.precision}, micro-batch {setting.micro_batch}, {setting.strategy}{recompute}"


def _does_not_fit(misfit: _Misfit) -> str:
    need, capacity = misfit.need_bytes / GIB, misfit.capacity_bytes / GIB
    return f"does not fit: needs {need:.1f} GiB P95 of {capacity:.1f} ({misfit.said})"


def _code(error: ModelsError) -> str:
    from .models.input_pipeline import CoresUnknown
    from .models.precision import PrecisionUnsupported

    if isinstance(error, CoresUnknown):
        return "input_pipeline"
    return "precision" if isinstance(error, PrecisionUnsupported) else "unknown_figure"
