"""planner.pricing.sources.aws_offer_*: offer files as CSV and JSON give the same prices, in little memory."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from aws_fakes import NOW
from local_server import local_context
from offer_files import as_csv, as_json, crowd, grown, row
from pytest_httpserver import HTTPServer

from planner.pricing.sources import (
    AmbiguousRows,
    BadAnswer,
    FetchContext,
    ParseResult,
    RawPage,
    SourceUnavailable,
)
from planner.pricing.sources.aws_offer_file import AwsOfferFile

Write = Callable[[Iterable[Mapping[str, str]]], bytes]
BOTH = pytest.mark.parametrize("write", [as_csv, as_json])

RESERVED = {
    "TermType": "Reserved",
    "LeaseContractLength": "1yr",
    "PurchaseOption": "Partial Upfront",
    "OfferingClass": "standard",
    "OfferTermCode": "HU7G6KETJZ",
}
ROWS = (
    row("P4D", "21.9576420000"),
    row("P5", "55.0400000000", Instance_Type="p5.48xlarge"),
    row("CB", "0.0", Instance_Type="p5.48xlarge", MarketOption="CapacityBlock", operation="RunInstances:CB"),
    row("UNUSED", "21.9576420000", CapacityStatus="UnusedCapacityReservation"),
    row("BOOKED", "0.0000000000", CapacityStatus="AllocatedCapacityReservation"),
    row("WIN", "25.0000000000", Operating_System="Windows", operation="RunInstances:0002"),
    row("SQL", "30.0000000000", **{"Pre_Installed_S/W": "SQL Std"}),
    row("ZONE", "26.0000000000", Location_Type="AWS Local Zone", Region_Code="us-east-1-bos-1"),
    row("METAL", "9.0000000000", Product_Family="Compute Instance (bare metal)"),
    row("FREE", "0.0000000000", Instance_Type="", Region_Code="", EndingRange="750"),
    {**row("P4D", "80000", **RESERVED), "Unit": "Quantity", "RateCode": "P4D.HU7G6KETJZ.2TG2D8R56U"},
    row("P4D", "9.1300000000", **RESERVED),
    {**row("P4D", "17.0000000000", **RESERVED), "OfferingClass": "convertible", "OfferTermCode": "CONV"},
)  # fmt: skip


def parsed(body: bytes, **request: str) -> ParseResult:
    return AwsOfferFile().parse([RawPage(body, ref="a file", request=request)], fetched_at=NOW)


def prices(result: ParseResult) -> set[tuple[Any, ...]]:
    return {(o.item, o.region, o.os, o.contract, o.payment, o.amount, o.upfront) for o in result.offers}


@BOTH
def test_the_rows_meant_are_left_and_no_others(write: Write) -> None:
    assert prices(parsed(write(ROWS))) == {
        ("p4d.24xlarge", "us-east-1", "linux", "on_demand", None, Decimal("21.957642"), None),
        ("p5.48xlarge", "us-east-1", "linux", "on_demand", None, Decimal("55.04"), None),
        ("p4d.24xlarge", "us-east-1", "linux", "reserved_1y", "partial", Decimal("9.13"), Decimal(80000)),
    }


@BOTH
def test_windows_is_there_for_whom_asks_for_it(write: Write) -> None:
    found = {(item, os, amount) for item, _, os, _, _, amount, _ in prices(parsed(write(ROWS), os="windows"))}
    assert found == {("p4d.24xlarge", "windows", Decimal(25))}


@BOTH
def test_other_types_are_there_for_whom_asks_for_them(write: Write) -> None:
    rows = [*ROWS, row("M5", "0.192", Instance_Type="m5.xlarge", GPU="")]
    assert {each[0] for each in prices(parsed(write(rows), types="m5.xlarge"))} == {"m5.xlarge"}


@BOTH
def test_an_offer_is_dated_by_the_file_and_so_the_same_file_says_the_same_twice(write: Write) -> None:
    body = write(ROWS)
    once = parsed(body)
    again = AwsOfferFile().parse([RawPage(body, ref="a file")], fetched_at=datetime(2026, 9, 30, tzinfo=UTC))
    assert {offer.observed_at for offer in once.offers} == {datetime(2026, 9, 10, 19, 55, 14, tzinfo=UTC)}
    assert [o.observation_id for o in once.offers] == [o.observation_id for o in again.offers]


@BOTH
def test_both_shapes_keep_gpus_host_and_source_of_a_row(write: Write) -> None:
    offer = next(offer for offer in parsed(write(ROWS)).offers if offer.sku == "P4D")
    assert (offer.gpu_model, offer.gpu_count, offer.vcpu, offer.ram_gib) == ("a100-sxm4-40gb", 8, 96, 1152)
    assert (offer.source, offer.source_ref) == ("aws-offer-file", "a file")


@BOTH
def test_c03_two_rows_for_one_price_fail_with_their_ids(write: Write) -> None:
    with pytest.raises(AmbiguousRows, match=r"P4D.*P4E"):
        parsed(write([*ROWS, row("P4E", "22.0")]))


@BOTH
def test_a_few_prices_are_found_among_many_rows_that_are_counted(write: Write) -> None:
    rows = [*crowd(300), *ROWS, *({**each, "SKU": "X" + each["SKU"]} for each in crowd(300))]
    result = parsed(write(rows))
    assert len(result.offers) == 3
    assert result.rows >= 600
    assert result.bad == {}


@BOTH
def test_memory_does_not_grow_with_the_file(write: Write, tmp_path: Path) -> None:
    path = tmp_path / "offers"
    path.write_bytes(grown(write(ROWS), 10 * 2**20))
    assert path.stat().st_size > 9 * 2**20
    tracemalloc.start()
    result = AwsOfferFile().parse([RawPage(path=path, ref="a file")], fetched_at=NOW)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(result.offers) == 3
    assert peak < 6 * 2**20


@pytest.mark.parametrize("chunk", [1, 7, 64, 1000])
def test_json_reads_the_same_wherever_the_buffer_ends(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = prices(parsed(as_json(ROWS)))
    monkeypatch.setattr("planner.pricing.sources.aws_offer_json._CHUNK_CHARACTERS", chunk)
    assert prices(parsed(as_json(ROWS))) == whole


@pytest.mark.parametrize("share", [0.2, 0.6, 0.99])
def test_a_json_file_that_is_cut_off_gives_nothing(share: float) -> None:
    body = as_json(ROWS)
    with pytest.raises(BadAnswer, match="a file"):
        parsed(body[: int(len(body) * share)])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>\n",
        b"{}",
        b'{"publicationDate": "yesterday"}',
        b'{"terms": {}, "products": {}}',
        b'{"products": {"A": [',
        b'{"products": {"A": ' + b"[" * 100_000,
        b'{"x": ' + b"9" * 5000 + b"}",
        b'{"products" 1}',
        b'"a","b"\n' * 7,
    ],
)  # fmt: skip
def test_what_is_no_offer_file_is_refused(body: bytes) -> None:
    with pytest.raises(BadAnswer, match="a file"):
        parsed(body)


def test_terms_before_their_products_are_refused() -> None:
    whole = json.loads(as_json(ROWS))
    turned = {"terms": whole["terms"], "products": whole["products"]}
    with pytest.raises(BadAnswer, match="terms stand before products"):
        parsed(json.dumps(turned).encode())


def test_a_csv_line_that_is_cut_off_is_counted() -> None:
    many = [row(f"S{n}", "1.0", Instance_Type=f"m5.{n}xlarge", GPU="") for n in range(40)]
    body = as_csv([*many, row("LAST", "1.0")])
    result = parsed(body[:-40])
    assert result.bad == {"cut off or of another width": 1}


def test_fetching_needs_a_directory_and_says_so() -> None:
    with pytest.raises(SourceUnavailable, match="directory"):
        next(AwsOfferFile().fetch(FetchContext()))


def test_a_file_is_loaded_to_the_directory_and_an_older_one_by_its_version(
    server: HTTPServer, tmp_path: Path
) -> None:
    path = "/offers/v1.0/aws/AmazonEC2/{}/eu-west-1/index.csv"
    old = as_csv([row("P4D", "32.7726", Region_Code="eu-west-1")])
    server.expect_request(path.format("current")).respond_with_data(as_csv(ROWS))
    server.expect_request(path.format("20250601000000")).respond_with_data(old)
    here = {"base_urls": {"aws-offer-file": server.url_for("").rstrip("/")}, "directory": tmp_path}
    found = {}
    for version in ("current", "20250601000000"):
        settings = {"aws-offer-file": {"version": version}}
        context = local_context(**here, regions=("eu-west-1",), settings=settings)
        result = AwsOfferFile().parse(AwsOfferFile().fetch(context), fetched_at=NOW)
        found[version] = result.offers[0].amount
    assert found == {"current": Decimal("21.957642"), "20250601000000": Decimal("32.7726")}
