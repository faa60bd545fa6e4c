"""Rows of throughput.csv, read into what ran: model, recipe, card, count, link, software year.

A row that cannot be read that far is kept with the reason. The measured column is carried, never looked at.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import UnknownName
from ..hardware.catalogue import gpu as find_gpu
from .recipes import Recipe, RecipeUnknown, recipe_of, tokens_per_sample

# The families of --leave-out family: pattern of the model's name -> family.
FAMILIES: tuple[tuple[str, str], ...] = (
    (r"bert", "bert"),
    (r"(wide-)?resne(x)?t|ssd300", "resnet-like"),
    (r"vgg|densenet|squeezenet|mobilenet|mnasnet|shufflenet", "other-cnn"),
    (r"gpt|mpt|opt", "gpt-like"),
    (r"qwen", "qwen"),
    (r"t5", "t5"),
    (r"gnmt|transformer", "seq2seq"),
    (r"stablelm", "stablelm"),
)

# Half of the T5 rows' issue is about "an A100"; which one is not stated. Ours: the 40 GB PCIe card.
UNSTATED_CARDS: Mapping[str, str] = {"A100 (memory/form factor not stated)": "a100-pcie-40gb"}


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the file. `reason` says why it is not covered; then only index, gpu and model are meant.

    throughput: as measured, in its own unit; None where the column is absent or empty.
    samples_per_unit: throughput in samples/s = throughput x this.
    """

    index: int
    model: str
    family: str
    gpu_label: str
    gpu: str
    precision: str
    gpu_count: int
    throughput: float | None
    host: str
    source: str
    year: float
    recipe: Recipe | None
    batch: float
    accumulation: int
    samples_per_unit: float
    node_count: int
    link: str
    network: str
    strategy: str
    reason: str

    @property
    def covered(self) -> bool:
        return not self.reason


def read(path: Path) -> list[Row]:
    """All rows of the file in order, covered or not. Raises OSError, and KeyError for a missing column."""
    with path.open(newline="", encoding="utf-8") as lines:
        return [parse(index, raw) for index, raw in enumerate(csv.DictReader(lines))]


def parse(index: int, raw: Mapping[str, str]) -> Row:
    """One raw row; never raises for odd values, they become the reason."""
    try:
        return _parse(index, raw)
    except RecipeUnknown as unknown:
        return _uncovered(index, raw, str(unknown))
    except UnknownName:
        return _uncovered(index, raw, f'no card "{raw.get("gpu", "")}" in the catalogue')
    except ValueError:
        return _uncovered(index, raw, "a number does not read")


def _parse(index: int, raw: Mapping[str, str]) -> Row:
    notes = raw.get("notes") or ""
    for mark in ("SUSPECT", "COARSE"):
        if mark in notes:
            raise RecipeUnknown(f"marked {mark} by the table")
    label = raw["gpu"]
    card = find_gpu(UNSTATED_CARDS.get(label, label))
    count = int(raw["n_gpus"])
    recipe = recipe_of(raw)
    node_count = _nodes(raw.get("interconnect") or "", notes, count)
    return Row(
        index=index,
        model=raw["model"],
        family=family_of(raw["model"]),
        gpu_label=label,
        gpu=card.id,
        precision=recipe.precision,
        gpu_count=count,
        throughput=_number(raw.get("throughput") or ""),
        host=_host(raw, notes),
        source=raw["source_repo"],
        year=software_year(raw, notes),
        recipe=recipe,
        batch=recipe.batch,
        accumulation=recipe.accumulation,
        samples_per_unit=1.0 / tokens_per_sample(raw, recipe),
        node_count=node_count,
        link=_link(raw.get("interconnect") or "", card.id, count // node_count),
        network=_network(raw.get("interconnect") or "") if node_count > 1 else "none",
        strategy=_strategy(raw, notes),
        reason="",
    )


def _uncovered(index: int, raw: Mapping[str, str], reason: str) -> Row:
    label = raw.get("gpu") or ""
    model = raw.get("model") or ""
    notes = raw.get("notes") or ""
    return Row(
        index=index,
        model=model,
        family=family_of(model),
        gpu_label=label,
        gpu="",
        precision=raw.get("precision") or "",
        gpu_count=0,
        throughput=None,
        host=_host(raw, notes),
        source=raw.get("source_repo") or "",
        year=0.0,
        recipe=None,
        batch=0.0,
        accumulation=1,
        samples_per_unit=1.0,
        node_count=1,
        link="none",
        network="none",
        strategy="ddp",
        reason=reason,
    )


def family_of(model: str) -> str:
    """The family a model is left out with; its own name where it is in no list."""
    for pattern, family in FAMILIES:
        if re.match(pattern, model):
            return family
    return model


# pytorch= in the notes -> when that build was made.
_TORCH_YEARS: Mapping[str, float] = {
    "1.4": 2020.1,
    "1.7": 2020.8,
    "1.9": 2021.6,
    "1.10": 2022.0,
    "1.13": 2022.7,
    "2.1": 2023.7,
    "2.3": 2024.2,
    "2.5": 2024.8,
    "2.8": 2025.5,
}
# Sources that state no version: by the date of what they published.
_SOURCE_YEARS: tuple[tuple[str, str, float], ...] = (
    ("NVIDIA/DeepLearningExamples", "older software stack", 2020.5),
    ("NVIDIA/DeepLearningExamples", "", 2021.9),
    ("ryujaehun/pytorch-gpu-benchmark", "mean of 20 timed steps", 2018.5),
    ("ryujaehun/pytorch-gpu-benchmark", "", 2020.6),
    ("mosaicml/llm-foundry", "A100", 2023.5),
    ("mosaicml/llm-foundry", "", 2024.0),
    ("QwenLM/Qwen", "", 2023.8),
    ("sitar-lab/NeuSight", "", 2023.9),
    ("mlcommons/training_results_v1.1", "", 2021.9),
    ("mlcommons/training_results_v2.1", "", 2022.8),
    ("mlcommons/training_results_v4.0", "", 2024.4),
    ("huggingface/transformers", "", 2021.9),
    ("Lightning-AI/litgpt", "", 2023.4),
    ("karpathy/nanoGPT", "", 2023.1),
    ("mli/transformers-benchmarks", "", 2022.8),
    ("aliyun/SimAI", "", 2024.5),
)
_ANY_YEAR = 2022.0


def software_year(raw: Mapping[str, str], notes: str) -> float:
    """When the software of a row was built. [year]"""
    stated = re.search(r"pytorch=(\d+\.\d+)", notes)
    if stated and stated[1] in _TORCH_YEARS:
        return _TORCH_YEARS[stated[1]]
    if raw.get("source_repo") == "NVIDIA/DeepLearningExamples" and raw.get("model") == "ssd300-resnet50":
        return _TORCH_YEARS["1.13"]  # its README: container 22.10
    for source, mark, year in _SOURCE_YEARS:
        if raw.get("source_repo") == source and mark in notes:
            return year
    return _ANY_YEAR


def _host(raw: Mapping[str, str], notes: str) -> str:
    """The host type: `system=` without its GPU count; else the source and the card."""
    stated = re.search(r"system=([^;]+)", notes)
    if stated:
        return re.sub(r"(?<![0-9A-Za-z])\d+x|(?<=_)\d+x", "", stated[1].strip())
    return f"{raw.get('source_repo')} {raw.get('gpu')}"


def _nodes(interconnect: str, notes: str, count: int) -> int:
    stated = re.search(r"\((\d+) nodes", interconnect)
    if stated:
        return min(int(stated[1]), count)
    return max(1, count // 8) if count > 8 and "DGX-2" not in interconnect else 1


def _link(interconnect: str, card: str, per_node: int) -> str:
    """The link class inside a node."""
    if per_node == 1:
        return "none"
    if "bridge" in interconnect and "not stated" not in interconnect:
        return "nvlink-bridge"
    if "NVLink" in interconnect and "no NVLink" not in interconnect and "PCIe" not in interconnect:
        return _nvlink(interconnect, card)
    return _pcie(card)


def _nvlink(interconnect: str, card: str) -> str:
    for start, link in (("b200", "nvswitch-b200"), ("h100", "nvswitch-h100"), ("a100", "nvswitch-a100")):
        if card.startswith(start):
            return link
    return "nvswitch-v100" if "DGX-2" in interconnect else "nvlink-v100"


def _pcie(card: str) -> str:
    if card.startswith("h100"):
        return "pcie5"
    if card.startswith("a100"):
        return "pcie4-a100"
    if re.match(r"rtx-(30|40)", card):
        return "pcie4-no-p2p"
    if re.match(r"rtx-a|a40|a30|a10|l4", card):
        return "pcie4"
    return "pcie3"


def _network(interconnect: str) -> str:
    return "ethernet" if "not stated" in interconnect else "efa-fast"


def _strategy(raw: Mapping[str, str], notes: str) -> str:
    if "sharding=FULL_SHARD" in notes:
        return "fsdp"
    if "sharding=SHARD_GRAD_OP" in notes:
        return "zero2"
    if raw["source_repo"] == "QwenLM/Qwen":
        # Its README: ZeRO-3 for all parameters and for 72B, ZeRO-2 for adapters.
        return "zero3" if "zero3" in raw["model"] or "full-parameter" in raw["model"] else "zero2"
    return "ddp"


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < float("inf") else None


def scored(rows: Iterable[Row]) -> list[Row]:
    """Covered rows with a measured value."""
    return [row for row in rows if row.covered and row.throughput is not None]
