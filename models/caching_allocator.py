"""PyTorch's CUDA caching allocator without a GPU: the same rules over made-up addresses.

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

from .errors import ModelsError

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


class OutOfMemory(ModelsError):
    """The allocator may reserve no more. `replay` catches it and reports it as a result."""


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
