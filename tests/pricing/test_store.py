"""planner.pricing.store: what was observed is kept, and the newest as of a moment is answered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from priced import JUNE, offer, offers
from sqlalchemy import text

from planner.pricing.errors import BadOffer, UnknownItem
from planner.pricing.offer import Offer
from planner.pricing.queries import end_of
from planner.pricing.store import PriceStore
from planner.pricing.stored_prices import best_retail


@cache
def _kept_open(_number: int) -> PriceStore:
    with mock.patch("planner.pricing.snapshot.offers", tuple):
        return PriceStore.open("sqlite://")


def _empty_store(number: int = 0) -> PriceStore:
    """A store without a row; the same one each time, because making one takes a tenth of a second."""
    store = _kept_open(number)
    with store._engine.begin() as connection:
        connection.execute(text("DELETE FROM observations"))
    return store


def _newness(one: Offer) -> tuple[datetime, datetime, str]:
    return one.observed_at, one.fetched_at or one.observed_at, one.observation_id


def _latest_by_hand(given_offers: Iterable[Offer], as_of: datetime | None) -> list[Offer]:
    """The plain reading of "latest": of each price, the newest observation by `as_of` that is not suspect."""
    newest: dict[str, Offer] = {}
    for one in given_offers:
        if one.quality == "suspect" or (as_of is not None and one.observed_at > as_of):
            continue
        held = newest.get(one.price_id)
        if held is None or _newness(one) > _newness(held):
            newest[one.price_id] = one
    return sorted(newest.values(), key=lambda one: one.price_id)


def _first_kept(given_offers: Iterable[Offer]) -> list[Offer]:
    kept: dict[str, Offer] = {}
    for one in given_offers:
        kept.setdefault(one.observation_id, one)
    return list(kept.values())


# --- what goes in comes out


@settings(deadline=None)
@given(st.lists(offers(), max_size=8))
def test_offers_survive_the_store_and_the_same_observation_twice_is_one_row(
    given_offers: list[Offer],
) -> None:
    kept = _first_kept(given_offers)
    store = _empty_store()
    assert store.append(given_offers) == len(kept)
    assert store.append(given_offers) == 0
    assert sorted(store.history(), key=_newness) == sorted(kept, key=_newness)


@settings(deadline=None)
@given(st.lists(offers(), max_size=12), st.none() | st.integers(-1, 4))
def test_latest_and_as_of_agree_with_a_plain_reading(given_offers: list[Offer], days: int | None) -> None:
    as_of = None if days is None else JUNE + timedelta(days=days)
    store = _empty_store()
    store.append(given_offers)
    answered = sorted(store.latest(as_of), key=lambda one: one.price_id)
    assert answered == _latest_by_hand(_first_kept(given_offers), as_of)


@settings(max_examples=50, deadline=None)
@given(st.lists(offers(), min_size=2, max_size=8, unique_by=lambda one: one.observation_id))
def test_the_answer_does_not_depend_on_the_order_of_appending(given_offers: list[Offer]) -> None:
    one, other = _empty_store(0), _empty_store(1)
    one.append(given_offers)
    for single in reversed(given_offers):
        other.append([single])
    assert one.latest() == other.latest()
    assert one.history() == other.history()


def test_the_view_latest_says_what_the_store_says(loaded: PriceStore) -> None:
    with loaded._engine.connect() as connection:
        viewed = connection.execute(text("SELECT observation_id FROM latest")).scalars().all()
    assert sorted(viewed) == sorted(one.observation_id for one in loaded.latest())


# --- as of


def test_a_date_means_the_end_of_that_day_in_utc(store: PriceStore) -> None:
    late = offer(observed_at=datetime(2025, 6, 1, 23, 59, 59, 999_999, tzinfo=UTC))
    store.append([late])
    assert store.latest(date(2025, 5, 31)) == ()
    assert store.latest(date(2025, 6, 1)) == (late,)
    assert store.latest(late.observed_at) == (late,)
    assert store.latest(late.observed_at - timedelta(microseconds=1)) == ()


def test_an_as_of_without_a_timezone_is_refused() -> None:
    with pytest.raises(BadOffer, match="without a timezone"):
        end_of(datetime(2025, 6, 1))  # noqa: DTZ001


@pytest.mark.parametrize("amount", ["2196", "0.2196", "30", "40", "50"])
def test_a_correction_of_the_same_instant_holds_and_the_first_reading_stays_in_history(
    store: PriceStore, amount: str
) -> None:
    wrong = offer(amount=Decimal(amount), fetched_at=JUNE)
    right = offer(fetched_at=JUNE + timedelta(days=1))
    store.append([right])
    store.append([wrong])
    assert store.latest() == (right,)
    assert store.history() == (wrong, right)


def test_a_suspect_price_leaves_the_old_one_in_place(store: PriceStore) -> None:
    bad = offer(
        amount=Decimal("0.02"), observed_at=JUNE + timedelta(days=1), quality="suspect", reason="a tenth"
    )
    store.append([offer(), bad])
    assert store.latest() == (offer(),)
    assert store.history() == (offer(), bad)


def test_a_price_that_became_unknown_is_answered_as_unknown(store: PriceStore) -> None:
    gone = offer(amount=None, observed_at=JUNE + timedelta(days=1))
    store.append([offer(), gone])
    assert store.latest() == (gone,)


# --- filters


def test_filters_take_one_value_or_several_and_none_of_none(store: PriceStore) -> None:
    here, there = offer(), offer(region="eu-west-1")
    spot = offer(contract="spot", amount=Decimal(8))
    store.append([here, there, spot])
    assert store.latest(region="us-east-1", contract="on_demand") == (here,)
    assert set(store.latest(region={"us-east-1", "eu-west-1"}, contract="on_demand")) == {here, there}
    assert store.latest(item="p4d.24xlarge", kind=("cloud_instance", "resale"), provider="aws") == (
        there,
        here,
        spot,
    )
    assert store.latest(region=()) == ()
    assert store.latest(item="' OR 1=1 --") == ()
    assert store.history(contract="spot") == (spot,)


def test_offers_are_grouped_by_item(store: PriceStore) -> None:
    store.append([offer(), offer(item="g5.xlarge"), offer(item="g5.xlarge", region="eu-west-1")])
    assert {item: len(found) for item, found in store.latest_by_item("cloud_instance").items()} == {
        "p4d.24xlarge": 1,
        "g5.xlarge": 2,
    }


def test_first_after_gives_what_was_not_yet_recorded_and_says_so(store: PriceStore) -> None:
    store.append([offer(), offer(observed_at=JUNE + timedelta(days=9)), offer(item="late", observed_at=JUNE)])
    assert store.first_after(JUNE) == ()
    found = store.first_after(JUNE - timedelta(days=1), item="late")
    assert [(one.item, one.quality, one.reason) for one in found] == [
        ("late", "estimated", "first observed on 2025-06-01, after 2025-05-31")
    ]


# --- helpers


def _card(amount: str, days: int = 0, **changed: object) -> Offer:
    goods = {"kind": "gpu_retail", "contract": "purchase", "unit": "each", "condition": "new", "gpu_count": 1}
    named = {"item": "rtx-4090-24gb", "region": "us", "amount": Decimal(amount)}
    return replace(offer(), **{**goods, **named, "observed_at": JUNE + timedelta(days=days), **changed})


def test_a_median_of_listings_comes_before_a_single_newer_listing() -> None:
    median = _card("3089.00", sample_n=19)
    assert best_retail([_card("3399", days=13, sample_n=1), median]) == median
    assert best_retail([_card("2399", days=-1, sample_n=28), median]) == median
    assert best_retail([_card("10", currency="EUR"), replace(median, amount=None)]) is None


def test_used_cards_are_priced_by_the_resale_series(store: PriceStore) -> None:
    store.append([_card("1460", kind="resale", condition="used"), _card("3089")])
    assert store.retail("rtx-4090-24gb", "used").amount == Decimal(1460)
    assert store.retail("rtx-4090-24gb").amount == Decimal(3089)


def test_an_unknown_card_is_told_the_nearest_name(store: PriceStore) -> None:
    store.append([_card("3089")])
    with pytest.raises(UnknownItem, match='no price of "rtx-4900-24gb", new, is stored') as told:
        store.retail("rtx-4900-24gb")
    assert 'Did you mean "rtx-4090-24gb"?' in str(told.value)
    with pytest.raises(UnknownItem, match="is stored by 2020-01-01"):
        store.retail("rtx-4090-24gb", as_of=date(2020, 1, 1))


def test_an_unknown_region_of_electricity_is_told_the_nearest_name(loaded: PriceStore) -> None:
    with pytest.raises(UnknownItem, match='region "us-virgina"') as told:
        loaded.electricity("us-virgina")
    assert 'Did you mean "us-virginia"?' in str(told.value)
    assert "--electricity-price" in str(told.value)


def test_a_store_in_a_file_keeps_what_was_appended(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "prices.sqlite"
    with PriceStore.open(str(path)) as first:
        assert first.append([offer()]) == 1
    with PriceStore.open(f"sqlite:///{path}") as second:
        assert offer() in second.history(item="p4d.24xlarge")
        assert second.append([offer()]) == 0
