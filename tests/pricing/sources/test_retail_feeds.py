"""planner.pricing.sources.retail_feeds: the median of what sellers ask, of the thing itself."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from local_server import local_context
from pytest_httpserver import HTTPServer

from planner.pricing import checks
from planner.pricing.sources import ParseResult, RawPage, SourceUnavailable, TooManyBadRows
from planner.pricing.sources.retail_feeds import NAME, RetailFeeds

pytest.importorskip("price_parser", reason="needs the extra [retail]")
NOW = datetime(2026, 11, 30, tzinfo=UTC)


def read(body: bytes, **wanted: str) -> ParseResult:
    asked = {"item": "rtx-3090-24gb", "kind": "gpu_retail", "region": "us"}
    asked |= {"condition": "used", "provider": "ebay"}
    page = RawPage(body, ref="https://feed.example/3090", request={**asked, **wanted})
    return RetailFeeds().parse([page], fetched_at=NOW)


def ebay(*prices: str, title: str = "RTX 3090 24GB", condition: str = "Used") -> list[dict[str, Any]]:
    paid = [{"value": price, "currency": "USD"} for price in prices]
    return [{"title": title, "price": each, "condition": condition} for each in paid]


def test_an_ebay_search_gives_the_median_of_asked_prices_and_says_so() -> None:
    body = json.dumps({"itemSummaries": ebay("700.00", "650.00", "900.00")}).encode()
    (found,) = read(body).offers
    assert (found.amount, found.amount_low, found.amount_high) == (700, 650, 900)
    assert (found.sample_n, found.quality, found.reason) == (
        3,
        "estimated",
        "what sellers ask, not what is paid",
    )
    assert checks.errors([found]) == ()


def test_t33_other_things_and_conditions_are_left_out_and_counted() -> None:
    listings = [
        *ebay("700.00"),
        *ebay("120.00", title="RTX 3090 water block"),
        *ebay("300.00", title="RTX 3090 24GB for parts"),
        *ebay("1500.00", condition="New"),
        *ebay("900.00", title="RTX 3090 24GB renewed"),
    ]
    result = read(json.dumps({"itemSummaries": listings}).encode())
    assert [(o.amount, o.sample_n) for o in result.offers] == [(Decimal(700), 1)]
    assert sum(result.skipped.values()) == 4


def test_a_csv_feed_and_a_json_list_read_alike() -> None:
    table = b'title,price,currency,condition\nRTX 3090,"$700.00",USD,used\nRTX 3090,from $1,USD,used\n'
    plain = json.dumps(
        [{"name": "RTX 3090", "price": 700.0, "currency": "USD", "condition": "used"}]
    ).encode()
    assert [o.amount for o in (*read(table).offers, *read(plain).offers)] == [
        Decimal("700.00"),
        Decimal("700.0"),
    ]


def test_t31_currencies_are_never_mixed_into_one_median() -> None:
    listings = ebay("700.00", "710.00")
    listings += [{"title": "RTX 3090", "price": {"value": "650.00", "currency": "EUR"}, "condition": "Used"}]
    body = json.dumps({"itemSummaries": listings}).encode()
    (dollars,) = read(body).offers
    assert (dollars.currency, dollars.sample_n) == ("USD", 2)
    (euros,) = read(body, currency="EUR").offers
    assert (euros.currency, euros.amount) == ("EUR", 650)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b"<html>", b"a,b\n1,2\n", b'{"itemSummaries": 3}', b"[1, 2]"]
)
def test_a_feed_without_the_thing_is_named(body: bytes) -> None:
    with pytest.raises(TooManyBadRows, match=r"feed\.example"):
        read(body)


def test_feeds_come_from_files_and_addresses_of_the_list(server: HTTPServer, tmp_path: Path) -> None:
    server.expect_request("/feed").respond_with_data(json.dumps({"itemSummaries": ebay("700.00")}))
    (tmp_path / "mine.csv").write_text("title,price,currency\nRTX 3090,650.00,USD\n")
    (tmp_path / "feeds.csv").write_text(
        "url,item,kind,region,condition,provider\n"
        f"{server.url_for('/feed')}?key=secret,rtx-3090-24gb,gpu_retail,us,used,ebay\n"
        "mine.csv,rtx-3090-24gb,gpu_retail,us,used,friend\n"
        "lost.csv,rtx-3090-24gb,gpu_retail,us,used,friend\n"
    )
    context = local_context(settings={NAME: {"feeds": "feeds.csv", "_folder": str(tmp_path)}})
    pages = list(RetailFeeds().fetch(context))
    assert "secret" not in "".join(page.ref for page in pages)
    result = RetailFeeds().parse(pages, fetched_at=NOW)
    assert {(o.provider, o.amount) for o in result.offers} == {
        ("ebay", Decimal(700)),
        ("friend", Decimal(650)),
    }
    assert "lost.csv" in result.warnings[0]


def test_without_a_list_the_source_says_what_it_needs() -> None:
    with pytest.raises(SourceUnavailable, match=r"feeds\.csv"):
        list(RetailFeeds().fetch(local_context()))
