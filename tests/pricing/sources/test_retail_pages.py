"""planner.pricing.sources.retail_pages: what shops write, and what of it is a price."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from local_server import local_context
from pytest_httpserver import HTTPServer

from planner.pricing.errors import BadPriceFile
from planner.pricing.offer import Offer
from planner.pricing.sources import RawPage, SourceUnavailable, TooManyBadRows
from planner.pricing.sources.answers import UnreadableRow
from planner.pricing.sources.retail_pages import NAME, RetailPages, offer_on, read_list
from planner.pricing.sources.retail_text import one_price, parse_price_text

pytest.importorskip("extruct", reason="needs the extra [retail]")
pytest.importorskip("price_parser", reason="needs the extra [retail]")

NOW = datetime(2026, 9, 11, tzinfo=UTC)


def product(*, name: str = "ACME GeForce RTX 4090 24GB", **offer: Any) -> dict[str, Any]:
    """A product as a shop marks it up, at 1,899 USD, with fields of its offer changed."""
    plain = {"@type": "Offer", "price": "1899.00", "priceCurrency": "USD"}
    return {"@context": "https://schema.org", "@type": "Product", "name": name, "offers": {**plain, **offer}}


def html(*blocks: Any) -> bytes:
    texts = [block if isinstance(block, str) else json.dumps(block) for block in blocks]
    scripts = "".join(f'<script type="application/ld+json">{text}</script>' for text in texts)
    return f"<!doctype html><html><head>{scripts}</head><body><p>A card.</p></body></html>".encode()


def read(body: bytes, **wanted: str) -> Offer:
    asked = {"item": "rtx-4090-24gb", "kind": "gpu_retail", "region": "us", "provider": "acme"}
    return offer_on(RawPage(body, ref="https://acme.example/4090", request={**asked, **wanted}), NOW, NOW)


def refused(body: bytes, reason: str, **wanted: str) -> None:
    with pytest.raises(UnreadableRow, match=reason):
        read(body, **wanted)


def test_a_page_gives_amount_currency_stock_and_tax() -> None:
    found = read(html(product(availability="https://schema.org/InStock")))
    assert (found.amount, found.currency, found.availability) == (Decimal("1899.00"), "USD", "in_stock")
    assert (found.tax, found.condition, found.unit, found.quality) == ("excluded", "new", "each", "ok")
    assert (found.gpu_model, found.gpu_count, found.gpu_mem_mib) == ("rtx-4090-24gb", 1, 24576)
    assert found.source_ref == "https://acme.example/4090"
    assert found.raw_sha256


@pytest.mark.parametrize("file", ["product.html", "product-ref.html", "product_microdata.html"])
def test_recorded_microdata_pages_read(recorded: Path, file: str) -> None:
    body = (recorded / "retail" / file).read_bytes()
    found = read(body, item="anvil", kind="part_retail", condition="used")
    assert (found.amount, found.currency, found.condition) == (Decimal("119.99"), "USD", "used")
    assert (found.availability, found.sku) == ("in_stock", "925872")


def test_all_184_recorded_price_strings_read_as_their_authors_meant(recorded: Path) -> None:
    with (recorded / "retail" / "price_strings.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    wrong = []
    for row in rows:
        amount = row["amount"].removeprefix("Decimal('").removesuffix("')")
        expected = (Decimal(amount) if amount else None, row["currency"] or None)
        if parse_price_text(row["raw_text"], row["currency_hint"] or None) != expected:
            wrong.append(row["raw_text"])
    assert (len(rows), wrong) == (184, [])


# --- T30-T35


@pytest.mark.parametrize(
    "text",
    [
        "Call for price",
        "from $1,599",
        "$1,599 - $1,899",
        "1,599 to 1,899 USD",
        "ab 1.599 €",
        "$133 per month",
    ],
)
def test_t30_what_is_no_single_price_is_none(text: str) -> None:
    with pytest.raises(UnreadableRow):
        one_price(text, "us")


@pytest.mark.parametrize("text", ["$1,599 / €1.499", "$1,599.00 $1,799.00"])
def test_t30_two_prices_in_one_text_are_none(text: str) -> None:
    with pytest.raises(UnreadableRow, match="two prices"):
        one_price(text, "us")


def test_t30_a_dollar_sign_beside_another_stated_currency_is_refused() -> None:
    with pytest.raises(UnreadableRow, match="two currencies"):
        one_price("€1599.00", "us", "USD")


def test_t30_a_range_of_sellers_keeps_both_ends_and_says_that_it_is_estimated() -> None:
    offers = {"@type": "AggregateOffer", "price": None, "lowPrice": "1700", "highPrice": "1900"}
    found = read(html(product(**offers)))
    assert (found.amount_low, found.amount, found.amount_high) == (1700, 1800, 1900)
    assert (found.quality, found.reason) == ("estimated", "the middle of a published range")


def test_t30_a_lower_bound_alone_is_refused() -> None:
    refused(html(product(price=None, lowPrice="1700")), "a lower bound")


def test_t31_a_point_is_a_thousand_in_euros_and_ambiguous_in_dollars() -> None:
    assert one_price("1.599", "de", "EUR") == (Decimal(1599), "EUR")
    assert one_price("1.599,00 €", "de") == (Decimal("1599.00"), "EUR")
    assert one_price("$1,599.00", "us") == (Decimal("1599.00"), "USD")
    with pytest.raises(UnreadableRow, match="thousand or as decimals"):
        one_price("1.599", "us", "USD")


def test_t31_a_dollar_is_the_dollar_of_the_sellers_country() -> None:
    assert one_price("$2,599", "ca") == (Decimal(2599), "CAD")
    assert one_price("17 990 kr", "se") == (Decimal(17990), "SEK")
    with pytest.raises(UnreadableRow, match="no currency"):
        one_price("$2,599", "xx")


def test_t31_a_price_in_another_currency_than_asked_for_is_refused() -> None:
    refused(html(product(price="1599", priceCurrency="EUR")), "in EUR, not in USD", currency="USD")


@pytest.mark.parametrize(("region", "tax"), [("us", "excluded"), ("de", "included"), ("jp", "unknown")])
def test_t32_tax_is_in_the_price_in_europe_and_not_in_america(region: str, tax: str) -> None:
    assert read(html(product(priceCurrency="EUR")), region=region).tax == tax


def test_t32_what_the_page_says_of_tax_holds_over_the_custom_of_the_country() -> None:
    said = {"@type": "UnitPriceSpecification", "valueAddedTaxIncluded": False}
    assert read(html(product(priceCurrency="EUR", priceSpecification=said)), region="de").tax == "excluded"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("RTX 4090 24GB Gaming Laptop", "a bundle"),
        ("GeForce RTX 4090 24GB + 1200W PSU Bundle", "a bundle"),
        ("EK Water Block for RTX 4090", "accessory"),
        ("Gaming PC with RTX 4090", "a computer"),
        ("RTX 4090 24GB (box only)", "accessory"),
        ("GeForce RTX 4090 24GB Refurbished", "refurbished, not new"),
        ("GeForce RTX 4090 48GB", "another amount of memory"),
    ],
)
def test_t29_t33_a_listing_that_is_not_the_card_itself_is_refused(name: str, reason: str) -> None:
    refused(html(product(name=name)), reason)


def test_t33_a_refurbished_card_is_refused_as_new_and_taken_as_refurbished() -> None:
    page = html(product(itemCondition="https://schema.org/RefurbishedCondition"))
    refused(page, "refurbished, not new")
    assert read(page, condition="refurbished").condition == "refurbished"


def test_t33_words_of_the_list_tell_two_products_of_a_page_apart() -> None:
    page = html(product(name="RTX 4090 OC"), product(name="RTX 4090 Founders", price="1599.00"))
    refused(page, "2 products fit; add words")
    assert read(page, words="founders").amount == Decimal("1599.00")
    refused(page, 'lacks "strix"', words="strix")


def test_t34_a_price_that_is_out_of_stock_is_kept_and_marked() -> None:
    found = read(html(product(availability="https://schema.org/OutOfStock")))
    assert (found.amount, found.availability, found.quality) == (Decimal("1899.00"), "out_of_stock", "stale")


def test_t35_a_blank_price_is_an_offer_of_unknown_amount_not_the_last_good_one() -> None:
    found = read(html(product(price="")))
    assert (found.amount, found.currency, found.note) == (None, "USD", "the page shows no price")


# --- markup as it is found


def test_markup_with_trailing_commas_and_raw_line_ends_reads() -> None:
    broken = (
        '{"@type": "Product", "name": "RTX\n4090", "offers": {"price": "1899", "priceCurrency": "USD",},}'
    )
    assert read(html(broken)).amount == 1899


def test_a_broken_block_does_not_hide_the_good_one() -> None:
    assert read(html("{not json", product())).amount == 1899


@pytest.mark.parametrize(
    "wrap",
    [
        lambda found: {"@context": "https://schema.org", "@graph": [{"@type": "WebPage"}, found]},
        lambda found: [found],
        lambda found: {"@type": "WebPage", "mainEntity": found},
        lambda found: {**found, "@type": ["Product", "Thing"]},
        lambda found: {**found, "offers": [found["offers"]]},
        lambda found: {**found, "offers": {"@type": "AggregateOffer", "offers": [found["offers"]]}},
        lambda found: {**found, "offers": {"@type": "Offer", "priceSpecification": found["offers"]}},
    ],
    ids=["graph", "list", "main-entity", "types", "offer-list", "aggregate-of-one", "specification"],
)
def test_a_product_is_found_wherever_shops_put_it(wrap: Any) -> None:
    assert read(html(wrap(product()))).amount == Decimal("1899.00")


def test_a_number_of_json_keeps_its_digits() -> None:
    assert read(html(product(price=1899.1))).amount == Decimal("1899.1")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00\xff",
        b"just words",
        b"<html></html>",
        html({"@type": "Article"}),
        html({"@type": "Product"}),
    ],
)
def test_a_page_without_a_product_says_so(body: bytes) -> None:
    with pytest.raises(UnreadableRow):
        read(body)


@pytest.mark.parametrize("price", ["0", "-5", "NaN", "1e999999", "9" * 5000, True, {}, []])
def test_a_price_that_is_none_is_never_a_zero(price: Any) -> None:
    try:
        amount = read(html(product(price=price))).amount
    except UnreadableRow:
        amount = None
    assert amount != 0


# --- the list and the fetch


def test_without_a_list_the_source_says_what_it_needs() -> None:
    with pytest.raises(SourceUnavailable, match=r"pages = \"pages.csv\" in price_sources.toml"):
        list(RetailPages().fetch(local_context()))


def test_a_list_of_other_columns_is_refused_by_name() -> None:
    with pytest.raises(BadPriceFile, match='column "url"; the columns are url, item'):
        read_list("uri,item\nx,y\n", "pages.csv")
    with pytest.raises(BadPriceFile, match='"colour"'):
        read_list("url,item,colour\nx,y,z\n", "pages.csv")
    with pytest.raises(BadPriceFile, match="row 2: url and item"):
        read_list("url,item\n,y\n", "pages.csv")


def test_listed_pages_are_fetched_and_one_that_fails_is_named(server: HTTPServer, tmp_path: Path) -> None:
    server.expect_request("/good").respond_with_data(html(product()), content_type="text/html")
    server.expect_request("/gone").respond_with_data(status=404)
    pages = tmp_path / "pages.csv"
    pages.write_text(
        "url,item,kind,region,condition,provider,currency,words\n"
        f"{server.url_for('/good')}?campaign=1,rtx-4090-24gb,gpu_retail,us,new,acme,,\n"
        f"{server.url_for('/gone')},rtx-3090-24gb,gpu_retail,us,new,acme,,\n"
    )
    context = local_context(settings={NAME: {"pages": "pages.csv", "_folder": str(tmp_path)}})
    fetched = list(RetailPages().fetch(context))
    result = RetailPages().parse(fetched, fetched_at=NOW)
    (found,) = result.offers
    assert (found.item, found.provider, found.amount) == ("rtx-4090-24gb", "acme", Decimal("1899.00"))
    assert found.source_ref == server.url_for("/good"), "without the query"
    assert result.bad == {"status 404": 1}
    assert "/gone: status 404" in result.warnings[0]


def test_when_no_page_reads_the_source_has_failed() -> None:
    pages = [RawPage(b"", ref="https://acme.example/", request={"item": "x", "failure": "status 404"})]
    with pytest.raises(TooManyBadRows, match="status 404"):
        RetailPages().parse(pages, fetched_at=NOW)
