"""Replay of PyTorch's CUDA caching allocator: what a step allocates, and what the process reserves for it.

Rules (torch 2.13 c10/cuda/CUDACachingAllocator.cpp, defaults): sizes round up to 512 B; requests up to
1 MiB are cut from 2 MiB segments (the small pool), up to 10 MiB from 20 MiB segments, larger ones from a
segment of their own rounded to 2 MiB; best fit, lowest address first; a block is split when the rest is at
least 512 B (small pool) or more than 1 MiB (large pool); freed neighbours merge; segments stay cached until
cudaMalloc fails, then all that are wholly free go back and the request is tried once more.

Left out: per-stream pools, max_split_size, roundup_power2_divisions, garbage_collection_threshold.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from .errors import ModelsError
from .tracing.step_trace import Phase, StepTrace

UNIT_BYTES = 512  # the allocator's grain; sizes and addresses below are counted in it [512 B]
_SMALL = 2**20 // UNIT_BYTES  # largest request of the small pool; also the smallest rest worth a split
_LARGE = 10 * 2**20 // UNIT_BYTES  # from here on a request gets its own segment
_SMALL_SEGMENT = 2 * 2**20 // UNIT_BYTES
_LARGE_SEGMENT = 20 * 2**20 // UNIT_BYTES
_ROUND_LARGE = 2 * 2**20 // UNIT_BYTES

# A free block is one integer, size above address, so that a sorted list of integers is best fit by bisection.
_ADDRESS_BITS = 40
_ADDRESS_MASK = (1 << _ADDRESS_BITS) - 1
_LARGE_ARENA = 1 << (_ADDRESS_BITS - 1)

ROUNDING = "allocation_rounding"  # breakdown key: what rounding and unsplit remainders add to the requests


class OutOfMemory(ModelsError):
    """A replay reached its capacity. Caught by `replay`, which reports it as a result."""


class CachingAllocator:
    """The allocator of one device and one stream. Addresses and sizes are in units of 512 B."""

    __slots__ = (
        "_capacity",
        "_free_large",
        "_free_size",
        "_free_small",
        "_free_start",
        "_next_address",
        "_segments",
        "_used",
        "allocated",
        "peak_reserved",
        "reserved",
        "retries",
    )

    def __init__(self, capacity_bytes: int | None = None) -> None:
        self._capacity = math.inf if capacity_bytes is None else capacity_bytes // UNIT_BYTES
        self._free_small: list[int] = []
        self._free_large: list[int] = []
        self._free_size: dict[int, int] = {}  # start of a free block -> its size
        self._free_start: dict[int, int] = {}  # end of a free block -> its start
        self._used: dict[int, int] = {}  # start of a block in use -> its size
        self._segments: dict[int, int] = {}
        self._next_address = 0
        self.allocated = 0
        self.reserved = 0
        self.peak_reserved = 0
        self.retries = 0

    def malloc(self, units: int) -> int:
        """Address of a new block of at least `units`. Raises OutOfMemory."""
        small = units <= _SMALL
        free = self._free_small if small else self._free_large
        index = bisect_left(free, units << _ADDRESS_BITS)
        if index < len(free):
            key = free.pop(index)
            address = key & _ADDRESS_MASK
            size = key >> _ADDRESS_BITS
            del self._free_size[address]
            del self._free_start[address + size]
        else:
            address, size = self._grow(units, small)
        rest = size - units
        if rest > _SMALL or (small and rest):
            size = units
            start = address + units
            self._free_size[start] = rest
            self._free_start[start + rest] = start
            insort(free, rest << _ADDRESS_BITS | start)
        self._used[address] = size
        self.allocated += size
        return address

    def free(self, address: int) -> None:
        """Give a block back to its pool, merged with free neighbours."""
        size = self._used.pop(address)
        self.allocated -= size
        free = self._free_small if size <= _SMALL else self._free_large
        end = address + size
        following = self._free_size.pop(end, 0)
        if following:
            del free[bisect_left(free, following << _ADDRESS_BITS | end)]
            size += following
            end += following
            del self._free_start[end]
        start = self._free_start.pop(address, None)
        if start is not None:
            before = address - start
            del free[bisect_left(free, before << _ADDRESS_BITS | start)]
            size += before
            address = start
        self._free_size[address] = size
        self._free_start[end] = address
        insort(free, size << _ADDRESS_BITS | address)

    def blocks(self) -> list[tuple[int, int]]:
        """(address, size) of every block in use, by address."""
        return sorted(self._used.items())

    def free_cached(self) -> None:
        """torch.cuda.empty_cache(): give every wholly free segment back to the driver."""
        for base, size in list(self._segments.items()):
            if self._free_size.get(base) == size:
                self._take_free(base, size)
                del self._segments[base]
                self.reserved -= size

    def _grow(self, units: int, small: bool) -> tuple[int, int]:
        if small:
            size = _SMALL_SEGMENT
        elif units < _LARGE:
            size = _LARGE_SEGMENT
        else:
            size = -(-units // _ROUND_LARGE) * _ROUND_LARGE
        self._reserve(size)
        address = self._next_address
        # One unit of gap: blocks of neighbouring segments never merge.
        self._next_address += size + 1
        self._segments[address] = size
        return address, size

    def _reserve(self, size: int) -> None:
        if self.reserved + size > self._capacity:
            self.retries += 1
            self.free_cached()
            if self.reserved + size > self._capacity:
                raise OutOfMemory(
                    f"{size * UNIT_BYTES} B more would pass the capacity of "
                    f"{int(self._capacity) * UNIT_BYTES} B with {self.allocated * UNIT_BYTES} B allocated"
                )
        self.reserved += size
        if self.reserved > self.peak_reserved:
            self.peak_reserved = self.reserved

    def _take_free(self, start: int, size: int) -> None:
        free = self._free_small if self._is_small(start, size) else self._free_large
        del free[bisect_left(free, size << _ADDRESS_BITS | start)]
        del self._free_size[start]
        del self._free_start[start + size]

    def _is_small(self, start: int, size: int) -> bool:
        # Only whole segments are asked for here; those of the small pool all have one size, and a segment
        # of the large pool that has the same size would need a request above 10 MiB.
        return size == _SMALL_SEGMENT


class ExpandableAllocator(CachingAllocator):
    """PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: one growing arena per pool.

    The arena grows at its end by granules (2 MiB small pool, 20 MiB large pool), so a free tail is never
    wasted on a larger request. Under pressure whole free granules are unmapped. Left out: mapping a hole
    again (growth is always at the end; address space costs nothing, so only little physical memory differs).
    """

    __slots__ = ("_end_large", "_end_small")

    def __init__(self, capacity_bytes: int | None = None) -> None:
        super().__init__(capacity_bytes)
        self._end_small = 0
        self._end_large = _LARGE_ARENA

    def _grow(self, units: int, small: bool) -> tuple[int, int]:
        tail, grown = self._growth(units, small)
        if self.reserved + grown > self._capacity:
            self.free_cached()  # may unmap the very tail that would have been grown
            tail, grown = self._growth(units, small)
        self._reserve(grown)
        end = self._end_small if small else self._end_large
        start = end - tail
        if tail:
            self._take_free(start, tail)
        if small:
            self._end_small = end + grown
        else:
            self._end_large = end + grown
        return start, tail + grown

    def _growth(self, units: int, small: bool) -> tuple[int, int]:
        """The free tail of the arena, and what must be mapped after it to hold `units`."""
        granule, end = (_SMALL_SEGMENT, self._end_small) if small else (_LARGE_SEGMENT, self._end_large)
        tail = end - self._free_start.get(end, end)
        return tail, -(-(units - tail) // granule) * granule

    def free_cached(self) -> None:
        for start, size in list(self._free_size.items()):
            small = self._is_small(start, size)
            base, granule = (0, _SMALL_SEGMENT) if small else (_LARGE_ARENA, _LARGE_SEGMENT)
            first = base + -(-(start - base) // granule) * granule
            last = base + (start + size - base) // granule * granule
            if last <= first:
                continue
            self._take_free(start, size)
            free = self._free_small if small else self._free_large
            for left, right in ((start, first), (last, start + size)):
                if right > left:
                    self._free_size[left] = right - left
                    self._free_start[right] = left
                    insort(free, (right - left) << _ADDRESS_BITS | left)
            if small and last == self._end_small:
                self._end_small = first
            elif not small and last == self._end_large:
                self._end_large = first
            self.reserved -= last - first

    def _is_small(self, start: int, size: int) -> bool:
        return start < _LARGE_ARENA


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
    expandable_segments: bool = False,
    steps: int = 1,
    first_step: bool = True,
    late_zero_grad: bool = False,
) -> Replay:
    """Replay `trace` at a micro-batch of `batch` samples and report its peaks.

    capacity_bytes: what the allocator may reserve (the card's usable memory less the context); None is
        without limit.
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
    make = ExpandableAllocator if expandable_segments else CachingAllocator
    run = _Run(trace, batch, make(capacity_bytes), late_zero_grad)
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
