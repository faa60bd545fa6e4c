"""Rows of Azure's Retail Prices API: what each one is a price of.

The feed lists one size under a dozen meters: Linux and Windows, pay-as-you-go, spot, low priority, DevTest,
reservations, and meters of another service. No field says which is the plain one; it is the row of type
Consumption whose names hold none of the words of the others.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..offer import Contract, Form, Payment
from .answers import UnreadableRow, money_of, parts_of, text_of, time_of

_TERMS: dict[str, tuple[Contract, int]] = {
    "1 Year": ("reserved_1y", 12),
    "3 Years": ("reserved_3y", 36),
}
_SAVINGS_TERMS: dict[str, tuple[Contract, int]] = {
    "1 Year": ("savings_plan_1y", 12),
    "3 Years": ("savings_plan_3y", 36),
}
# " Win" stands at the end of some product names for " Windows".
_WINDOWS = re.compile(r"\bWin(?:dows)?\b")
HOURS_PER_YEAR = 8760
# eastus, eastus2, francecentral; and Standard_ND96asr_v4.
REGION = r"[a-z]{5,}\d?"
TYPE = r"(?i:standard)_\w+"


@dataclass(frozen=True, slots=True)
class Size:
    """What a size holds. memory_mib: of one GPU. [MiB]"""

    name: str
    gpu: str
    gpus: int
    memory_mib: int
    form: Form

    def fields(self) -> dict[str, Any]:
        """As fields of an Offer."""
        return {
            "gpu_model": self.gpu,
            "gpu_count": self.gpus,
            "gpu_mem_mib": self.memory_mib,
            "gpu_form": self.form,
        }


@dataclass(frozen=True, slots=True)
class Price:
    """One row's price. amount: per hour; upfront: for the whole term; either may be None, not known."""

    contract: Contract
    os: str
    amount: Decimal | None = None
    upfront: Decimal | None = None
    term_months: int | None = None
    payment: Payment | None = None


@lru_cache(maxsize=1)
def feed_names() -> Mapping[str, Size]:
    """Sizes by every name under which the feed lists them, from data/azure_sizes.toml."""
    path = Path(__file__).parent / "data" / "azure_sizes.toml"
    found: dict[str, Size] = {}
    for family in tomllib.loads(path.read_text(encoding="utf-8")).values():
        for name, count in family["sizes"].items():
            found[name] = Size(name, family["gpu"], count, family["memory_mib"], family["form"])
        for alias, name in family.get("aliases", {}).items():
            found[alias] = found[name]
    return found


@lru_cache(maxsize=1)
def _by_lower_case() -> Mapping[str, Size]:
    return {name.lower(): size for name, size in feed_names().items()}


def size_of(name: object) -> Size | None:
    """The size of that name or alias in any case; None for one that is not known."""
    return _by_lower_case().get(name.lower()) if isinstance(name, str) else None


def left_out(row: Mapping[str, Any], at: datetime) -> str | None:
    """Why this row is no price of a virtual machine of ours at that time; None when it is one.

    Raises UnreadableRow.
    """
    if row.get("serviceName") != "Virtual Machines":
        return "other service"
    product, sku, meter = text_of(row, "productName"), text_of(row, "skuName"), text_of(row, "meterName")
    if "Cloud Services" in product or "CloudServices" in product:
        return "Cloud Services meter"
    if "Dedicated Host" in product:
        return "dedicated host"
    if "Low Priority" in sku or "Low Priority" in meter:
        return "low priority (for batch pools)"
    if row.get("type") == "DevTestConsumption" or "DevTest" in product:
        return "DevTest price"
    if row.get("type") not in ("Consumption", "Reservation"):
        return "other price type"
    if row.get("isPrimaryMeterRegion") is False:
        return "not the primary meter"
    if not row.get("armRegionName"):
        return "no region"
    if size_of(row.get("armSkuName")) is None:
        return "unknown size"
    start, end = row.get("effectiveStartDate"), row.get("effectiveEndDate")
    if (start and time_of(start, "effectiveStartDate") > at) or (
        end and time_of(end, "effectiveEndDate") <= at
    ):
        return "not in force at that time"
    return None


def prices(row: Mapping[str, Any]) -> tuple[Price, ...]:
    """The prices of a row that is not left out: its own, and those of savings plans listed with it.

    A Reservation's price is for the whole term, though its unit says "1 Hour". Raises UnreadableRow.
    """
    if row.get("unitOfMeasure") != "1 Hour":
        raise UnreadableRow("unit is not an hour")
    # Numbers come as 0 or as 0.0; only the first tier is what the first hour costs.
    if money_of(row.get("tierMinimumUnits", 0), "tierMinimumUnits"):
        raise UnreadableRow("tiered price")
    amount = money_of(row.get("retailPrice"), "retailPrice") or None
    system = "windows" if _WINDOWS.search(text_of(row, "productName")) else "linux"
    if row["type"] == "Reservation":
        try:
            contract, months = _TERMS[text_of(row, "reservationTerm")]
        except KeyError:
            raise UnreadableRow("unknown reservation term") from None
        return (Price(contract, system, None, amount, months, "all_upfront"),)
    if "Spot" in text_of(row, "skuName") or "Spot" in text_of(row, "meterName"):
        return (Price("spot", system, amount),)
    return (Price("on_demand", system, amount), *_savings(row, system))


def _savings(row: Mapping[str, Any], system: str) -> tuple[Price, ...]:
    """Savings-plan rates, which the preview version of the API lists inside a consumption row."""
    found = []
    for each in parts_of(row, "savingsPlan"):
        try:
            contract, months = _SAVINGS_TERMS[text_of(each, "term")]
        except KeyError:
            raise UnreadableRow("unknown savings-plan term") from None
        amount = money_of(each.get("retailPrice"), "retailPrice") or None
        found.append(Price(contract, system, amount, None, months, "none"))
    return tuple(found)


def effective_hourly(upfront: Decimal, term_months: int) -> Decimal:
    """A fee for a term spread over its hours, to four places: a view, never what is stored. [per hour]

    >>> effective_hourly(Decimal(19978), 12), effective_hourly(Decimal(30108), 36)
    (Decimal('2.2806'), Decimal('1.1457'))
    """
    return (upfront / (HOURS_PER_YEAR * term_months // 12)).quantize(Decimal("0.0001"))
