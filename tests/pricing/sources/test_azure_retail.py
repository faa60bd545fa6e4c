"""planner.pricing.sources.azure_*: of a dozen rows for a size each is told apart; traps T17 to T22."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from local_server import local_context
from pytest_httpserver import HTTPServer

from planner.pricing import checks
from planner.pricing.offer import Offer
from planner.pricing.sources import (
    AmbiguousRows,
    BadAnswer,
    ParseResult,
    RawPage,
    SourceFailed,
    TooManyBadRows,
)
from planner.pricing.sources.azure_retail import AzureRetail, odata_filter
from planner.pricing.sources.azure_rows import effective_hourly, feed_names

NOW = datetime(2026, 9, 11, 12, tzinfo=UTC)
FILE = "retail_prices_NCsv3_francecentral_2021-12.json"
PATH = "/api/retail/prices"


def row(price: float, **changed: Any) -> dict[str, Any]:
    """One row of the feed: NC6s_v3 on Linux, pay-as-you-go, with the named fields changed."""
    return {
        "currencyCode": "USD",
        "tierMinimumUnits": 0.0,
        "retailPrice": price,
        "unitPrice": price,
        "armRegionName": "francecentral",
        "location": "FR Central",
        "effectiveStartDate": "2020-07-01T00:00:00Z",
        "meterId": "138aad23",
        "meterName": "NC6s v3",
        "productName": "Virtual Machines NCSv3 Series",
        "skuId": "DZH318Z0BQM2/00DG",
        "skuName": "NC6s v3",
        "serviceName": "Virtual Machines",
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        "isPrimaryMeterRegion": True,
        "armSkuName": "Standard_NC6s_v3",
        **changed,
    }


def page(*rows: Any, link: str | None = None) -> RawPage:
    return RawPage(json.dumps({"Items": rows, "NextPageLink": link}).encode(), ref="a test")


def parsed(*rows: Any) -> ParseResult:
    return AzureRetail().parse([page(*rows)], fetched_at=NOW)


def one(offers: tuple[Offer, ...], **wanted: Any) -> Offer:
    found = [o for o in offers if all(getattr(o, name) == value for name, value in wanted.items())]
    assert len(found) == 1, found
    return found[0]


@pytest.fixture
def francecentral(recorded: Path) -> ParseResult:
    body = (recorded / "azure" / FILE).read_bytes()
    pages = [RawPage(body, ref="recorded")]
    return AzureRetail().parse(pages, fetched_at=datetime(2021, 12, 2, tzinfo=UTC))


# --- the recorded feed


def test_each_of_the_recorded_rows_is_told_apart(francecentral: ParseResult) -> None:
    assert francecentral.rows == 44
    assert francecentral.bad == {}
    assert francecentral.skipped == {"low priority (for batch pools)": 12, "DevTest price": 8}
    assert len(francecentral.offers) == 24
    kinds = {(offer.contract, offer.os) for offer in francecentral.offers}
    assert kinds == {
        ("on_demand", "linux"),
        ("on_demand", "windows"),
        ("spot", "linux"),
        ("spot", "windows"),
        ("reserved_1y", "linux"),
        ("reserved_3y", "linux"),
    }


def test_the_eleven_recorded_rows_of_nc6s_v3_make_six_prices(francecentral: ParseResult) -> None:
    offers = tuple(offer for offer in francecentral.offers if offer.item == "Standard_NC6s_v3")
    assert one(offers, contract="on_demand", os="linux").amount == Decimal("3.58")
    assert one(offers, contract="on_demand", os="windows").amount == Decimal("3.856")
    assert one(offers, contract="spot", os="linux").amount == Decimal("0.761108")
    assert one(offers, contract="spot", os="windows").amount == Decimal("1.102045")
    assert len(offers) == 6


def test_t17_a_reservation_is_a_fee_for_the_term_and_no_price_of_an_hour(francecentral: ParseResult) -> None:
    year = one(francecentral.offers, item="Standard_NC6s_v3", contract="reserved_1y")
    three = one(francecentral.offers, item="Standard_NC6s_v3", contract="reserved_3y")
    assert (year.amount, year.upfront, year.term_months) == (None, Decimal(19978), 12)
    assert (three.amount, three.upfront, three.term_months) == (None, Decimal(30108), 36)
    assert year.payment == three.payment == "all_upfront"
    assert effective_hourly(Decimal(19978), 12) == Decimal("2.2806")
    assert effective_hourly(Decimal(30108), 36) == Decimal("1.1457")
    assert year.note == "fee for the whole term, 2.2806 an hour"


def test_what_is_parsed_passes_the_invariants_and_can_be_audited(francecentral: ParseResult) -> None:
    assert checks.errors(francecentral.offers) == ()
    offer = one(francecentral.offers, item="Standard_NC24rs_v3", contract="on_demand", os="linux")
    assert (offer.gpu_model, offer.gpu_count, offer.gpu_mem_mib) == ("v100-pcie-16gb", 4, 16384)
    assert offer.amount_per_gpu == Decimal("3.93825")
    assert offer.raw_sha256 is not None
    assert offer.valid_from == datetime(2020, 7, 1, tzinfo=UTC)
    assert (offer.source, offer.region, offer.currency) == ("azure-retail", "francecentral", "USD")


# --- rows


LOW = row(0.716, skuName="NC6s v3 Low Priority", meterName="NC6s v3 Low Priority")
PAY = row(3.58)


def test_t18_low_priority_does_not_overwrite_pay_as_you_go() -> None:
    for order in permutations((LOW, PAY)):
        assert [offer.amount for offer in parsed(*order).offers] == [Decimal("3.58")]


def test_t19_a_placeholder_at_zero_is_a_price_that_is_not_known() -> None:
    (offer,) = parsed(row(0.0)).offers
    assert offer.amount is None
    assert offer.note == "the feed says 0, which is no price"


def test_t19_a_placeholder_beside_a_price_gives_way() -> None:
    for order in permutations((row(0), PAY)):
        result = parsed(*order)
        assert [offer.amount for offer in result.offers] == [Decimal("3.58")]
        assert result.skipped == {"repeated: an alias, or 0 beside a price": 1}


def test_t19_cloud_services_meters_of_the_same_service_are_left_out() -> None:
    result = parsed(row(3.58, productName="NCSv3 Series Cloud Services"))
    assert result.offers == ()
    assert result.skipped == {"Cloud Services meter": 1}


@pytest.mark.parametrize("minimum", [0, 0.0])
def test_t19_the_first_tier_may_be_written_with_a_point(minimum: float) -> None:
    assert len(parsed(row(3.58, tierMinimumUnits=minimum)).offers) == 1


@pytest.mark.parametrize(
    "name", ["Virtual Machines NCSv3 Series Windows", "Virtual Machines NCSv3 Series Win"]
)
def test_t20_windows_goes_by_two_names(name: str) -> None:
    (offer,) = parsed(row(3.856, productName=name)).offers
    assert offer.os == "windows"


def test_t21_a_spot_price_says_that_the_portal_may_show_another() -> None:
    (offer,) = parsed(row(0.761108, skuName="NC6s v3 Spot", meterName="NC6s v3 Spot")).offers
    assert offer.contract == "spot"
    assert offer.note is not None
    assert "portal" in offer.note


def test_t22_an_alias_of_a_size_is_that_size() -> None:
    both = [row(35.36, armSkuName=name) for name in ("Standard_ND96asr_v4", "Standard_ND96asr_A100_v4")]
    (offer,) = parsed(*both).offers
    assert (offer.item, offer.amount) == ("Standard_ND96asr_v4", Decimal("35.36"))


def test_t22_a_meter_that_is_not_the_primary_one_is_left_out() -> None:
    assert parsed(row(3.58, isPrimaryMeterRegion=False)).offers == ()


def test_two_prices_for_one_thing_are_refused_with_their_ids() -> None:
    with pytest.raises(AmbiguousRows, match=r"DZH318Z0BQM2/00DG \(3\.58\), OTHER \(3\.9\)"):
        parsed(PAY, row(3.9, skuId="OTHER"))


def test_a_price_that_is_over_or_yet_to_come_is_no_second_price() -> None:
    over = row(3.9, effectiveEndDate="2024-01-01T00:00:00Z")
    coming = row(4.2, effectiveStartDate="2027-01-01T00:00:00Z")
    result = parsed(over, PAY, coming)
    assert [offer.amount for offer in result.offers] == [Decimal("3.58")]
    assert result.skipped == {"not in force at that time": 2}


def test_savings_plans_listed_inside_a_row_are_prices_of_their_own() -> None:
    plans = [
        {"unitPrice": 2.1, "retailPrice": 2.1, "term": "3 Years"},
        {"retailPrice": 2.7, "term": "1 Year"},
    ]
    offers = parsed(row(3.58, savingsPlan=plans)).offers
    assert {(offer.contract, offer.amount, offer.term_months) for offer in offers} == {
        ("on_demand", Decimal("3.58"), None),
        ("savings_plan_3y", Decimal("2.1"), 36),
        ("savings_plan_1y", Decimal("2.7"), 12),
    }
    assert checks.errors(offers) == ()


def test_amounts_keep_the_digits_of_the_feed() -> None:
    body = (
        b'{"Items": [' + json.dumps(row(1)).replace('"retailPrice": 1', '"retailPrice": 0.1').encode() + b"]}"
    )
    (offer,) = AzureRetail().parse([RawPage(body, ref="a test")], fetched_at=NOW).offers
    assert str(offer.amount) == "0.1"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"serviceName": "Azure Batch"}, "other service"),
        ({"armSkuName": "Standard_D2s_v3"}, "unknown size"),
        ({"armSkuName": None}, "unknown size"),
        ({"armRegionName": ""}, "no region"),
        ({"type": "DevTestConsumption"}, "DevTest price"),
        ({"type": "Gift"}, "other price type"),
        ({"productName": "NCSv3 Series Dedicated Host"}, "dedicated host"),
    ],
)
def test_other_rows_are_counted_by_reason(changed: dict[str, Any], reason: str) -> None:
    result = parsed(row(1.0, **changed))
    assert result.offers == ()
    assert result.skipped == {reason: 1}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"retailPrice": -1}, "no plausible amount"),
        ({"retailPrice": None}, "no retailPrice"),
        ({"retailPrice": True}, "no retailPrice"),
        ({"retailPrice": "3,58"}, "not a number"),
        ({"currencyCode": "XXX"}, "unknown currency"),
        ({"unitOfMeasure": "1 GB/Month"}, "unit is not an hour"),
        ({"tierMinimumUnits": 100.0}, "tiered price"),
        ({"type": "Reservation"}, "no reservationTerm"),
        ({"type": "Reservation", "reservationTerm": "5 Years"}, "unknown reservation term"),
        ({"effectiveStartDate": "soon"}, "effectiveStartDate is no time"),
        ({"skuName": None}, "no skuName"),
    ],
)
def test_rows_that_do_not_read_refuse_the_answer_when_they_are_many(
    changed: dict[str, Any], reason: str
) -> None:
    with pytest.raises(TooManyBadRows, match=reason):
        parsed(row(1.0, **changed))
    good = [row(3.58, armRegionName=f"region{n}") for n in range(30)]
    assert sum(parsed(*good, row(1.0, **changed)).bad.values()) == 1


def test_a_row_that_is_no_object_is_bad() -> None:
    with pytest.raises(TooManyBadRows, match="no object"):
        parsed("a row")


# --- fetching


def answer(*rows: Any, link: str | None = None) -> str:
    return json.dumps({"Items": rows, "NextPageLink": link})


def fetch(server: HTTPServer, waits: list[float] | None = None, **changed: Any) -> list[RawPage]:
    plain: dict[str, Any] = {
        "base_urls": {"azure-retail": server.url_for(PATH)},
        "regions": ("francecentral",),
        "instance_types": frozenset({"Standard_NC6s_v3"}),
    }
    context = local_context(waits, clock=lambda: NOW, **{**plain, **changed})
    return list(AzureRetail().fetch(context))


def test_pages_are_followed_by_their_links(server: HTTPServer) -> None:
    link = server.url_for(PATH) + "?$skip=100"
    other = answer(row(7.16, armSkuName="Standard_NC12s_v3"))
    server.expect_request(PATH, query_string={"$skip": "100"}).respond_with_data(other)
    server.expect_request(PATH).respond_with_data(answer(PAY, link=link))
    result = AzureRetail().parse(fetch(server), fetched_at=NOW)
    assert {offer.item for offer in result.offers} == {"Standard_NC6s_v3", "Standard_NC12s_v3"}
    first = server.log[0][0]
    assert first.args["api-version"] == "2023-01-01-preview"
    assert first.args["meterRegion"] == "'primary'"
    assert first.args["$filter"] == odata_filter("francecentral", ["Standard_NC6s_v3"])


def test_c39_a_link_to_a_page_that_was_read_stops_with_an_error(server: HTTPServer) -> None:
    link = server.url_for(PATH) + "?$skip=100"
    server.expect_request(PATH).respond_with_data(answer(PAY, link=link))
    with pytest.raises(BadAnswer, match="was read"):
        fetch(server)
    assert len(server.log) == 2


@pytest.mark.parametrize("link", ["https://elsewhere.example/prices", "https://[", "/prices", "file:///x"])
def test_a_link_to_another_host_is_not_followed(server: HTTPServer, link: str) -> None:
    server.expect_request(PATH).respond_with_data(answer(PAY, link=link))
    with pytest.raises(BadAnswer, match="another host"):
        fetch(server)


def test_a_busy_feed_is_asked_again_when_it_says(server: HTTPServer) -> None:
    server.expect_ordered_request(PATH).respond_with_data(status=429, headers={"Retry-After": "3"})
    server.expect_ordered_request(PATH).respond_with_data(status=503)
    server.expect_ordered_request(PATH).respond_with_data(answer(PAY))
    waits: list[float] = []
    assert len(fetch(server, waits)) == 1
    assert waits[0] == 3
    assert len(waits) == 2


@pytest.mark.parametrize(
    "body", ['{"Items": [{"currencyCode": "US', "<html>Service unavailable</html>", "", "[]", '{"Count": 0}']
)
def test_half_an_answer_or_html_is_no_empty_list_of_prices(server: HTTPServer, body: str) -> None:
    server.expect_request(PATH).respond_with_data(body)
    with pytest.raises(BadAnswer, match=PATH):
        fetch(server)


def test_an_empty_second_page_is_the_end_and_no_error(server: HTTPServer) -> None:
    link = server.url_for(PATH) + "?$skip=100"
    server.expect_request(PATH, query_string={"$skip": "100"}).respond_with_data(answer())
    server.expect_request(PATH).respond_with_data(answer(PAY, link=link))
    assert len(AzureRetail().parse(fetch(server), fetched_at=NOW).offers) == 1


def test_a_feed_that_is_down_is_a_failure_of_the_source(server: HTTPServer) -> None:
    server.expect_request(PATH).respond_with_data(status=500)
    with pytest.raises(SourceFailed, match="status 500"):
        fetch(server)


def test_without_a_wish_every_known_name_is_asked_for_aliases_too(server: HTTPServer) -> None:
    server.expect_request(PATH).respond_with_data(answer())
    fetch(server, instance_types=None)
    asked = " ".join(request.args["$filter"] for request, _ in server.log)
    for name in (*feed_names(), "Standard_ND96asr_A100_v4"):
        assert f"armSkuName eq '{name}'" in asked


def test_a_quote_in_a_name_cannot_leave_its_place_in_the_question() -> None:
    assert "armRegionName eq 'x'' or 1 eq 1'" in odata_filter("x' or 1 eq 1", ["Standard_NC6s_v3"])
