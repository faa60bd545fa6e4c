"""planner.pricing.offer: what an offer refuses, and what it keeps exactly."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from priced import JUNE, offer, offers

from planner.pricing.errors import BadOffer
from planner.pricing.offer import FIELDS, KEY_FIELDS, Component, Offer, format_time, parse_time


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("amount", Decimal(0), "amount 0 of p4d.24xlarge (aws us-east-1 on_demand): zero is not a price"),
        ("amount", Decimal("-1"), "amount -1 of"),
        ("amount", Decimal("NaN"), "amount NaN of"),
        ("amount", Decimal("Infinity"), "amount Infinity of"),
        ("amount", 21.96, "a float has already lost digits"),
        ("amount", Decimal("1e30"), "no plausible size"),
        ("upfront", Decimal(0), "zero is not a price"),
        ("unit", "month", "unit 'month' of"),
        ("contract", "on-demand", "contract 'on-demand' of"),
        ("kind", "gpu", "one of cloud_component, cloud_instance,"),
        ("currency", "dollars", "ISO 4217"),
        ("currency", "usd", "ISO 4217"),
        ("observed_at", datetime(2025, 6, 1), "timezone UTC"),  # noqa: DTZ001
        ("observed_at", datetime(2025, 6, 1, tzinfo=timezone(timedelta(hours=2))), "timezone UTC"),
        ("observed_at", None, "without a date"),
        ("source", "", "source '' of"),
        ("region", " us-east-1", "without spaces around it"),
        ("note", "two\nlines", "one line of text"),
        ("gpu_count", -1, "gpu_count -1 of"),
        ("gpu_count", 8.0, "gpu_count 8.0 of"),
        ("amount_low", Decimal(30), "outside 30 to None"),
        ("quality", "suspect", 'quality "suspect" needs a reason'),
        ("components", [], "a tuple of Component"),
    ],
)
def test_a_bad_field_is_refused_by_name_and_value(field: str, value: Any, said: str) -> None:
    with pytest.raises(BadOffer) as refused:
        offer(**{field: value})
    assert said in str(refused.value)


def test_an_unknown_amount_is_none_and_has_no_price_per_gpu() -> None:
    assert offer(amount=None).amount_per_gpu is None


def test_c07_the_price_of_a_gpu_is_the_instances_by_its_gpus() -> None:
    """C07: 21.96/h for 8 GPUs is 2.745 each; three hours of all of them are 65.88, not 527.04 or 8.235."""
    eight = offer()
    assert eight.amount_per_gpu == Decimal("2.745")
    assert eight.amount is not None
    assert eight.amount * 3 == Decimal("65.88")
    assert offer(unit="gpu_hour", amount=Decimal(4)).amount_per_gpu == Decimal(4)
    assert offer(unit="gpu_hour", amount=Decimal(4), gpu_count=None).amount_per_gpu is None


def test_c09_an_age_is_counted_from_what_the_source_said() -> None:
    """C09: observed 45 days before the clock."""
    now = JUNE + timedelta(days=45, hours=3)
    assert offer(fetched_at=now).age(now).days == 45
    assert offer().age(JUNE - timedelta(days=1)) == timedelta(0)
    with pytest.raises(BadOffer, match="without a timezone"):
        offer().age(datetime(2025, 6, 1))  # noqa: DTZ001


def test_c05_an_empty_cell_is_unknown_and_a_zero_is_refused() -> None:
    """C05: empty is not 0, in files too."""
    row = dict.fromkeys(FIELDS, "") | {
        "kind": "cloud_instance",
        "provider": "aws",
        "item": "g5.12xlarge",
        "region": "us-west-1",
        "contract": "on_demand",
        "unit": "instance_hour",
        "currency": "USD",
        "observed_at": "2025-06-01",
        "source": "test",
    }
    assert Offer.from_row(row).amount is None
    with pytest.raises(BadOffer, match="zero is not a price"):
        Offer.from_row(row | {"amount": "0.0000000000"})


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
def test_c02_a_row_at_zero_is_no_offer_in_any_order(order: tuple[int, ...]) -> None:
    """C02: Used 21.96, UnusedCapacityReservation 21.96, AllocatedCapacityReservation 0.0000000000."""
    products = ["21.9600000000", "21.9600000000", "0.0000000000"]
    made: set[Offer] = set()
    refused = 0
    for number in order:
        try:
            made.add(offer(amount=Decimal(products[number])))
        except BadOffer:
            refused += 1
    assert refused == 1
    assert {one.amount for one in made} == {Decimal("21.96")}
    assert len({one.price_id for one in made}) == 1


@pytest.mark.parametrize("text", ["2000+", "1,599", "8000-15000", "Call for price", "0x10"])
def test_what_is_not_a_number_is_refused(text: str) -> None:
    with pytest.raises(BadOffer, match="is not a number"):
        Offer.from_row({"amount": text})


def test_a_row_needs_the_fields_that_make_a_price() -> None:
    with pytest.raises(BadOffer, match="kind is missing"):
        Offer.from_row({"amount": "1"})
    with pytest.raises(BadOffer, match='no field "price"'):
        Offer.from_row({"price": "1"})


def test_a_date_is_its_first_instant_and_other_zones_become_utc() -> None:
    assert parse_time("observed_at", "2026-09-10") == datetime(2026, 9, 10, tzinfo=UTC)
    assert parse_time("observed_at", "2026-05-05T10:39:28+02:00") == datetime(
        2026, 5, 5, 8, 39, 28, tzinfo=UTC
    )
    with pytest.raises(BadOffer, match="add Z"):
        parse_time("observed_at", "2026-05-05T10:39:28")
    with pytest.raises(BadOffer, match="is not a time"):
        parse_time("observed_at", "2026 (commit date not known)")


def test_times_as_text_sort_as_times() -> None:
    times = [
        datetime(2025, 6, 1, tzinfo=UTC) + timedelta(microseconds=step) for step in (0, 1, 999_999, 1_000_000)
    ]
    assert [format_time(moment) for moment in times] == sorted(format_time(moment) for moment in times)
    assert len({len(format_time(moment)) for moment in [*times, datetime(1, 1, 1, tzinfo=UTC)]}) == 1


@given(offers())
def test_an_offer_survives_its_record(any_offer: Offer) -> None:
    assert Offer.from_record(any_offer.to_record()) == any_offer


@given(offers(), offers())
def test_the_price_id_hangs_on_the_key_fields_alone(one: Offer, other: Offer) -> None:
    same = all(getattr(one, name) == getattr(other, name) for name in KEY_FIELDS)
    assert (one.price_id == other.price_id) == same


def test_the_observation_id_ignores_when_it_was_fetched_and_padding_zeros() -> None:
    again = offer(amount=Decimal("21.9600000000"), fetched_at=JUNE + timedelta(days=9))
    assert again.observation_id == offer().observation_id
    assert offer(amount=Decimal("21.97")).observation_id != offer().observation_id
    long = "0.123456789012345678901234567890"
    assert offer(amount=Decimal(long)).observation_id != offer(amount=Decimal(long + "1")).observation_id


def test_components_keep_their_decimals() -> None:
    part = Component("039F", Decimal(1), "gpu_hour", Decimal("2.933908"))
    assert Offer.from_record(offer(components=(part,)).to_record()).components == (part,)
    with pytest.raises(BadOffer, match=r'components "\{" does not read'):
        Offer.from_row({"components": "{"})


def test_hashes_are_those_of_the_stores_that_are_out_there() -> None:
    """Another hash would make every stored row look tampered with, and load the packaged prices twice."""
    made = offer(
        amount=Decimal("21.9600"),
        components=(Component("a", Decimal("8.0"), "gpu_hour", Decimal("2.745")),),
        fetched_at=JUNE,
    )
    assert made.to_row() == (made.observation_id, made.price_id, *made.to_record())
    assert (made.observation_id, made.price_id) == (
        "2776e0d475a4db045ed6eabbc3a9fc52",
        "720c555d8b922d78cde4572119e55010",
    )
