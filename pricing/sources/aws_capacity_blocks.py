"""Capacity blocks of EC2: a window of time on GPUs, paid for at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from ..errors import BadOffer
from ..offer import Offer
from . import Deadline, FetchContext, source
from .answers import UnreadableRow, currency_of, load_json, member, money_of, row_of, text_of, time_of
from .aws_client import NEEDS, MakeClient, make_client, pages, to_bytes
from .aws_price_list import DEFAULT_REGIONS
from .aws_shapes import REGION, TYPE, known_gpus
from .aws_spot import region_of
from .errors import SourceFailed
from .page import ParseResult, RawPage, Tally

NAME = "aws-capacity-blocks"
# Families that AWS sells in blocks. docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-how.html,
# checked 2026-12-01.
_FAMILIES = ("p4d.", "p4de.", "p5.", "p5e.", "p5en.", "p6-b200.")
# One day and one week, of one instance: what shows the price of a short and of a longer block.
_HOURS = (24, 168)
_AHEAD = timedelta(days=56)
_CENT = Decimal("0.01")


@source(NAME, provider="aws", needs=NEEDS + " (permission ec2:DescribeCapacityBlockOfferings)", default=False)
class AwsCapacityBlocks:
    """Capacity blocks on offer in the next eight weeks, as a fee for the whole window.

    Fees follow demand and hold for the asked window only, so this is asked by name. Regions: us-east-1 unless
    others are asked for.
    """

    def __init__(self, make_client: MakeClient = make_client) -> None:
        self._make_client = make_client

    def fetch(self, context: FetchContext) -> Iterator[RawPage]:
        """Offerings of one instance for a day and for a week, of each type that is sold in blocks."""
        deadline = context.deadline()
        now = context.clock()
        types = list(context.types_of(TYPE, known_gpus()))
        for region in context.regions_of(REGION, DEFAULT_REGIONS):
            client = self._make_client("ec2", region, context)
            for name in types:
                if not name.startswith(_FAMILIES):
                    continue
                for hours in _HOURS:
                    question = {
                        "InstanceType": name,
                        "InstanceCount": 1,
                        "CapacityDurationHours": hours,
                        "StartDateRange": now,
                        "EndDateRange": now + _AHEAD,
                    }
                    yield from _answers(client, region, question, deadline)

    def parse(
        self, pages: Iterable[RawPage], *, fetched_at: datetime, observed_at: datetime | None = None
    ) -> ParseResult:
        """The cheapest offering per type, zone and currency. Raises BadAnswer.

        upfront is the fee for one instance over the whole window valid_from to valid_to; amount is not known,
        because nothing is billed by the hour. `note` gives the fee per hour.
        """
        tally = Tally(NAME)
        cheapest: dict[str, tuple[Decimal, Offer]] = {}
        for page in pages:
            for row in member(load_json(page), "CapacityBlockOfferings", list, page.ref):
                tally.row()
                try:
                    found = _offer(row_of(row), page, observed_at or fetched_at, fetched_at)
                except (UnreadableRow, BadOffer) as error:
                    tally.spoilt(str(error).partition(" of ")[0], str(row))
                    continue
                if found is None:
                    tally.skip("unknown type, other tenancy or no fee")
                    continue
                known = cheapest.get(found[1].price_id)
                if known is not None:
                    tally.skip("dearer block of the same type and zone")
                if known is None or found[0] < known[0]:
                    cheapest[found[1].price_id] = found
        return tally.result([offer for _, offer in cheapest.values()])


def _answers(client: Any, region: str, question: Mapping[str, Any], deadline: Deadline) -> Iterator[RawPage]:
    what = "ec2:DescribeCapacityBlockOfferings"
    ref = f"aws ec2 describe-capacity-block-offerings {region} {question['InstanceType']}"
    try:
        for answer in pages(
            client.describe_capacity_block_offerings, what, "NextToken", deadline, **question
        ):
            yield RawPage(to_bytes(answer), ref=ref, request={"region": region})
    except SourceFailed as error:
        # The service answers a type that is not sold in blocks in this region with an error of its own.
        if not any(code in str(error) for code in ("Unsupported", "InvalidParameterValue")):
            raise


def _offer(
    row: Mapping[str, Any], page: RawPage, observed_at: datetime, fetched_at: datetime
) -> tuple[Decimal, Offer] | None:
    """The fee per instance and hour, and the offer."""
    name, zone = text_of(row, "InstanceType"), text_of(row, "AvailabilityZone")
    gpus = known_gpus().get(name)
    fee = money_of(row.get("UpfrontFee"), "UpfrontFee")
    count, hours = row.get("InstanceCount"), row.get("CapacityBlockDurationHours")
    if not isinstance(count, int) or not isinstance(hours, int) or count < 1 or hours < 1:
        raise UnreadableRow("no InstanceCount or duration")
    if gpus is None or row.get("Tenancy", "default") != "default" or not fee:
        return None
    each = fee / count
    start, end = time_of(row.get("StartDate"), "StartDate"), time_of(row.get("EndDate"), "EndDate")
    return each / hours, Offer(
        kind="cloud_instance",
        provider="aws",
        item=name,
        region=region_of(zone),
        zone=zone,
        contract="capacity_block",
        payment="all_upfront",
        os="linux",
        tenancy="shared",
        unit="instance_hour",
        amount=None,
        upfront=each if each * count == fee else each.quantize(_CENT),
        currency=currency_of(row.get("CurrencyCode")),
        tax="excluded",
        sku=text_of(row, "CapacityBlockOfferingId"),
        source=NAME,
        source_ref=page.ref,
        raw_sha256=page.sha256,
        valid_from=start,
        valid_to=end,
        observed_at=observed_at,
        fetched_at=fetched_at,
        note=f"fee for {hours} h, {(each / hours).quantize(_CENT)} an hour; paid at once, not refunded",
        **gpus.fields(),
    )
