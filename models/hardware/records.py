"""The records the catalogue returns. Inside: bytes, seconds, FLOP/s, hertz; the data files speak human."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from ..errors import UnknownFigure

# Which catalogue rate a training precision runs at. Autocast and pure half share the 16-bit rate.
RATE_OF_PRECISION: Mapping[str, str] = {
    "fp32": "fp32",
    "tf32": "tf32",
    "fp16-amp": "fp16",
    "fp16": "fp16",
    "bf16-amp": "bf16",
    "bf16": "bf16",
    "fp8": "fp8",
}


@dataclass(frozen=True, slots=True)
class Source:
    """Where a figure stands: a document and its date. `date` is text, as exact as the document itself is
    ("2020-11", "2023"). `compared` says whether our figures were held against the document's text: all of
    them, some, or none yet (then they were written from knowledge of it)."""

    key: str
    title: str
    url: str
    date: str
    compared: Literal["yes", "part", "no"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure as the source states it, in the unit of its key. `reason` stands where `value` is None."""

    value: float | None
    unit: str
    source: str
    checked: date
    reason: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Gpu:
    """One card, or one form and memory size of it. Compared and hashed by identity: the catalogue makes each
    card once, and a copy with another rate is another card, so results may be cached by card.

    dense_flops: FLOP/s without sparsity; fp16 and bf16 with fp32 accumulate. None where the card has no such
        path; the reason is in figures["<precision>_dense_tflops"].
    memory_bytes: nominal GiB. memory_total_bytes: what nvidia-smi shows. torch_total_bytes: what torch
        reports as the device's total, which context and tensors share. None = not known.
    bandwidth_bytes_per_second: device memory.   nvlink: has NVLink, built in or by bridge.
    peer_to_peer: cards reach each other's memory over PCIe without a copy through the host.
    fp32_accumulate_halved: fp32 accumulation runs at half the tensor rate with fp16 accumulation.
    """

    id: str
    name: str
    vendor: str
    architecture: str
    silicon: str
    year: int
    form_factor: Literal["sxm", "pcie", "nvl", "oam"]
    product_class: Literal["geforce", "workstation", "datacenter"]
    compute_capability: str | None
    first_cuda: str | None
    memory_bytes: int
    memory_total_bytes: int | None
    torch_total_bytes: int | None
    bandwidth_bytes_per_second: float
    sm_count: int
    boost_clock_hz: float
    l2_bytes: int
    tdp_watts: float
    dense_flops: Mapping[str, float | None]
    fp32_accumulate_halved: bool
    nvlink: bool
    pcie_generation: int
    peer_to_peer: bool
    native_dtypes: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    note: str | None = None
    figures: Mapping[str, Figure] = field(default_factory=dict, repr=False, compare=False)

    def rate(self, precision: str) -> float:
        """Dense peak at which `precision` runs. [FLOP/s]

        precision: a key of RATE_OF_PRECISION, e.g. "bf16-amp".
        Raises UnknownFigure with the catalogue's reason where the card has no such path or nobody says.
        """
        key = RATE_OF_PRECISION.get(precision)
        if key is None:
            known = ", ".join(RATE_OF_PRECISION)
            raise UnknownFigure(f'{self.id}: no rate for precision "{precision}". Known: {known}')
        flops = self.dense_flops[key]
        if flops is None:
            reason = self.figures[f"{key}_dense_tflops"].reason
            raise UnknownFigure(f"{self.id} has no {key} rate: {reason}")
        return flops

    def attention_kernel(self, precision: str) -> Literal["flash", "efficient"]:
        """Which fused attention torch picks: flash for 16-bit on compute capability 8.0 and later (and on the
        AMD parts torch builds it for, CDNA 2 and later), else the memory-efficient kernel."""
        if RATE_OF_PRECISION.get(precision) not in ("fp16", "bf16"):
            return "efficient"
        if self.vendor == "amd":
            return "flash" if self.architecture in ("CDNA 2", "CDNA 3") else "efficient"
        major = int(self.compute_capability.split(".")[0]) if self.compute_capability else 0
        return "flash" if major >= 8 else "efficient"


@dataclass(frozen=True, slots=True)
class Instance:
    """A rentable machine. `ram_gib`, `vcpus`, `local_ssd_gib` and `network_gbps` are per instance, None where
    the seller does not say or hosts differ. `link` joins its GPUs, `network` joins such instances."""

    id: str
    provider: str
    family: str
    gpu: str
    gpu_count: int
    vcpus: int | None
    ram_gib: float | None
    local_ssd_gib: float | None
    link: str
    network: str
    network_gbps: float | None
    aliases: tuple[str, ...] = ()
    note: str | None = None
    figures: Mapping[str, Figure] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Part:
    """So many of one priced item."""

    item: str
    quantity: int


@dataclass(frozen=True, slots=True)
class Rig:
    """A machine one owns: a bill of materials with the watts it draws at the wall.

    power_limit_watts: set on each GPU, or None for the card's own limit.
    life_years: over which the purchase is spread; what is left then is the residual value's matter.
    """

    id: str
    gpu: str
    gpu_count: int
    parts: tuple[Part, ...]
    idle_watts: float
    load_watts: float
    power_limit_watts: float | None
    life_years: float
    link: str
    network: str
    aliases: tuple[str, ...] = ()
    note: str | None = None
    figures: Mapping[str, Figure] = field(default_factory=dict, repr=False, compare=False)


Hardware = Gpu | Instance | Rig
