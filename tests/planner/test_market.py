"""Usable prices and reasons: unknown is never zero, a currency never a bare number."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from made_up import NOW, offer, part, tariff

from planner.market import Market
from planner.pricing.offer import Offer

ON_DEMAND = frozenset({"on_demand"})


def market(*offers: Offer, **changed: Any) -> Market:
    return Market(offers, **{"as_of": NOW, "currency": "USD", **changed})


def test_an_unknown_amount_is_refused_with_a_reason() -> None:
    stored = market(offer("A", None))
    assert stored.cloud("A", ON_DEMAND, ()) == ()
    assert [(e.code, e.reason) for e in stored.excluded] == [("no_price", "price unknown")]


def test_a_shape_that_is_listed_but_not_sold_is_refused_with_a_reason() -> None:
    stored = market(offer("A", "5", availability="listed_only"))
    assert stored.cloud("A", ON_DEMAND, ()) == ()
    assert [e.code for e in stored.excluded] == ["not_sold"]


def test_only_hourly_units_are_rented() -> None:
    assert market(offer("A", "5", unit="fee")).cloud("A", ON_DEMAND, ()) == ()
    assert len(market(offer("A", "5", unit="gpu_hour")).cloud("A", ON_DEMAND, ())) == 1


def test_a_seller_without_regions_is_left_out_where_a_region_is_asked_for() -> None:
    stored = market(offer("A", "5", region="all"), offer("A", "6", region="eu-west-1"))
    assert [s.region for s in stored.cloud("A", ON_DEMAND, ("eu-west-1",))] == ["eu-west-1"]
    assert len(stored.cloud("A", ON_DEMAND, ())) == 2


def test_a_rate_of_the_user_comes_before_a_stored_one() -> None:
    from planner.market import Rate

    stored = {"EUR": Rate(Decimal("1.05"), "ecb", NOW)}
    assert market(rates=stored).rate("EUR") == stored["EUR"]
    given = market(rates=stored, fx={"EUR": Decimal("1.2")}).rate("EUR")
    assert given is not None
    assert (given.value, given.source) == (Decimal("1.2"), "given by the user")
    assert market().rate("EUR") is None


def test_a_median_of_sales_comes_before_a_newer_single_listing() -> None:
    single = part("rtx-4090-24gb", "1500", provider="one", observed_at=datetime(2026, 6, 1, tzinfo=UTC))
    median = part(
        "rtx-4090-24gb",
        "3000",
        provider="many",
        sample_n=20,
        observed_at=datetime(2025, 7, 1, tzinfo=UTC),
    )
    found = market(single, median).retail("rtx-4090-24gb")
    assert found is not None
    assert found.unit_price == Decimal(3000)


def test_used_prices_answer_only_where_they_are_asked_for_or_nothing_else_is_sold() -> None:
    new, used = part("rtx-3090-24gb", "1400"), part("rtx-3090-24gb", "700", kind="resale", condition="used")
    both = market(new, used)
    assert both.retail("rtx-3090-24gb").unit_price == 1400  # type: ignore[union-attr]
    assert both.retail("rtx-3090-24gb", used=True).unit_price == 700  # type: ignore[union-attr]
    assert market(used).retail("rtx-3090-24gb").unit_price == 700  # type: ignore[union-attr]
    assert market(new).retail("rtx-3090-24gb", used=True) is None
    assert market().retail("rtx-3090-24gb") is None


def test_electricity_is_the_commercial_tariff_of_the_us() -> None:
    assert market().electricity() is None
    found = market(tariff("0.15")).electricity()
    assert found is not None
    assert found.unit_price == Decimal("0.15")


@pytest.mark.parametrize(("hours", "kept"), [(24 * 5, False), (24 * 20, True)])
def test_age_excludes_only_past_the_age_asked_for(hours: int, kept: bool) -> None:
    stored = market(offer("A", "5"), max_age_hours=Decimal(hours))
    assert bool(stored.cloud("A", ON_DEMAND, ())) is kept


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"observed_at": datetime(2021, 12, 1, tzinfo=UTC)}, "stale_price"),
        ({"availability": "listed_only"}, "not_sold"),
        ({"currency": "EUR"}, "currency"),
    ],
)
def test_a_prepaid_commitment_is_refused_for_the_same_reasons(changed: dict[str, Any], code: str) -> None:
    prepaid = offer(
        "A", None, contract="reserved_1y", upfront=Decimal("900"), payment="all_upfront", **changed
    )
    stored = market(prepaid, max_age_hours=Decimal(24))
    assert stored.commitments("A", frozenset({"reserved_1y"}), ()) == ()
    assert [e.code for e in stored.excluded] == [code]


def test_a_prepaid_commitment_costs_its_fee_and_nothing_per_hour() -> None:
    prepaid = offer("A", None, contract="reserved_1y", upfront=Decimal("900"), payment="all_upfront")
    (sale,) = market(prepaid).commitments("A", frozenset({"reserved_1y"}), ())
    assert sale.quote is not None
    assert (sale.quote.unit_price, sale.quote.upfront) == (0, 900)
