"""What Google's machine types are made of, by our table and, where asked, by the Compute Engine API."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..offer import Form
from .answers import UnreadableRow, member, part_of, parts_of, row_of
from .errors import BadAnswer
from .page import Tally

# us-central1; and a2-highgpu-1g.
REGION = r"[a-z]+-[a-z]+\d+"
TYPE = r"[a-z]\d[a-z]*-[a-z]+-[a-z0-9]+"
_SSD_PARTITION_GIB = 375


@dataclass(frozen=True, slots=True)
class Shape:
    """One machine type. gpu_memory_mib: of one GPU. [MiB] ram_gib, ssd_gib: in all. [GiB]

    *_skus: the names that its parts are sold under; listed_only: not to be had on demand.
    """

    name: str
    gpu: str
    gpus: int
    gpu_memory_mib: int
    form: Form
    vcpus: int
    ram_gib: Decimal
    ssd_gib: int
    gpu_skus: tuple[str, ...]
    core_skus: tuple[str, ...]
    ram_skus: tuple[str, ...]
    listed_only: bool


@lru_cache(maxsize=1)
def known_shapes() -> Mapping[str, Shape]:
    """Machine types by name, from data/gcp_shapes.toml."""
    path = Path(__file__).parent / "data" / "gcp_shapes.toml"
    families = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        name: Shape(
            name=name,
            gpu=family["gpu"],
            gpus=shape["gpus"],
            gpu_memory_mib=family["memory_mib"],
            form=family["form"],
            vcpus=shape["vcpus"],
            ram_gib=Decimal(shape["ram_gib"]),
            ssd_gib=shape.get("ssd_gib", 0),
            gpu_skus=tuple(family["gpu_skus"]),
            core_skus=(family["core_sku"], family["commitment_core_sku"]),
            ram_skus=(family["ram_sku"], family["commitment_ram_sku"]),
            listed_only=shape.get("listed_only", False),
        )
        for family in families.values()
        for name, shape in family["shapes"].items()
    }


class MachineTypes:
    """Answers of compute.machineTypes (list of a zone, or aggregated): sizes, and where each is offered."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._regions: defaultdict[str, set[str]] = defaultdict(set)
        self._rows: dict[str, Mapping[str, Any]] = {}
        self.given = False

    def add(self, answer: Mapping[str, Any], ref: str) -> None:
        """One page, of one zone or of all. Raises BadAnswer."""
        self.given = True
        items = answer.get("items")
        try:
            if isinstance(items, Mapping):
                rows = [row for scope in items.values() for row in parts_of(row_of(scope), "machineTypes")]
            else:
                rows = [row_of(row) for row in member(answer, "items", list, ref)]
            for row in rows:
                self._add(row)
        except UnreadableRow as error:
            raise BadAnswer(f"{ref}: {error}") from None

    def _add(self, row: Mapping[str, Any]) -> None:
        name, zone = row.get("name"), row.get("zone")
        if not isinstance(name, str) or not isinstance(zone, str):
            return
        if name not in known_shapes():
            if row.get("accelerators"):
                self._tally.warn(f"{name} is offered, has GPUs and is not known here; it is left out")
            return
        # A zone comes as its name or as an address that ends in it.
        self._regions[name].add(zone.rpartition("/")[2].rpartition("-")[0])
        self._rows[name] = row

    def offered(self, name: str, region: str) -> bool:
        """Whether the type is offered there; True as well when nobody asked the API."""
        return not self.given or region in self._regions.get(name, ())

    def shapes(self) -> Mapping[str, Shape]:
        """Our shapes, with the sizes that the API gives where it gives other ones."""
        return {name: self._sized(shape) for name, shape in known_shapes().items()}

    def _sized(self, shape: Shape) -> Shape:
        row = self._rows.get(shape.name)
        if row is None:
            return shape
        accelerators = parts_of(row, "accelerators")
        gpus = _count(accelerators[0], "guestAcceleratorCount") if len(accelerators) == 1 else 0
        ssd = _count(part_of(row, "bundledLocalSsds"), "partitionCount") * _SSD_PARTITION_GIB
        memory_mib = _count(row, "memoryMb")
        sized = replace(
            shape,
            vcpus=_count(row, "guestCpus") or shape.vcpus,
            ram_gib=Decimal(memory_mib) / 1024 if memory_mib else shape.ram_gib,
            ssd_gib=ssd or shape.ssd_gib,
            gpus=gpus or shape.gpus,
        )
        if sized != shape:
            self._tally.warn(
                f"{shape.name}: the API says {sized.gpus} GPUs, {sized.vcpus} vCPUs, {sized.ram_gib} GiB and "
                f"{sized.ssd_gib} GiB of local SSD, and is believed; our table says otherwise"
            )
        return sized


def _count(row: Mapping[str, Any], name: str) -> int:
    """A number of things; 0 when the row does not say."""
    count = row.get(name)
    return count if type(count) is int and 0 <= count < 2**31 else 0
