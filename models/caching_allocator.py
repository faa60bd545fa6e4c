"""PyTorch's CUDA caching allocator without a GPU: the same rules over made-up addresses.

Rules (torch 2.13 c10/cuda/CUDACachingAllocator.cpp, defaults): sizes round up to 512 B; requests up to
1 MiB are cut from 2 MiB segments (the small pool), up to 10 MiB from 20 MiB segments, larger ones from a
segment of their own rounded to 2 MiB; best fit, lowest address first; a block is split when the rest is at
least 512 B (small pool) or more than 1 MiB (large pool); freed neighbours merge; segments stay cached until
cudaMalloc fails, then all that are wholly free go back and the request is tried once more. With
max_split_size a block of at least that size is oversize: it is never split, serves only requests as large and
at most 20 MiB below it, and goes back first.

Left out: per-stream pools, roundup_power2_divisions, garbage_collection_threshold.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from dataclasses import dataclass, replace

from .errors import BadConfig, ModelsError

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


# Keys of PYTORCH_CUDA_ALLOC_CONF that change nothing here: which library allocates, how events are made.
_WITHOUT_EFFECT = frozenset({"backend", "release_lock_on_cudamalloc", "pinned_use_cuda_host_register"})


class OutOfMemory(ModelsError):
    """The allocator may reserve no more. `replay` catches it and reports it as a result."""


@dataclass(frozen=True, slots=True)
class AllocatorSettings:
    """What PYTORCH_CUDA_ALLOC_CONF may say of it. max_split_size_bytes: above 20 MiB; None is without."""

    expandable_segments: bool = False
    max_split_size_bytes: int | None = None


DEFAULTS = AllocatorSettings()


def settings_of(text: str) -> AllocatorSettings:
    """The settings in a value of PYTORCH_CUDA_ALLOC_CONF.

    Raises BadConfig for what does not read, and for keys whose effect is not replayed.

    >>> settings_of("expandable_segments:True,max_split_size_mb:128")
    AllocatorSettings(expandable_segments=True, max_split_size_bytes=134217728)
    """
    found = DEFAULTS
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (piece.strip() for piece in part.partition(":"))
        if name == "expandable_segments" and value in ("True", "False"):
            found = replace(found, expandable_segments=value == "True")
        elif name == "max_split_size_mb" and value.isdecimal():
            if int(value) <= 20:
                raise BadConfig(f"{part}: torch takes max_split_size_mb above 20")
            found = replace(found, max_split_size_bytes=int(value) * 2**20)
        elif name not in _WITHOUT_EFFECT:
            raise BadConfig(
                f'"{part}" of an allocator configuration is not replayed; expandable_segments:True and '
                "max_split_size_mb:N are"
            )
    return found


class CachingAllocator:
    """The allocator of one device and one stream. Addresses and sizes are in units of 512 B."""

    __slots__ = (
        "_capacity",
        "_free_large",
        "_free_size",
        "_free_small",
        "_free_start",
        "_max_split",
        "_next_address",
        "_segments",
        "_used",
        "allocated",
        "peak_reserved",
        "reserved",
        "retries",
    )

    def __init__(self, capacity_bytes: int | None = None, max_split_size_bytes: int | None = None) -> None:
        self._capacity = math.inf if capacity_bytes is None else capacity_bytes // UNIT_BYTES
        self._max_split = math.inf if max_split_size_bytes is None else max_split_size_bytes // UNIT_BYTES
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
        if index < len(free) and self._may_serve(units, free[index] >> _ADDRESS_BITS):
            key = free.pop(index)
            address = key & _ADDRESS_MASK
            size = key >> _ADDRESS_BITS
            del self._free_size[address]
            del self._free_start[address + size]
        else:
            address, size = self._grow(units, small)
        rest = size - units
        if rest and (small or self._splits(units, rest)):
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

    def _splits(self, units: int, rest: int) -> bool:
        """Whether a block of the large pool is cut behind the first `units`, leaving `rest`."""
        return units < self._max_split and rest > _SMALL

    def _may_serve(self, units: int, size: int) -> bool:
        """Whether a free block of `size`, the best fit, is taken for `units`."""
        return size < self._max_split or (units >= self._max_split and size < units + _LARGE_SEGMENT)

    def _release_oversize(self, wanted: int) -> None:
        """Give oversize blocks back: the smallest that is enough, else the largest until they are enough."""
        oversize = [key for key in self._free_large if key >> _ADDRESS_BITS >= self._max_split]
        index = bisect_left(oversize, max(wanted, int(self._max_split)) << _ADDRESS_BITS)
        chosen = oversize[index : index + 1] or oversize[::-1]
        freed = 0
        for key in chosen:
            if freed >= wanted:
                break
            base, size = key & _ADDRESS_MASK, key >> _ADDRESS_BITS
            if self._segments.get(base) != size:
                continue
            self._take_free(base, size)
            del self._segments[base]
            self.reserved -= size
            freed += size

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
            if self._max_split < math.inf:
                self._release_oversize(size)
            if self.reserved + size > self._capacity:
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
    wasted on a larger request, and any rest is split off. Under pressure whole free granules are unmapped.
    Left out: mapping a hole again (growth is always at the end; address space costs nothing, so only little
    physical memory differs).
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

    def _splits(self, units: int, rest: int) -> bool:
        return True

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


def allocator_of(settings: AllocatorSettings, capacity_bytes: int | None = None) -> CachingAllocator:
    """An empty allocator with these settings. max_split_size means nothing to expandable segments."""
    if settings.expandable_segments:
        return ExpandableAllocator(capacity_bytes)
    return CachingAllocator(capacity_bytes, settings.max_split_size_bytes)
