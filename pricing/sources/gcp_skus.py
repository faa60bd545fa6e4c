"""SKUs of Google's Cloud Billing catalog: which part each one prices, where, and under which contract.

What a SKU is says its description. Its usageType may say otherwise (spot SKUs of some GPUs are flagged
OnDemand), so both are read and the description holds.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from ..offer import Contract, Unit
from .answers import UnreadableRow, currency_of, part_of, parts_of, row_of, text_of, time_of
from .page import RawPage, Tally

# A vendor's month, to turn a price per month into one per hour: 8,760 h / 12.
HOURS_PER_MONTH = 730

SSD_NAMES = frozenset({"SSD backed Local Storage", "Local SSD"})
# Neither on demand, nor spot, nor a plain commitment: other tenancy, other shapes, queued or booked capacity.
_OTHER = re.compile(
    r"sole tenancy|reserved|reservation|\bdws\b|calendar mode|defined duration|flex start|custom|premium"
    r"|suspended|workstation|extended|upgrade",
    re.IGNORECASE,
)
_COMMITMENT = re.compile(
    r"Commitment(?: v\d)?: (?P<name>.+?)(?: running)? in .+ for (?P<years>[13]) Years?", re.I
)
_PREFIX = re.compile(r"^(?:Spot )?(?:Preemptible )?", re.IGNORECASE)
_SUFFIX = re.compile(
    r"(?: attached to (?:Spot )?(?:Preemptible )?VMs)?(?: running)?(?: in .+)?$", re.IGNORECASE
)
_NANO = Decimal("1e-9")


@dataclass(frozen=True, slots=True)
class Sku:
    """One part's price in some regions, and the page it stands on. amount: per `unit`, in `currency`."""

    id: str
    name: str
    contract: Contract
    regions: tuple[str, ...]
    unit: Unit
    amount: Decimal
    currency: str
    effective: datetime | None
    page: RawPage


class Skus:
    """SKUs found by part name, region and contract."""

    def __init__(self, names: frozenset[str], tally: Tally) -> None:
        self._names = names | SSD_NAMES
        self._tally = tally
        self._found: defaultdict[tuple[str, str, str], dict[str, Sku]] = defaultdict(dict)

    def add(self, row: Any, page: RawPage) -> None:
        """Take one SKU of a page, or count why not."""
        self._tally.row()
        try:
            sku = self._read(row_of(row), page)
        except UnreadableRow as error:
            self._tally.spoilt(str(error), str(row))
            return
        if sku is not None:
            for region in sku.regions:
                self._found[sku.name, region, sku.contract][sku.id] = sku

    def regions(self, names: Sequence[str], contract: str) -> set[str]:
        """Where a part of one of these names is sold under the contract."""
        return {region for name, region, term in self._found if name in names and term == contract}

    def one(self, names: Sequence[str], region: str, contract: str) -> Sku | None:
        """The SKU of a part; None when there is none, or several that differ in price (a warning says so)."""
        found = [sku for name in names for sku in self._found.get((name, region, contract), {}).values()]
        if len({(sku.amount, sku.currency, sku.unit) for sku in found}) > 1:
            ids = ", ".join(f"{sku.id} ({sku.amount})" for sku in sorted(found, key=lambda sku: sku.id))
            self._tally.warn(f"{names[0]} in {region}, {contract}: several SKUs, {ids}; none is picked")
            return None
        return found[0] if found else None

    def _read(self, row: Mapping[str, Any], page: RawPage) -> Sku | None:
        description = text_of(row, "description")
        contract, name = classify(description, str(part_of(row, "category").get("usageType", "")))
        if contract is None:
            self._tally.skip("other contract")
            return None
        if name not in self._names:
            self._tally.skip("part of another machine or service")
            return None
        unit, amount, currency, effective = _price(row)
        if not amount:
            self._tally.skip("price 0, which is no price")
            return None
        return Sku(
            id=text_of(row, "skuId"),
            name=name,
            contract=contract,
            regions=_regions(row),
            unit=unit,
            amount=amount,
            currency=currency,
            effective=effective,
            page=page,
        )


def classify(description: str, usage_type: str) -> tuple[Contract | None, str]:
    """The contract, None for what is none of ours, and the part's name without place and contract.

    >>> classify("Nvidia Tesla A100 GPU attached to Spot Preemptible VMs running in Americas", "OnDemand")
    ('spot', 'Nvidia Tesla A100 GPU')
    >>> classify("Commitment v1: A2 Cpu in Americas for 1 Year", "Commit1Yr")
    ('reserved_1y', 'A2 Cpu')
    """
    if _OTHER.search(description):
        return None, description
    committed = _COMMITMENT.fullmatch(description)
    if committed is not None:
        return ("reserved_1y" if committed["years"] == "1" else "reserved_3y"), committed["name"]
    if "commit" in description.lower() or usage_type.startswith("Commit"):
        return None, description
    name = _SUFFIX.sub("", _PREFIX.sub("", description))
    if re.search(r"\b(?:spot|preemptible)\b", description, re.IGNORECASE) or usage_type == "Preemptible":
        return "spot", name
    return ("on_demand" if usage_type == "OnDemand" else None), name


def _regions(row: Mapping[str, Any]) -> tuple[str, ...]:
    regions = row.get("serviceRegions")
    if not isinstance(regions, list) or not all(isinstance(region, str) and region for region in regions):
        raise UnreadableRow("no serviceRegions")
    return tuple(regions)


def _price(row: Mapping[str, Any]) -> tuple[Unit, Decimal, str, datetime | None]:
    """Unit, amount per hour, currency and date of the newest price; units + nanos, never through a float."""
    infos = parts_of(row, "pricingInfo")
    info = max(infos, key=lambda each: str(each.get("effectiveTime", "")), default={})
    expression = part_of(info, "pricingExpression")
    tiers = parts_of(expression, "tieredRates")
    if not tiers:
        raise UnreadableRow("no price")
    # Free tiers come first; the last tier is what the next hour costs.
    price = part_of(tiers[-1], "unitPrice")
    units, nanos = price.get("units", 0), price.get("nanos", 0)
    if type(nanos) is not int or not re.fullmatch(r"\d{1,12}", str(units)) or not 0 <= nanos < 10**9:
        raise UnreadableRow("units and nanos are no amount")
    amount = Decimal(str(units)) + nanos * _NANO
    usage_unit = expression.get("usageUnit")
    unit: Unit = "gib_hour"
    if usage_unit == "h":
        unit = "gpu_hour" if part_of(row, "category").get("resourceGroup") == "GPU" else "vcpu_hour"
    elif usage_unit == "GiBy.mo":
        amount = amount / HOURS_PER_MONTH
    elif usage_unit != "GiBy.h":
        raise UnreadableRow("unknown usage unit")
    effective = info.get("effectiveTime")
    return (
        unit,
        amount,
        currency_of(price.get("currencyCode")),
        time_of(effective, "time") if effective else None,
    )
