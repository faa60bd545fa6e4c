"""List prices of EC2 instances through the Price List Query API (pricing.get_products)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from . import Deadline, FetchContext, source
from .answers import UnreadableRow, load_json, member, part_of, row_of
from .aws_client import NEEDS, MakeClient, make_client, pages, to_bytes
from .aws_rows import FAMILY, Origin, Rows, product_of, terms_of
from .aws_shapes import REGION, TYPE, Gpus, known_gpus, parse_instance_types
from .errors import SourceFailed, SourceUnavailable
from .page import ParseResult, RawPage, Tally

NAME = "aws-price-list"
# The service runs in these three regions only and answers for all; boto3 makes up a host name for any
# other region that resolves to nothing. Source: boto3 1.44.8, Session.get_available_regions("pricing").
ENDPOINTS = ("us-east-1", "eu-central-1", "ap-south-1")
DEFAULT_REGIONS = ("us-east-1",)
_SYSTEMS = {"linux": "Linux", "windows": "Windows"}
_TYPES_PER_QUESTION = 50
_ROWS_PER_PAGE = 100


@source(NAME, provider="aws", needs=NEEDS + " (permission pricing:GetProducts)")
class AwsPriceList:
    """On-demand and reserved list prices of EC2, one row a type, region and operating system.

    Permissions: pricing:GetProducts; ec2:DescribeInstanceTypes as well, if given, for memory per GPU.
    Regions: us-east-1 unless others are asked for.
    """

    def __init__(self, make_client: MakeClient = make_client) -> None:
        self._make_client = make_client

    def fetch(self, context: FetchContext) -> Iterator[RawPage]:
        """Pages of get_products for the wanted types, and of describe_instance_types where allowed."""
        deadline = context.deadline()
        wanted = context.types_of(TYPE, known_gpus())
        for region in context.regions_of(REGION, DEFAULT_REGIONS):
            yield from self._shapes(region, wanted, context, deadline)
            client = self._make_client("pricing", endpoint_for(region), context)
            for system in context.operating_systems:
                for types in _batches(wanted):
                    request = {"region": region, "os": system}
                    question = {
                        "ServiceCode": "AmazonEC2",
                        "Filters": filters(region, system, types),
                        "FormatVersion": "aws_v1",
                        "MaxResults": _ROWS_PER_PAGE,
                    }
                    for answer in pages(
                        client.get_products, "pricing:GetProducts", "NextToken", deadline, **question
                    ):
                        ref = f"aws pricing get-products {region} {system}"
                        yield RawPage(to_bytes(answer), ref=ref, request=request)

    def _shapes(
        self, region: str, wanted: Iterable[str], context: FetchContext, deadline: Deadline
    ) -> Iterator[RawPage]:
        """Pages of describe_instance_types; none when that is not allowed: our table knows the GPUs too."""
        types = [name for name in wanted if name in known_gpus()]
        if not types:
            return
        try:
            client = self._make_client("ec2", region, context)
            # A filter instead of InstanceTypes: naming a type that the region lacks is an error there.
            question = {"Filters": [{"Name": "instance-type", "Values": types}]}
            what = "ec2:DescribeInstanceTypes"
            for answer in pages(client.describe_instance_types, what, "NextToken", deadline, **question):
                yield RawPage(to_bytes(answer), ref=f"aws ec2 describe-instance-types {region}")
        except (SourceUnavailable, SourceFailed):
            return

    def parse(
        self, pages: Iterable[RawPage], *, fetched_at: datetime, observed_at: datetime | None = None
    ) -> ParseResult:
        """The one row left per type, region, system and contract. Raises AmbiguousRows, BadAnswer."""
        tally = Tally(NAME)
        shapes: dict[str, Gpus] = {}
        prices = []
        for page in pages:
            answer = load_json(page)
            if isinstance(answer, Mapping) and "InstanceTypes" in answer:
                shapes |= parse_instance_types(answer, page.ref, tally)
            else:
                prices.append((page, member(answer, "PriceList", list, page.ref)))
        rows = Rows(tally, shapes)
        for page, items in prices:
            origin = Origin(NAME, page.ref, page.sha256, observed_at or fetched_at, fetched_at)
            for item in items:
                _add(rows, item, origin, tally)
        return tally.result(rows.offers())


def endpoint_for(region: str) -> str:
    """The region whose price service to ask about `region`: the nearest of the three.

    >>> endpoint_for("eu-west-1")
    'eu-central-1'
    """
    continent = region.partition("-")[0]
    if continent in ("eu", "me", "af", "il"):
        return "eu-central-1"
    return "ap-south-1" if continent == "ap" else "us-east-1"


def filters(region: str, system: str, types: Iterable[str]) -> list[dict[str, str]]:
    """The question that leaves one row a type. Without marketoption a p5 costs 0.00."""
    fixed = {
        "regionCode": region,
        "productFamily": FAMILY,
        "operatingSystem": _SYSTEMS[system],
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
        "licenseModel": "No License required",
    }
    exact = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in fixed.items()]
    return [*exact, {"Type": "ANY_OF", "Field": "instanceType", "Value": ",".join(types)}]


def _batches(types: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(types), _TYPES_PER_QUESTION):
        yield types[start : start + _TYPES_PER_QUESTION]


def _add(rows: Rows, item: object, origin: Origin, tally: Tally) -> None:
    """One element of PriceList: a text that holds JSON."""
    try:
        value = _unpacked(item)
        product = product_of(value.get("product"))
    except UnreadableRow as error:
        tally.row()
        tally.spoilt(str(error), str(item))
        return
    if not rows.keeps(product):
        return
    try:
        for term in terms_of(part_of(value, "terms")):
            rows.add(product, term, origin)
    except UnreadableRow as error:
        tally.spoilt(str(error), product.sku)


def _unpacked(item: object) -> Mapping[str, Any]:
    try:
        value = json.loads(item) if isinstance(item, str) else item
    except (ValueError, RecursionError):
        raise UnreadableRow("an item that is not JSON") from None
    return row_of(value)
