"""What large matrix products really reach on each card: achieved_matmul.csv, and a rule for the rest.

The rule: log(achieved/datasheet) is linear in log(board W / datasheet TFLOPS), with a constant for each unit,
one for true fp32 on GA10x and Ada (half of whose fp32 lanes share with integers) and one for matrix units
whose datasheet rate is halved for fp32 accumulation (they exceed it).
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from statistics import median

import numpy as np

from ..hardware.catalogue import gpu, gpus
from ..hardware.records import Gpu
from .profile import Floats

TABLE = "data/achieved_matmul.csv"
UNITS = ("fp32", "tf32", "half")
_DTYPES: Mapping[str, str] = {
    "fp32": "fp32",
    "fp32 (TF32 off by default in stock torch)": "fp32",
    "tf32": "tf32",
    "fp16": "half",
    "bf16": "half",
}
# Short names of the table that stand for several cards, or for one the catalogue spells otherwise.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "A100 SXM": ("a100-sxm4-40gb", "a100-sxm4-80gb"),
    "A100 PCIe": ("a100-pcie-40gb", "a100-pcie-80gb"),
    "V100 SXM2": ("v100-sxm2-16gb", "v100-sxm2-32gb"),
    "V100S": ("v100s-pcie-32gb",),
    "H100 SXM": ("h100-sxm5-80gb",),
    "H100 PCIe": ("h100-pcie-80gb",),
    "H200 SXM": ("h200-sxm-141gb",),
    "H200": ("h200-sxm-141gb",),
    "B200 SXM": ("b200-sxm-180gb",),
    "B200": ("b200-sxm-180gb",),
    "L40S": ("l40s-48gb",),
    "L4": ("l4-24gb",),
    "T4": ("t4-16gb",),
    "RTX 3070": ("rtx-3070-8gb",),
    "RTX 3080": ("rtx-3080-10gb",),
    "RTX 3090": ("rtx-3090-24gb",),
    "RTX 3090 Ti": ("rtx-3090-ti-24gb",),
    "RTX 4090": ("rtx-4090-24gb",),
    "RTX 5090": ("rtx-5090-32gb",),
    "RTX A4000": ("rtx-a4000-16gb",),
    "RTX A6000": ("rtx-a6000-48gb",),
    "RTX 2080 Ti": ("rtx-2080-ti-11gb",),
    "GTX 1080 Ti": ("gtx-1080-ti-11gb",),
    "RTX PRO 6000 Workstation": ("rtx-pro-6000-blackwell-96gb",),
    "AMD MI300X": ("mi300x-192gb",),
}


@dataclass(frozen=True, slots=True)
class Achieved:
    """flops: unit -> sustained rate [FLOP/s]. source: unit -> "measured" or "rule"."""

    flops: Mapping[str, float]
    source: Mapping[str, str]


@cache
def achieved() -> Mapping[str, Achieved]:
    """Every catalogue card. Units a card does not have are left out."""
    seen = _measured()
    cards = gpus()
    weights = _fit(cards, seen)
    return {card.id: _of(card, seen, weights) for card in cards}


def datasheet(card: Gpu, unit: str) -> float | None:
    """Dense peak of a unit; TF32 and half only where the card has them. [FLOP/s]"""
    if unit != "half":
        return card.dense_flops.get(unit)
    return card.dense_flops.get("fp16")


def _measured() -> Mapping[tuple[str, str], float]:
    """(card, unit) -> median over sources of the best shape of each. [FLOP/s]"""
    best: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    text = files(__package__).joinpath(TABLE).read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        unit, names = _DTYPES.get(row["dtype"]), _NAMES.get(row["gpu_canonical"], ())
        if unit is None or "OC" in row["notes"].split("; ") or not row["achieved_tflops"]:
            continue
        if row["dtype"] == "fp32" and re.search(r"NGC|nvcr|container", row["software"]):
            continue  # TF32 under another name
        origin = f"{row['source_repo']} {row['software']} {row['dtype']}"
        for name in names:
            if row["dtype"] == "bf16" and gpu(name).dense_flops.get("bf16") is None:
                continue  # emulated: says nothing of the units
            value = float(row["achieved_tflops"]) * 1e12
            best[name, unit][origin] = max(best[name, unit].get(origin, 0.0), value)
    return {key: median(values.values()) for key, values in best.items()}


def _of(card: Gpu, seen: Mapping[tuple[str, str], float], weights: Floats) -> Achieved:
    flops, source = {}, {}
    for unit in UNITS:
        peak = datasheet(card, unit)
        if peak is None:
            continue
        measured = seen.get((card.id, unit))
        if measured is not None and 0.3 < measured / peak < 1.15:
            flops[unit], source[unit] = measured, "measured"
        else:
            flops[unit] = peak * float(np.exp(_terms(card, unit, peak) @ weights))
            source[unit] = "rule"
    return Achieved(flops, source)


def _fit(cards: tuple[Gpu, ...], seen: Mapping[tuple[str, str], float]) -> Floats:
    rows, values = [], []
    for card in cards:
        for unit in UNITS:
            peak, measured = datasheet(card, unit), seen.get((card.id, unit))
            if peak and measured and 0.3 < measured / peak < 1.15 and card.vendor == "nvidia":
                rows.append(_terms(card, unit, peak))
                values.append(np.log(measured / peak))
    x = np.array(rows)
    # A ridge of a tenth of a row keeps terms that few cards carry near zero.
    solved: Floats = np.linalg.solve(x.T @ x + 0.1 * np.eye(x.shape[1]), x.T @ np.array(values))
    return solved


def _terms(card: Gpu, unit: str, peak: float) -> Floats:
    halved = card.fp32_accumulate_halved
    shared = unit == "fp32" and shares_fp32_lanes(card)
    power = np.log(card.tdp_watts / (peak / 1e12)) if unit != "fp32" else 0.0
    return np.array(
        [
            *(float(unit == u) for u in UNITS),
            power,
            float(shared),
            float(halved and unit != "fp32"),
        ]
    )


def shares_fp32_lanes(card: Gpu) -> bool:
    """Whether half of the fp32 lanes also do integers: compute capability 8.6, 8.9."""
    return card.compute_capability in ("8.6", "8.9")
