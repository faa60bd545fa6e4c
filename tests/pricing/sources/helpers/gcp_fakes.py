"""SKUs and machine types as Google answers them, for tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from planner.pricing.offer import Offer
from planner.pricing.sources import ParseResult, RawPage

NOW = datetime(2026, 9, 11, 12, tzinfo=UTC)
AMERICAS = ("us-central1", "us-east1", "us-west1")


def sku(
    description: str,
    price: str,
    *,
    unit: str = "h",
    usage: str = "OnDemand",
    group: str = "CPU",
    regions: Sequence[str] = AMERICAS,
    currency: str = "USD",
    sku_id: str | None = None,
) -> dict[str, Any]:
    """One SKU; its id is made from its description unless one is given."""
    amount = Decimal(price)
    units = int(amount)
    tier = {
        "startUsageAmount": 0,
        "unitPrice": {
            "currencyCode": currency,
            "units": str(units),
            "nanos": int((amount - units) * 10**9),
        },
    }
    return {
        "skuId": sku_id or description.replace(" ", "-"),
        "description": description,
        "category": {"resourceFamily": "Compute", "resourceGroup": group, "usageType": usage},
        "serviceRegions": list(regions),
        "pricingInfo": [
            {
                "effectiveTime": "2026-08-01T00:00:00Z",
                "pricingExpression": {"usageUnit": unit, "tieredRates": [tier]},
            }
        ],
    }


CORE = sku("A2 Instance Core running in Americas", "0.031611")
RAM = sku("A2 Instance Ram running in Americas", "0.004237", unit="GiBy.h", group="RAM")
A100 = sku("Nvidia Tesla A100 GPU running in Americas", "2.933908", group="GPU")
A100_80 = sku("Nvidia Tesla A100 80GB GPU running in Americas", "3.92808", group="GPU")
SSD = sku("SSD backed Local Storage", "0.08", unit="GiBy.mo", group="LocalSSD")


def skus(*rows: dict[str, Any], **request: str) -> RawPage:
    """One page of the catalog."""
    return RawPage(json.dumps({"skus": rows}).encode(), ref="a catalog", request=request)


def machine(name: str, zone: str = "us-central1-a", **fields: Any) -> dict[str, Any]:
    """One machine type."""
    return {"name": name, "zone": zone, **fields}


def machines(*rows: dict[str, Any]) -> RawPage:
    """machineTypes of one zone."""
    return RawPage(json.dumps({"items": rows}).encode(), ref="machine types")


def one(result: ParseResult, item: str, region: str = "us-central1", contract: str = "on_demand") -> Offer:
    """The one offer of that machine there."""
    found = [o for o in result.offers if (o.item, o.region, o.contract) == (item, region, contract)]
    assert len(found) == 1, found
    return found[0]
