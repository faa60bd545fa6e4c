"""Memory that a trace cannot see: CUDA context, library workspaces, communication buffers, the card itself.

Figures live in calibration/data/memory_terms.toml, each with a source or labelled an assumption.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import BadData

if TYPE_CHECKING:
    from .hardware.catalogue import Gpu

_FILE = Path(__file__).parent / "calibration" / "data" / "memory_terms.toml"
_MIB = 2**20
# The CUDA that current wheels bring; torch 2.13 is built for 12.6 and later.
CURRENT_CUDA = "13.0"


@dataclass(frozen=True, slots=True)
class Term:
    """One figure with its spread. [B]   text: the assumption in one line, with its source."""

    p50_bytes: int
    p95_bytes: int
    text: str


@dataclass(frozen=True, slots=True)
class Sharding:
    """How FSDP gathers: layers or shares of the weights in one unit, and units alive at once."""

    unit_layers_p50: float
    unit_layers_p95: float
    unit_fraction_p50: float
    unit_fraction_p95: float
    gathered_units: int
    text: str


@dataclass(frozen=True, slots=True)
class Band:
    """P95 over P50 of our own allocated and reserved figures; and the least that fragmentation adds."""

    allocated_p95: float
    reserved_p95: float
    floor_p50: float
    floor_p95: float
    text: str


@dataclass(frozen=True, slots=True)
class CardTerms:
    """All terms of one process on one card, looked up once. [B]"""

    context: Term
    communicator: Term
    cublas_workspace: Term
    capacity_bytes: int
    capacity_text: str
    band: Band

    @property
    def outside_p50(self) -> int:
        """What the process holds outside the caching allocator."""
        return self.context.p50_bytes + self.communicator.p50_bytes

    @property
    def outside_p95(self) -> int:
        return self.context.p95_bytes + self.communicator.p95_bytes


_card_terms: dict[tuple[object, ...], CardTerms] = {}


def card_terms(gpu: Gpu, gpu_count: int = 1, cuda: str = CURRENT_CUDA, without: str = "") -> CardTerms:
    """The terms of one of `gpu_count` processes; remembered, since a plan asks a thousand times.

    without: a source group of vram.csv whose figures must not be used, for honest validation on it.
    """
    key = (
        *(gpu.id, gpu.architecture, gpu.memory_bytes, gpu.memory_total_bytes, gpu.torch_total_bytes),
        *(gpu_count, cuda, without),
    )
    found = _card_terms.get(key)
    if found is None:
        capacity_bytes, capacity_text = capacity(gpu)
        found = _card_terms[key] = CardTerms(
            context=context(gpu, cuda, without),
            communicator=communicator(gpu_count),
            cublas_workspace=cublas_workspace(gpu),
            capacity_bytes=capacity_bytes,
            capacity_text=capacity_text,
            band=band(without),
        )
    return found


def context(gpu: Gpu, cuda: str = CURRENT_CUDA, without: str = "") -> Term:
    """The CUDA context of one process: driver state and loaded kernels. [B]

    cuda: version of the runtime; before 11.7 every kernel was loaded at the start.
    """
    row = next(
        row
        for row in _table()["context"]
        if _matches(row, gpu)
        and without not in row.get("fitted_on", ())
        and (not row["until_cuda"] or _version(cuda) <= _version(row["until_cuda"]))
    )
    return _spread(row, f"CUDA context {row['p50_mib']} MiB")


def cublas_workspace(gpu: Gpu) -> Term:
    """The matrix-product workspace that stays in torch.cuda.memory_allocated. [B]"""
    row = next(row for row in _table()["cublas_workspace"] if _matches(row, gpu))
    size = int(row["bytes"])
    return Term(size, size, f"cuBLAS workspace {size} B ({row['source']})")


def communicator(gpu_count: int) -> Term:
    """NCCL's buffers of one process in a group of `gpu_count`, outside the caching allocator. [B]"""
    row = next(row for row in _table()["nccl"] if gpu_count <= row["gpus_up_to"])
    return _spread(row, f"NCCL buffers {row['p50_mib']} MiB")


def bucket_copies() -> tuple[int, str]:
    """Copies of the gradients in DDP's buckets, and the assumption in words."""
    row = _table()["ddp"]
    return int(row["bucket_copies"]), f"DDP buckets hold one more copy of the gradients: {row['note']}"


def zero_bucket_bytes(trainable_parameters: int) -> tuple[int, str]:
    """Buffers in which DeepSpeed's stages 1 and 2 reduce 16-bit gradients [B], and what was assumed."""
    row = _table()["zero"]
    elements = min(int(row["bucket_elements"]), trainable_parameters)
    size = int(row["buckets"]) * 2 * elements
    return size, f"ZeRO reduces through {row['buckets']} buckets of {elements:,} values: {row['note']}"


@cache
def sharding() -> Sharding:
    """What FSDP's gather and scatter buffers are sized by."""
    row = _table()["fsdp"]
    return Sharding(
        *(row["unit_layers_p50"], row["unit_layers_p95"]),
        *(row["unit_fraction_p50"], row["unit_fraction_p95"]),
        row["gathered_units"],
        f"FSDP gathers {row['gathered_units']} units of {row['unit_layers_p50']} layers' weights "
        f"({row['source']}: {row['note']})",
    )


def capacity(gpu: Gpu) -> tuple[int, str]:
    """Memory of the card as torch sees it [B], and where the figure comes from.

    That is what context, communicators and tensors share; less than the nominal size, by what driver
    and firmware keep.
    """
    if gpu.torch_total_bytes is not None:
        return gpu.torch_total_bytes, f"{gpu.id}: torch reports {gpu.torch_total_bytes / 2**30:.2f} GiB"
    row = _table()["capacity"]
    share = float(row["total_share_of_nominal"])
    if gpu.memory_total_bytes is not None:
        # nvidia-smi's total is itself a little above what torch gets.
        total = min(gpu.memory_total_bytes, int(gpu.memory_bytes * share))
    else:
        total = int(gpu.memory_bytes * share)
    return total, (
        f"{gpu.id}: usable {total / 2**30:.2f} GiB, taken as {share:.1%} of nominal "
        f"({row['source']}: {row['note']})"
    )


def band(without: str = "") -> Band:
    """The spread of our own figures."""
    row = next(row for row in _table()["band"] if without not in row.get("fitted_on", ()))
    floor = _table()["fragmentation"]
    return Band(
        row["allocated_p95"],
        row["reserved_p95"],
        floor["floor_p50"],
        floor["floor_p95"],
        f"P95 is P50 x {row['allocated_p95']} allocated, x {row['reserved_p95']} reserved ({row['note']})",
    )


def _spread(row: Mapping[str, Any], what: str) -> Term:
    note = f": {row['note']}" if "note" in row else ""
    return Term(row["p50_mib"] * _MIB, row["p95_mib"] * _MIB, f"{what} ({row['source']}{note})")


def _matches(row: Mapping[str, Any], gpu: Gpu) -> bool:
    architectures = row["architectures"]
    return not architectures or gpu.architecture.casefold() in architectures


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


@cache
def _table() -> Mapping[str, Any]:
    return read_terms(_FILE)


def read_terms(path: Path) -> Mapping[str, Any]:
    """The table, checked: every term has a date and a known source, an assumption its reason.

    Raises BadData naming file and table.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise BadData(f"{path}: not readable as TOML ({error})") from error
    sources = table.pop("sources", {})
    for name, rows in table.items():
        for row in rows if isinstance(rows, list) else [rows]:
            source = row.get("source")
            if source != "assumption" and source not in sources:
                raise BadData(f'{path}: [{name}] has source "{source}", which [sources] does not hold')
            if source == "assumption" and not row.get("note"):
                raise BadData(f"{path}: [{name}] is an assumption without a note that says why")
            if "checked" not in row:
                raise BadData(f"{path}: [{name}] has no `checked` date")
    return table
