"""Replay of a step: what its tensors take at the peak, and what the allocator reserves for them.

Rules of the allocator: caching_allocator.py.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from .caching_allocator import (
    DEFAULTS,
    UNIT_BYTES,
    AllocatorSettings,
    CachingAllocator,
    OutOfMemory,
    allocator_of,
)
from .tracing.step_trace import Phase, StepTrace

ROUNDING = "allocation_rounding"  # breakdown key: what rounding and unsplit remainders add to the requests


@dataclass(frozen=True, slots=True)
class Replay:
    """What a replay found. Peaks are over all replayed steps. [B]

    breakdown: category -> bytes alive at the allocated peak, with ROUNDING for what the allocator adds;
        adds up to allocated_peak_bytes.
    phase, op: where the allocated peak was reached.
    out_of_memory: the capacity was passed even after cached segments went back; peaks are those so far.
    retries: how often cached segments had to go back for the step to run (each costs a synchronisation).
    """

    allocated_peak_bytes: int
    reserved_peak_bytes: int
    breakdown: Mapping[str, int]
    phase: Phase
    op: str
    out_of_memory: bool
    retries: int = 0


def replay(
    trace: StepTrace,
    batch: int,
    *,
    capacity_bytes: int | None = None,
    accumulating: bool = False,
    settings: AllocatorSettings = DEFAULTS,
    steps: int = 1,
    first_step: bool = True,
    late_zero_grad: bool = False,
) -> Replay:
    """Replay `trace` at a micro-batch of `batch` samples and report its peaks.

    capacity_bytes: what the allocator may reserve (the card's usable memory less the context); None is
        without limit.
    settings: what PYTORCH_CUDA_ALLOC_CONF changes, by caching_allocator.settings_of.
    accumulating: each step is two micro-steps. Gradients live on from the first through the second, where
        every new gradient is a transient that is freed once added; zeroing in place looks the same.
    steps: how often the steady step runs.
    first_step: begin with the step that creates the optimizer state. It matters for reserved: the state is
        then cut out of segments that activations left, as in a real run, instead of lying in a block.
    late_zero_grad: zero_grad stands just before backward, so last step's gradients live through the forward.

    Raises ValueError for a batch or a number of steps below one.
    """
    if batch < 1 or steps < 1:
        raise ValueError(f"batch and steps must be at least 1, not {batch} and {steps}")
    run = _Run(trace, batch, allocator_of(settings, capacity_bytes), late_zero_grad)
    out_of_memory = False
    try:
        run.begin(with_state=not first_step)
        if first_step:
            run.micro_step(optimizer=True, creates_state=True)
            run.close_step()
        for _ in range(steps):
            if accumulating:
                run.micro_step(optimizer=False)
            run.micro_step(optimizer=True)
            run.close_step()
    except OutOfMemory:
        out_of_memory = True
    return run.result(out_of_memory)


def requested_bytes(trace: StepTrace, batch: int) -> list[int]:
    """What each storage asks for at `batch`. [B]"""
    return [max(0, math.ceil(s.bytes.constant + s.bytes.per_sample * batch)) for s in trace.storages]


class _Run:
    """One allocator driven through the steps of one trace."""

    def __init__(
        self, trace: StepTrace, batch: int, allocator: CachingAllocator, late_zero_grad: bool = False
    ) -> None:
        self.trace = trace
        self.late_zero_grad = late_zero_grad
        self.allocator = allocator
        self.units = [-(-size // UNIT_BYTES) for size in requested_bytes(trace, batch)]
        names = sorted({storage.category for storage in trace.storages} | {"temporaries"})
        self.categories = names
        number = {name: index for index, name in enumerate(names)}
        self.category = [number[storage.category] for storage in trace.storages]
        self.gradients = number.get("gradients", -1)
        self.temporaries = number["temporaries"]
        self.state = number.get("optimizer_state", -1)
        self.address: list[int] = [-1] * len(trace.storages)  # -1: not alive
        self.alive = [0] * len(names)  # units requested, by category
        self.peak = 0
        self.peak_alive = self.alive[:]
        self.peak_event = 0
        self.peak_storage = 0
        self.backward_mark = self._mark("backward")
        # The end of backward: where a micro-step without optimizer stops.
        self.optimizer_mark = self._mark("optimizer")

    def begin(self, with_state: bool) -> None:
        """Allocate what is alive from the start, in order."""
        for storage in range(self.trace.initially_alive):
            category = self.category[storage]
            # A first step has neither optimizer state nor the gradients of a step before.
            if with_state or category not in (self.state, self.gradients):
                self._malloc(storage, 0)

    def micro_step(self, *, optimizer: bool, creates_state: bool = False) -> None:
        mark = self.optimizer_mark
        self._run_events(0, self.backward_mark)
        if self.late_zero_grad:
            self._zero_grad()
        self._run_events(self.backward_mark, mark)
        if not optimizer:
            self._free_leftovers(keep=self.gradients)
            return
        if creates_state:
            for storage in range(self.trace.initially_alive):
                if self.category[storage] == self.state and self.address[storage] < 0:
                    self._malloc(storage, mark)
        self._run_events(mark, len(self.trace.events))

    def close_step(self) -> None:
        """Let what this step leaves stand for what the next one finds alive at its start."""
        first_new = self.trace.initially_alive
        leftovers: dict[tuple[int, int], list[int]] = defaultdict(list)
        for storage in range(len(self.address) - 1, first_new - 1, -1):
            if self.address[storage] >= 0:
                leftovers[self.category[storage], self.units[storage]].append(storage)
        for storage in range(first_new):
            if self.address[storage] >= 0:
                continue
            same = leftovers[self.category[storage], self.units[storage]]
            if same:
                heir = same.pop()
                self.address[storage], self.address[heir] = self.address[heir], -1
            else:
                self._malloc(storage, 0)
        self._free_leftovers(keep=self.gradients if self.late_zero_grad else None)

    def _mark(self, phase: Phase) -> int:
        events = len(self.trace.events)
        return next((index for index, begins in self.trace.marks if begins == phase), events)

    def _zero_grad(self) -> None:
        for storage, kind in enumerate(self.category):
            if kind == self.gradients and self.address[storage] >= 0:
                self._free(storage)

    def _free(self, storage: int) -> None:
        self.allocator.free(self.address[storage])
        self.address[storage] = -1
        self.alive[self.category[storage]] -= self.units[storage]

    def result(self, out_of_memory: bool) -> Replay:
        allocated = self.peak * UNIT_BYTES
        breakdown = {
            name: units * UNIT_BYTES
            for name, units in zip(self.categories, self.peak_alive, strict=True)
            if units
        }
        breakdown[ROUNDING] = allocated - sum(breakdown.values())
        phase: Phase = "forward"
        for index, begins in self.trace.marks:
            if index <= self.peak_event:
                phase = begins
        return Replay(
            allocated_peak_bytes=allocated,
            reserved_peak_bytes=self.allocator.peak_reserved * UNIT_BYTES,
            breakdown=breakdown,
            phase=phase,
            op=self.trace.storages[self.peak_storage].op if self.trace.storages else "",
            out_of_memory=out_of_memory,
            retries=self.allocator.retries,
        )

    def _run_events(self, start: int, stop: int) -> None:
        """The hot loop: about a microsecond per event, so attributes become locals."""
        allocator, address, units = self.allocator, self.address, self.units
        category, alive, gradients = self.category, self.alive, self.gradients
        malloc, free, late_zero_grad = allocator.malloc, allocator.free, self.late_zero_grad
        added: list[tuple[int, int]] = []  # (address, units) of gradients waiting to be accumulated
        events = self.trace.events
        peak = self.peak
        for position in range(start, stop):
            event = events[position]
            if event < 0:
                storage = -event - 1
                place = address[storage]
                if place >= 0 and not (late_zero_grad and category[storage] == gradients):
                    free(place)
                    address[storage] = -1
                    alive[category[storage]] -= units[storage]
                continue
            storage = event - 1
            size = units[storage]
            if not size:
                continue
            kind = category[storage]
            accumulates = kind == gradients and address[storage] >= 0
            if added and not accumulates:
                self._accumulate(added)
            place = malloc(size)
            if accumulates:
                added.append((place, size))
                alive[self.temporaries] += size
            else:
                address[storage] = place
                alive[kind] += size
            if allocator.allocated > peak:
                peak = self.peak = allocator.allocated
                self.peak_alive = alive[:]
                self.peak_event = position
                self.peak_storage = storage
        self._accumulate(added)

    def _accumulate(self, added: list[tuple[int, int]]) -> None:
        """Free the gradients that have been added to those of the micro-step before.

        autograd accumulates as soon as the node that made them has returned: before anything that is not a
        gradient of the same node is allocated.
        """
        for place, size in added:
            self.allocator.free(place)
            self.alive[self.temporaries] -= size
        added.clear()

    def _malloc(self, storage: int, event: int) -> None:
        size = self.units[storage]
        if not size:
            return
        self.address[storage] = self.allocator.malloc(size)
        self.alive[self.category[storage]] += size
        if self.allocator.allocated > self.peak:
            self.peak = self.allocator.allocated
            self.peak_alive = self.alive[:]
            self.peak_event = event
            self.peak_storage = storage

    def _free_leftovers(self, keep: int | None) -> None:
        for storage in range(self.trace.initially_alive, len(self.address)):
            if self.address[storage] >= 0 and self.category[storage] != keep:
                self._free(storage)
