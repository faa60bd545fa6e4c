"""Which GPU a price catalogue means: names such as "A100" hold several cards, and memories are given in any
unit, of one card or of all."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from ..offer import Form
from .answers import UnreadableRow


class CatalogGpu(NamedTuple):
    """id: ours, without a form where the catalogue does not tell it ("a100-80gb"). memory_mib: of one GPU."""

    id: str
    memory_mib: int
    form: Form


@lru_cache(maxsize=1)
def _names() -> dict[str, dict[str, str]]:
    path = Path(__file__).parent / "data" / "catalog_gpus.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def catalog_gpu(
    name: str, *, provider: str = "", instance: str = "", memory_mib: float | None = None, count: int = 1
) -> CatalogGpu | None:
    """The card that a catalogue's name means; None for one that we do not know.

    instance: the seller's own name of the machine, which often holds "sxm" or "pcie".
    memory_mib: as the catalogue gives it, in MiB, or GiB, of one card or of all. Raises UnreadableRow when
    it fits none of these: then the card was changed (a "4090" with 48 GB), or it is another one.
    """
    key = _normal(name)
    tables = _names()
    known = tables.get(provider, {}).get(instance) or tables.get(provider, {}).get(key)
    candidates = [known] if known else tables["gpus"].get(key, "").split()
    if not candidates:
        return None
    if len(candidates) > 1:
        candidates = _of_memory(candidates, memory_mib, count) or candidates
        candidates = _of_form(candidates, f"{instance} {name}") or candidates
    found = _facts(candidates[0])
    if len(candidates) > 1:
        sizes = {_facts(each).memory_mib for each in candidates}
        if len(sizes) > 1:
            raise UnreadableRow("a GPU of unknown memory")
        found = CatalogGpu(_without_form(candidates[0]), found.memory_mib, "unknown")
    if memory_mib and not _fits(found.memory_mib, memory_mib, count):
        raise UnreadableRow("a memory that this GPU does not have")
    return found


def slug(gpu: CatalogGpu) -> str:
    """The card in an item name of a seller that has no names of its own: "rtx_4090", "a100_sxm4_80gb".

    >>> slug(CatalogGpu("h100-sxm5-80gb", 81920, "sxm"))
    'h100_sxm'
    """
    for name, id in _names()["slugs"].items():
        if id == gpu.id:
            return name
    return re.sub(r"-\d+gb$", "", gpu.id).replace("-", "_")


def _facts(id: str) -> CatalogGpu:
    """Memory and form stand in our ids."""
    memory = int(id.rpartition("-")[2].removesuffix("gb")) * 1024
    parts = id.split("-")
    form: Form = (
        "sxm" if any(part.startswith("sxm") for part in parts) else "nvl" if "nvl" in parts else "pcie"
    )
    return CatalogGpu(id, memory, form)


def _of_memory(candidates: list[str], memory_mib: float | None, count: int) -> list[str]:
    if not memory_mib:
        return []
    return [each for each in candidates if _fits(_facts(each).memory_mib, memory_mib, count)]


def _of_form(candidates: list[str], text: str) -> list[str]:
    text = text.lower()
    for form in ("sxm", "nvl", "pcie"):
        if form in text:
            return [each for each in candidates if _facts(each).form == form]
    return []


def _fits(expected_mib: int, said: float, count: int) -> bool:
    """Whether a stated memory is this card's, within a tenth: catalogues round, and ECC takes some."""
    ways = (expected_mib, expected_mib / 1024, expected_mib * count, expected_mib * count / 1024)
    return any(abs(said - way) <= way / 10 for way in ways)


def _without_form(id: str) -> str:
    return "-".join(part for part in id.split("-") if not part.startswith(("sxm", "pcie", "nvl")))


def _normal(name: str) -> str:
    """One spelling of a name: upper case, single hyphens, without the maker.

    >>> _normal("NVIDIA GeForce RTX 4090")
    'RTX4090'
    """
    text = re.sub(r"\b(NVIDIA|GEFORCE|TESLA)\b", "", name.upper().replace("_", "-"))
    text = re.sub(r"[\s-]+", "-", text).strip("-")
    return re.sub(r"^RTX-(?=\d)", "RTX", text)
