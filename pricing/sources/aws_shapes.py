"""What an EC2 instance type holds: the join from a price to GPUs and their memory."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from ..offer import Form
from .answers import UnreadableRow, member, part_of, parts_of, row_of, text_of
from .page import Tally

# us-east-1, us-gov-west-1; and p4d.24xlarge, p6-b200.48xlarge, u7i-12tb.224xlarge.
REGION = r"[a-z]{2}(?:-[a-z]+)+-\d+"
TYPE = r"[a-z][a-z0-9-]*\.[a-z0-9-]+"
_GIB_PER_GB = Decimal(10**9) / 2**30
_TENTH = Decimal("0.1")


@dataclass(frozen=True, slots=True)
class Gpus:
    """GPUs of one instance type. memory_mib: of one GPU. [MiB]"""

    model: str
    count: int
    memory_mib: int
    form: Form

    def fields(self) -> dict[str, Any]:
        """As fields of an Offer."""
        return {
            "gpu_model": self.model,
            "gpu_count": self.count,
            "gpu_mem_mib": self.memory_mib,
            "gpu_form": self.form,
        }


@lru_cache(maxsize=1)
def known_gpus() -> Mapping[str, Gpus]:
    """GPUs by instance type, from data/aws_gpus.toml."""
    path = Path(__file__).parent / "data" / "aws_gpus.toml"
    families = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        name: Gpus(family["gpu"], count, family["memory_mib"], family["form"])
        for family in families.values()
        for name, count in family["types"].items()
    }


def parse_instance_types(answer: object, ref: str, tally: Tally) -> dict[str, Gpus]:
    """GPUs by type as ec2.describe_instance_types tells them, where we know the model.

    The API's count and MiB per GPU hold over our table's, unless they are further off than rounding (it has
    listed totals per GPU, and whole nodes as one): then the table holds and a warning says so.
    """
    found: dict[str, Gpus] = {}
    for value in member(answer, "InstanceTypes", list, ref):
        try:
            row = row_of(value)
            name = text_of(row, "InstanceType")
            devices = parts_of(part_of(row, "GpuInfo"), "Gpus")
            memories = [part_of(device, "MemoryInfo").get("SizeInMiB") for device in devices]
        except UnreadableRow as error:
            tally.warn(f"{ref}: {error}; our table holds")
            continue
        known = known_gpus().get(name)
        if known is None or len(devices) != 1:
            continue
        count, memory_mib = devices[0].get("Count"), memories[0]
        if count != known.count or not isinstance(memory_mib, int):
            tally.warn(f"{name}: the API says {count} GPUs, {known.count} are kept")
        elif abs(memory_mib - known.memory_mib) * 10 > known.memory_mib:
            tally.warn(f"{name}: the API says {memory_mib} MiB per GPU, {known.memory_mib} are kept")
        else:
            found[name] = Gpus(known.model, known.count, memory_mib, known.form)
    return found


def host_fields(attributes: Mapping[str, str]) -> dict[str, Any]:
    """vcpu, ram_gib, local_ssd_gib, net_gbps as the price list's attributes tell them; None when they do not.

    "Up to 25 Gigabit" is a burst, not a rate to plan with, and counts as not known.
    """
    return {
        "vcpu": _number(r"(\d+)", attributes.get("vcpu")),
        "ram_gib": _number(r"([\d.,]+) GiB", attributes.get("memory")),
        "local_ssd_gib": _local_ssd_gib(attributes.get("storage")),
        "net_gbps": _number(r"(\d+) Gigabit", attributes.get("networkperformance")),
    }


def _number(pattern: str, text: str | None) -> Decimal | None:
    match = re.fullmatch(pattern, text or "")
    return Decimal(match[1].replace(",", "")) if match else None


def _local_ssd_gib(text: str | None) -> Decimal | None:
    """ "8 x 1000 SSD" (gigabytes, decimal) in GiB; "EBS only" is 0."""
    if text == "EBS only":
        return Decimal(0)
    match = re.match(r"(\d+) x (\d+)(?: GB)? (?:NVMe )?SSD", text or "")
    if match is None:
        return None
    return (int(match[1]) * int(match[2]) * _GIB_PER_GB).quantize(_TENTH)


def gpu_fields(name: str, listed: str | None, shapes: Mapping[str, Gpus]) -> dict[str, Any] | None:
    """Fields of an Offer for the GPUs of a type; None when it has GPUs that we do not know.

    listed: the price list's own count, "8"; a type without GPUs lists none or "NA".
    """
    gpus = shapes.get(name) or known_gpus().get(name)
    if gpus is not None:
        return gpus.fields()
    without = listed in (None, "", "NA", "0")
    return cast("dict[str, Any]", {"gpu_count": 0}) if without else None
