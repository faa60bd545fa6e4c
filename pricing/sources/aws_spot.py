"""Spot prices of EC2: what a type cost over a window, in each zone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal

from ..errors import BadOffer
from ..offer import Offer
from . import FetchContext, source
from .answers import UnreadableRow, load_json, member, money_of, row_of, text_of, time_of
from .aws_client import NEEDS, MakeClient, make_client, pages, to_bytes
from .aws_price_list import DEFAULT_REGIONS
from .aws_shapes import REGION, TYPE, known_gpus
from .page import ParseResult, RawPage, Tally

NAME = "aws-spot"
# The API keeps 90 days.
_MOST_DAYS = 90
_ROWS_PER_PAGE = 1000
# Product descriptions and Offer.os. The older name without "(Amazon VPC)" means the same price today.
_SYSTEMS = {"Linux/UNIX": "linux", "Linux/UNIX (Amazon VPC)": "linux",
            "Windows": "windows", "Windows (Amazon VPC)": "windows"}  # fmt: skip
# us-east-1a, and us-west-2-lax-1a of the local zone in Los Angeles.
_ZONE = re.compile(r"([a-z]{2}(?:-[a-z]+)+-\d)(-[a-z]+-\d)?[a-z]")


@dataclass(frozen=True, slots=True)
class Change:
    """From `at` on the price was `amount`. [USD/h]"""

    at: datetime
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Window:
    """A spot price over a window: extremes, time-weighted mean, and the price at its end."""

    low: Decimal
    mean: Decimal
    high: Decimal
    last: Decimal
    start: datetime
    changes: int


@dataclass(frozen=True, slots=True)
class _Series:
    """Changes of one type and system in one zone, and the page that brought the last of them."""

    changes: list[Change]
    page: RawPage


def over_window(changes: Iterable[Change], start: datetime, end: datetime) -> Window | None:
    """What the price was between start and end; None when no change is known by then.

    A price holds until the next change, so the last change before `start` gives the price at `start`. Where
    there is none, the window begins with the first change. The mean weights each price by the time it held.
    """
    known = sorted({(change.at, change.amount) for change in changes if change.at <= end})
    if not known:
        return None
    earlier = [at for at, _ in known if at <= start]
    begins = start if earlier else known[0][0]
    first = max(earlier, default=known[0][0])
    held = [(at, amount) for at, amount in known if at >= first]
    starts = [max(at, begins) for at, _ in held]
    amounts = [amount for _, amount in held]
    seconds = [_seconds(after - at) for at, after in zip(starts, [*starts[1:], end], strict=True)]
    total = sum(seconds, Decimal(0))
    mean = amounts[-1]
    if total:
        mean = sum((amount * part for amount, part in zip(amounts, seconds, strict=True)), Decimal(0)) / total
    # Prices come with six places; a mean rounded to as many stays within its extremes.
    finest = min((Decimal(1).scaleb(int(amount.as_tuple().exponent)) for amount in amounts), key=abs)
    mean = mean.quantize(finest, ROUND_HALF_EVEN)
    return Window(min(amounts), mean, max(amounts), amounts[-1], begins, len(amounts))


def region_of(zone: str) -> str:
    """The region of an availability zone; a local zone belongs to its parent. Raises UnreadableRow.

    >>> region_of("us-west-2-lax-1a")
    'us-west-2'
    """
    place = _ZONE.fullmatch(zone)
    if place is None:
        raise UnreadableRow("unknown zone")
    return place[1]


@source(NAME, provider="aws", needs=NEEDS + " (permission ec2:DescribeSpotPriceHistory)")
class AwsSpot:
    """Spot prices of EC2 per zone: minimum, time-weighted mean and maximum over the window.

    Regions: us-east-1 unless others are asked for. Window: context.days, at most 90.
    """

    def __init__(self, make_client: MakeClient = make_client) -> None:
        self._make_client = make_client

    def fetch(self, context: FetchContext) -> Iterator[RawPage]:
        """Every change in the window, and the last one before it."""
        deadline = context.deadline()
        end = context.clock()
        start = end - timedelta(days=min(context.days, _MOST_DAYS))
        products = [name for name, system in _SYSTEMS.items() if system in context.operating_systems]
        types = list(context.types_of(TYPE, known_gpus()))
        for region in context.regions_of(REGION, DEFAULT_REGIONS):
            client = self._make_client("ec2", region, context)
            question = {
                # A filter: in InstanceTypes, a type that the region lacks is an error.
                "Filters": [{"Name": "instance-type", "Values": types}],
                "ProductDescriptions": products,
                "StartTime": start,
                "EndTime": end,
                "MaxResults": _ROWS_PER_PAGE,
            }
            request = {"region": region, "start": start.isoformat(), "end": end.isoformat()}
            what = "ec2:DescribeSpotPriceHistory"
            for answer in pages(client.describe_spot_price_history, what, "NextToken", deadline, **question):
                ref = f"aws ec2 describe-spot-price-history {region}"
                yield RawPage(to_bytes(answer), ref=ref, request=request)

    def parse(
        self, pages: Iterable[RawPage], *, fetched_at: datetime, observed_at: datetime | None = None
    ) -> ParseResult:
        """One offer per type, system and zone.

        The window ends at observed_at, else where the question ended, else at fetched_at; it begins where the
        question began, else with the first change. Raises BadAnswer.
        """
        tally = Tally(NAME)
        series: dict[tuple[str, str, str], _Series] = {}
        starts, ends = [], []
        for page in pages:
            if "start" in page.request:
                starts.append(time_of(page.request["start"], "start"))
            if "end" in page.request:
                ends.append(time_of(page.request["end"], "end"))
            _collect(series, page, tally)
        end = observed_at or max(ends, default=fetched_at)
        offers = []
        for key, each in series.items():
            first = min(change.at for change in each.changes)
            window = over_window(each.changes, min(starts, default=first), end)
            offer = None if window is None else _offer(key, window, each.page, end, fetched_at, tally)
            if offer is not None:
                offers.append(offer)
        return tally.result(offers)


def _collect(series: dict[tuple[str, str, str], _Series], page: RawPage, tally: Tally) -> None:
    for value in member(load_json(page), "SpotPriceHistory", list, page.ref):
        tally.row()
        try:
            row = row_of(value)
            system = _SYSTEMS.get(text_of(row, "ProductDescription"))
            if system is None:
                tally.skip("other operating system")
                continue
            key = (text_of(row, "InstanceType"), system, text_of(row, "AvailabilityZone"))
            amount = money_of(row.get("SpotPrice"), "SpotPrice")
            change = Change(time_of(row.get("Timestamp"), "Timestamp"), amount)
        except UnreadableRow as error:
            tally.spoilt(str(error), str(value))
            continue
        if not amount:
            tally.skip("price 0, which is no price")
            continue
        found = series.setdefault(key, _Series([], page))
        found.changes.append(change)


def _offer(
    key: tuple[str, str, str],
    window: Window,
    page: RawPage,
    end: datetime,
    fetched_at: datetime,
    tally: Tally,
) -> Offer | None:
    name, system, zone = key
    # The history says nothing on GPUs, so a type that our table lacks may have any.
    gpus = known_gpus().get(name)
    if gpus is None:
        tally.skip("unknown type", window.changes)
        return None
    days = (end - window.start) / timedelta(days=1)
    try:
        return Offer(
            kind="cloud_instance",
            provider="aws",
            item=name,
            region=region_of(zone),
            zone=zone,
            contract="spot",
            os=system,
            tenancy="shared",
            unit="instance_hour",
            amount_low=window.low,
            amount=window.mean,
            amount_high=window.high,
            currency="USD",
            tax="excluded",
            source=NAME,
            source_ref=page.ref,
            raw_sha256=page.sha256,
            valid_from=window.start,
            observed_at=end,
            fetched_at=fetched_at,
            sample_n=window.changes,
            note=f"time-weighted mean of {days:.1f} days; {window.last} at the end",
            **gpus.fields(),
        )
    except (UnreadableRow, BadOffer) as error:
        tally.spoilt("unknown zone or not an offer", f"{zone}: {error}")
        return None


def _seconds(span: timedelta) -> Decimal:
    return Decimal(span // timedelta(microseconds=1)) / 1_000_000
