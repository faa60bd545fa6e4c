"""What a table of the catalogue may hold: each key with its unit and the range outside which it is a slip.

The unit ends the key's name in the TOML files and is spelled out here once. The ranges are no physics: they
catch a TFLOPS written as a FLOPS, a sparse rate in a dense column, a MiB in a GiB column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Quantity:
    """A figure's unit and plausible range, both ends included."""

    unit: str
    low: float
    high: float
    required: bool = True


FILES: Final = ("sources.toml", "gpus.toml", "instances.toml", "rigs.toml", "names.toml")
GIB: Final = 2**30
MIB: Final = 2**20

YES_NO: Final = "yes/no"
RATE_PRECISIONS: Final = ("fp32", "tf32", "fp16", "bf16", "fp8")

GPU_FIGURES: Final[dict[str, Quantity]] = {
    "memory_gib": Quantity("GiB", 2, 1024),
    "memory_total_mib": Quantity("MiB", 2_000, 1_000_000),
    "torch_total_gib": Quantity("GiB", 2, 1024, required=False),
    "bandwidth_gb_per_second": Quantity("GB/s", 100, 20_000),
    "fp32_dense_tflops": Quantity("TFLOPS", 2, 500),
    "tf32_dense_tflops": Quantity("TFLOPS", 2, 3_000),
    "fp16_dense_tflops": Quantity("TFLOPS", 5, 6_000),
    "bf16_dense_tflops": Quantity("TFLOPS", 5, 6_000),
    "fp8_dense_tflops": Quantity("TFLOPS", 50, 12_000),
    "sm_count": Quantity("1", 5, 400),
    "boost_clock_mhz": Quantity("MHz", 800, 3_500),
    "l2_mib": Quantity("MiB", 0.5, 512),
    "tdp_watts": Quantity("W", 30, 1_500),
    "nvlink_gb_per_second": Quantity("GB/s", 0, 4_000),
    "pcie_generation": Quantity("1", 2, 7),
    "peer_to_peer": Quantity(YES_NO, 0, 1),
    "fp32_accumulate_halved": Quantity(YES_NO, 0, 1),
}

INSTANCE_FIGURES: Final[dict[str, Quantity]] = {
    "vcpus": Quantity("1", 1, 1_024),
    "ram_gib": Quantity("GiB", 2, 16_384),
    "local_ssd_gib": Quantity("GiB", 0, 200_000),
    "network_gbps": Quantity("Gbit/s", 0.5, 10_000),
}

RIG_FIGURES: Final[dict[str, Quantity]] = {
    "idle_watts": Quantity("W", 20, 3_000),
    "load_watts": Quantity("W", 100, 20_000),
    "power_limit_watts": Quantity("W", 50, 1_500, required=False),
    "life_years": Quantity("year", 1, 15),
}

VENDORS: Final = ("nvidia", "amd")
FORM_FACTORS: Final = ("pcie", "sxm", "nvl", "oam")
PRODUCT_CLASSES: Final = ("geforce", "workstation", "datacenter")
PROVIDERS: Final = ("aws", "gcp", "azure", "lambda", "runpod", "vast", "oci")

# How the GPUs of one node reach each other, and how nodes do. What a class is worth is calibration's matter.
LINKS: Final = (
    "nvswitch-b200",
    "nvswitch-h100",
    "nvswitch-a100",
    "nvswitch-v100",
    "nvlink-v100",
    "nvlink-bridge",
    "pcie5",
    "pcie4",
    "pcie4-a100",
    "pcie4-no-p2p",
    "pcie3",
    "none",
)
NETWORKS: Final = ("efa-fast", "efa", "ethernet-fast", "ethernet", "none")

# A source key of its own: a labelled guess, allowed only with a note that says why.
ASSUMPTION: Final = "assumption"
