"""Rows of the EC2 price list for tests, and boto3 clients that answer from a list without a network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from planner.pricing.offer import Offer
from planner.pricing.sources import FetchContext, RawPage
from planner.pricing.sources.aws_price_list import AwsPriceList

NOW = datetime(2026, 9, 11, 12, tzinfo=UTC)

_ATTRIBUTES = {
    "instanceType": "m3.large",
    "regionCode": "us-east-1",
    "location": "US East (N. Virginia)",
    "locationType": "AWS Region",
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
    "licenseModel": "No License required",
    "vcpu": "2",
    "memory": "7.5 GiB",
    "storage": "1 x 32 SSD",
    "networkPerformance": "Moderate",
}


def item(sku: str, price: str, *, unit: str = "Hrs", currency: str = "USD", **changed: str) -> str:
    """One element of PriceList, with the named attributes changed; family="…" changes the product family."""
    family = changed.pop("family", "Compute Instance")
    term = f"{sku}.JRTCKXETXF"
    rate = {"unit": unit, "beginRange": "0", "endRange": "Inf", "pricePerUnit": {currency: price}}
    return json.dumps({
        "product": {"sku": sku, "productFamily": family, "attributes": {**_ATTRIBUTES, **changed}},
        "terms": {
            "OnDemand": {
                term: {
                    "effectiveDate": "2026-09-01T00:00:00Z",
                    "termAttributes": {},
                    "priceDimensions": {f"{term}.6YS6EN2CT7": rate},
                }
            }
        },
    })  # fmt: skip


def page(items: Sequence[str], ref: str = "a test") -> RawPage:
    """An answer of get_products."""
    return RawPage(json.dumps({"PriceList": list(items)}).encode(), ref=ref)


def stubbed(service: str, region: str, answers: Mapping[str, Sequence[Mapping[str, Any]]]) -> Any:
    """A real boto3 client whose methods give these answers in order; it opens no connection."""
    import boto3
    from botocore.stub import Stubber

    client = boto3.client(service, region_name=region, aws_access_key_id="test", aws_secret_access_key="test")
    stubber = Stubber(client)
    for method, responses in answers.items():
        for response in responses:
            stubber.add_response(method, dict(response))
    stubber.activate()
    return client


class Clients:
    """Stands in for `make_client`: stubbed clients by service, and a record of what was asked for.

    answers: by service, then by method; a service that is not named is not permitted.
    """

    def __init__(self, answers: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]) -> None:
        self._answers = answers
        self._made: dict[str, Any] = {}
        self.asked: list[tuple[str, str]] = []

    def __call__(self, service: str, region: str, context: FetchContext) -> Any:
        from planner.pricing.sources import SourceUnavailable

        self.asked.append((service, region))
        if service not in self._answers:
            raise SourceUnavailable(f"permission for {service}")
        return self._made.setdefault(service, stubbed(service, region, self._answers[service]))


def fetched(clients: Clients, **context: Any) -> tuple[list[RawPage], tuple[Offer, ...]]:
    """The pages of the price list, and the offers in them."""
    source = AwsPriceList(clients)
    pages = list(source.fetch(FetchContext(**context)))
    return pages, source.parse(pages, fetched_at=NOW).offers
