"""planner.pricing.sources.aws_spot: a mean over time, per zone; traps T7, T8."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from aws_fakes import Clients
from hypothesis import given
from hypothesis import strategies as st

from planner.pricing import checks
from planner.pricing.sources import BadAnswer, FetchContext, RawPage, SourceUnavailable, TooManyBadRows
from planner.pricing.sources.aws_spot import AwsSpot, Change, over_window, region_of

START = datetime(2026, 9, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
END = START + 10 * HOUR
FILES = {
    "spot_price_history_2020_us-east-1_p3.2xlarge.json": (874, "bcdf"),
    "spot_price_history_2020_us-west-2_p3.16xlarge.json": (664, "abc"),
    "spot_price_history_2020_us-east-2_p3.8xlarge.json": (228, "abc"),
}


def change(hours: float, amount: str) -> Change:
    return Change(START + hours * HOUR, Decimal(amount))


def history(*rows: dict[str, str], **request: str) -> RawPage:
    plain = {
        "AvailabilityZone": "us-east-1a",
        "InstanceType": "p4d.24xlarge",
        "ProductDescription": "Linux/UNIX",
        "SpotPrice": "10.000000",
        "Timestamp": START.isoformat(),
    }
    answer = {"SpotPriceHistory": [{**plain, **row} for row in rows], "NextToken": ""}
    return RawPage(json.dumps(answer).encode(), ref="a test", request=request)


# --- the window


def test_a_price_is_weighted_by_the_time_it_held() -> None:
    window = over_window([change(0, "10.000000"), change(4, "20.000000"), change(9, "60.000000")], START, END)
    assert window is not None
    assert (window.low, window.mean, window.high) == (Decimal(10), Decimal("20.000000"), Decimal(60))
    assert window.last == Decimal(60)


def test_the_last_change_before_the_window_gives_the_price_at_its_start() -> None:
    window = over_window([change(-50, "99"), change(-2, "10"), change(5, "30")], START, END)
    assert window is not None
    assert (window.low, window.mean, window.high, window.start) == (10, 20, 30, START)
    assert window.changes == 2


def test_without_an_earlier_change_the_window_begins_with_the_first() -> None:
    window = over_window([change(5, "10")], START, END)
    assert window is not None
    assert (window.mean, window.start) == (10, START + 5 * HOUR)


def test_start_equal_to_end_gives_the_price_of_that_moment() -> None:
    window = over_window([change(-3, "10"), change(2, "30")], START, START)
    assert window is not None
    assert (window.low, window.mean, window.high) == (10, 10, 10)


def test_what_happens_after_the_window_does_not_count() -> None:
    assert over_window([change(11, "10")], START, END) is None


@given(st.lists(st.tuples(st.integers(-100, 100), st.integers(1, 10**7)), min_size=1, max_size=20))
def test_the_mean_lies_within_the_extremes_and_order_does_not_matter(rows: list[tuple[int, int]]) -> None:
    changes = [change(hours, str(Decimal(micro).scaleb(-6))) for hours, micro in rows]
    window = over_window(changes, START, END)
    assert over_window(reversed(changes), START, END) == window
    if window is not None:
        assert window.low <= window.mean <= window.high


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=9, unique_by=lambda r: r[0]
    )
)
def test_the_mean_is_that_of_the_price_of_each_hour(rows: list[tuple[int, int]]) -> None:
    changes = [change(-1, "5.000000"), *(change(hours, f"{price}.000000") for hours, price in rows)]
    by_hour = dict(rows)
    price, hourly = 5, []
    for hour in range(10):
        price = by_hour.get(hour, price)
        hourly.append(price)
    window = over_window(changes, START, END)
    assert window is not None
    assert window.mean == Decimal(sum(hourly)) / 10


# --- recorded histories


@pytest.mark.parametrize("name", FILES)
def test_every_row_of_a_recorded_history_is_read(name: str, recorded: Path) -> None:
    answer = json.loads((recorded / "aws" / name).read_text())
    number, zones = FILES[name]
    region = name.split("_")[4]
    source = AwsSpot(Clients({"ec2": {"describe_spot_price_history": [answer]}}))
    end = datetime(2020, 2, 21, tzinfo=UTC)
    context = FetchContext(regions=(region,), days=60, clock=lambda: end)
    result = source.parse(source.fetch(context), fetched_at=end)
    assert result.rows == number
    assert result.bad == {}
    assert result.skipped == {}
    assert {offer.zone for offer in result.offers} == {region + letter for letter in zones}
    assert checks.verify(result.offers) == ()
    for offer in result.offers:
        assert (offer.contract, offer.currency, offer.os) == ("spot", "USD", "linux")
        assert offer.amount_low is not None
        assert offer.amount is not None
        assert offer.amount_high is not None
        assert offer.amount_low <= offer.amount <= offer.amount_high


def test_t7_zones_stay_apart_and_minimum_mean_and_maximum_are_told_apart(recorded: Path) -> None:
    name = "spot_price_history_2020_us-east-2_p3.8xlarge.json"
    page = RawPage((recorded / "aws" / name).read_bytes(), ref=name)
    offers = AwsSpot().parse([page], fetched_at=datetime(2020, 2, 21, tzinfo=UTC)).offers
    by_zone = {offer.zone: offer for offer in offers}
    # The zone c reached the on-demand price of 12.24 while a and b stayed at 3.672.
    assert by_zone["us-east-2c"].amount_high == Decimal("12.24")
    assert by_zone["us-east-2c"].note is not None
    assert by_zone["us-east-2c"].note.endswith("12.240000 at the end")
    assert by_zone["us-east-2a"].amount_high == by_zone["us-east-2a"].amount_low == Decimal("3.672")
    assert len({offer.price_id for offer in offers}) == len(offers) == 3


# --- rows


def test_the_older_product_name_and_the_newer_mean_one_price() -> None:
    page = history({}, {"ProductDescription": "Linux/UNIX (Amazon VPC)"})
    assert len(AwsSpot().parse([page], fetched_at=END).offers) == 1


def test_windows_is_another_price_and_other_systems_are_counted() -> None:
    page = history(
        {}, {"ProductDescription": "Windows", "SpotPrice": "14"}, {"ProductDescription": "SUSE Linux"}
    )
    result = AwsSpot().parse([page], fetched_at=END)
    assert {(offer.os, offer.amount) for offer in result.offers} == {("linux", 10), ("windows", 14)}
    assert result.skipped == {"other operating system": 1}


def test_t8_a_spot_price_stands_without_an_on_demand_row() -> None:
    (offer,) = AwsSpot().parse([history({"InstanceType": "p3.2xlarge"})], fetched_at=END).offers
    assert (offer.item, offer.contract) == ("p3.2xlarge", "spot")


def test_a_local_zone_keeps_its_name_beside_its_region() -> None:
    (offer,) = AwsSpot().parse([history({"AvailabilityZone": "us-west-2-lax-1a"})], fetched_at=END).offers
    assert (offer.region, offer.zone) == ("us-west-2", "us-west-2-lax-1a")


@pytest.mark.parametrize(
    ("zone", "region"),
    [
        ("us-gov-west-1b", "us-gov-west-1"),
        ("ap-southeast-2c", "ap-southeast-2"),
        ("us-iso-east-1a", "us-iso-east-1"),
    ],
)
def test_the_region_of_a_zone(zone: str, region: str) -> None:
    assert region_of(zone) == region


def test_a_price_of_zero_and_an_unknown_type_are_counted_and_left_out() -> None:
    page = history({"SpotPrice": "0.000000"}, {"InstanceType": "p9.48xlarge"})
    result = AwsSpot().parse([page], fetched_at=END)
    assert result.offers == ()
    assert result.skipped == {"price 0, which is no price": 1, "unknown type": 1}


@pytest.mark.parametrize(
    "row",
    [
        {"SpotPrice": "free"},
        {"Timestamp": "now"},
        {"Timestamp": "2026-09-01T00:00:00"},
        {"AvailabilityZone": ""},
    ],
)
def test_rows_that_do_not_read_refuse_the_answer_when_they_are_many(row: dict[str, str]) -> None:
    with pytest.raises(TooManyBadRows, match="1 of 1"):
        AwsSpot().parse([history(row)], fetched_at=END)


# --- fetching


def test_a_full_page_of_a_thousand_rows_is_followed_by_the_next() -> None:
    def rows(zone: str, number: int) -> Iterable[dict[str, Any]]:
        for n in range(number):
            yield {
                "AvailabilityZone": zone,
                "InstanceType": "p4d.24xlarge",
                "ProductDescription": "Linux/UNIX",
                "SpotPrice": "10.0",
                "Timestamp": START + n * timedelta(seconds=1),
            }

    answers = [
        {"SpotPriceHistory": list(rows("us-east-1a", 1000)), "NextToken": "more"},
        {"SpotPriceHistory": list(rows("us-east-1b", 3)), "NextToken": ""},
    ]
    source = AwsSpot(Clients({"ec2": {"describe_spot_price_history": answers}}))
    result = source.parse(source.fetch(FetchContext(clock=lambda: END)), fetched_at=END)
    assert result.rows == 1003
    assert {offer.zone for offer in result.offers} == {"us-east-1a", "us-east-1b"}


def test_c39_a_repeated_token_stops_the_history() -> None:
    same = {"SpotPriceHistory": [], "NextToken": "again"}
    source = AwsSpot(Clients({"ec2": {"describe_spot_price_history": [same] * 5}}))
    with pytest.raises(BadAnswer, match="page token"):
        list(source.fetch(FetchContext(clock=lambda: END)))


def test_a_region_is_asked_at_its_own_endpoint() -> None:
    clients = Clients({"ec2": {"describe_spot_price_history": [{"SpotPriceHistory": []}]}})
    list(AwsSpot(clients).fetch(FetchContext(regions=("eu-west-1",), clock=lambda: END)))
    assert clients.asked == [("ec2", "eu-west-1")]


def test_without_credentials_the_source_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(SourceUnavailable, match="AWS credentials"):
        next(AwsSpot().fetch(FetchContext()))
