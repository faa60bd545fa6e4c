"""planner.pricing.sources.aws_price_list: one row a price, or none; traps T1 to T5, T9."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from aws_fakes import NOW, Clients, fetched, item, page

from planner.pricing import checks
from planner.pricing.offer import Offer
from planner.pricing.sources import (
    AmbiguousRows,
    BadAnswer,
    RawPage,
    TooManyBadRows,
)
from planner.pricing.sources.aws_price_list import AwsPriceList, filters

GET_PRODUCTS = "get_products_p4d_p5_g_2026-09-10.json"
UNUSED = "get_products_unused_reservation_sample.json"
WINDOWS = {"operatingSystem": "Windows", "operation": "RunInstances:0002"}


def parsed(items: Sequence[str]) -> tuple[Offer, ...]:
    return AwsPriceList().parse([page(items)], fetched_at=NOW).offers


def only(items: Sequence[str], **wanted: Any) -> Offer:
    """The one offer with these fields."""
    found = [o for o in parsed(items) if all(getattr(o, name) == value for name, value in wanted.items())]
    assert len(found) == 1, found
    return found[0]


# --- the recorded answer


def test_p4d_and_p5_cost_exactly_what_the_recorded_answer_says_and_no_p5_is_free(recorded: Path) -> None:
    answer = json.loads((recorded / "aws" / GET_PRODUCTS).read_text())
    _, offers = fetched(Clients({"pricing": {"get_products": [answer]}}))
    prices = {offer.item: offer.amount for offer in offers if offer.os == "linux"}
    assert prices == {
        "p4d.24xlarge": Decimal("21.957642"),
        "p5.48xlarge": Decimal("55.04"),
        "g4dn.xlarge": Decimal("0.526"),
        "g5.2xlarge": Decimal("1.212"),
        "g6.xlarge": Decimal("0.8048"),
        "m5.xlarge": Decimal("0.192"),
    }
    assert [o.amount for o in offers if o.os == "windows"] == [Decimal("0.376")]
    assert all(o.amount for o in offers)


def test_each_row_of_the_recorded_answer_becomes_an_offer_or_is_accounted_for(recorded: Path) -> None:
    pages = [RawPage((recorded / "aws" / GET_PRODUCTS).read_bytes(), ref="recorded")]
    result = AwsPriceList().parse(pages, fetched_at=NOW)
    assert result.rows == 11
    assert len(result.offers) == 7
    assert result.skipped == {
        "market not on-demand": 1,
        "pre-installed software": 1,
        "tenancy not shared": 1,
        "capacity reservation": 1,
    }
    assert result.bad == {}


def test_an_offer_can_be_audited_back_to_the_answer(recorded: Path) -> None:
    body = (recorded / "aws" / GET_PRODUCTS).read_bytes()
    result = AwsPriceList().parse([RawPage(body, ref="recorded")], fetched_at=NOW)
    p4d = next(offer for offer in result.offers if offer.item == "p4d.24xlarge")
    assert (p4d.sku, p4d.currency, p4d.unit) == ("H7NGEAC6UEHNTKSJ", "USD", "instance_hour")
    assert p4d.raw_sha256 == RawPage(body, ref="again").sha256
    assert p4d.source == "aws-price-list"
    assert p4d.observed_at == p4d.fetched_at == NOW
    assert p4d.valid_from is not None
    assert p4d.valid_from.isoformat() == "2026-09-01T00:00:00+00:00"
    assert (p4d.gpu_model, p4d.gpu_count, p4d.gpu_mem_mib, p4d.gpu_form) == (
        "a100-sxm4-40gb",
        8,
        40960,
        "sxm",
    )
    assert (p4d.vcpu, p4d.ram_gib, p4d.net_gbps) == (96, 1152, 400)
    assert p4d.local_ssd_gib == Decimal("7450.6")  # 8 × 1000 GB
    assert p4d.amount_per_gpu == Decimal("2.74470525")


def test_what_is_parsed_with_gpus_passes_the_invariants(recorded: Path) -> None:
    body = (recorded / "aws" / GET_PRODUCTS).read_bytes()
    offers = AwsPriceList().parse([RawPage(body, ref="recorded")], fetched_at=NOW).offers
    assert checks.verify(offer for offer in offers if offer.gpu_count) == ()


def test_t1_an_unused_reservation_and_a_disk_are_no_instance_price(recorded: Path) -> None:
    pages = [RawPage((recorded / "aws" / UNUSED).read_bytes(), ref="recorded")]
    result = AwsPriceList().parse(pages, fetched_at=NOW)
    assert result.offers == ()
    assert result.skipped == {"capacity reservation": 1, "not a virtual machine": 1}


# --- which row


TWINS = (
    item("A1", "21.9600000000", instanceType="p4d.24xlarge"),
    item(
        "A2", "21.9600000000", instanceType="p4d.24xlarge", capacitystatus="UnusedCapacityReservation"
    ),
    item(
        "A3", "0.0000000000", instanceType="p4d.24xlarge", capacitystatus="AllocatedCapacityReservation"
    ),
)  # fmt: skip


@pytest.mark.parametrize("order", list(permutations(TWINS)))
def test_c02_of_three_capacity_twins_one_is_the_price_in_every_order(order: Sequence[str]) -> None:
    assert [offer.amount for offer in parsed(order)] == [Decimal("21.96")]


FIVE = (
    item("L", "0.1330000000", operation="RunInstances"),
    item("LS", "0.6140000000", operation="RunInstances:0004", preInstalledSw="SQL Std"),
    item("W", "0.2590000000", **WINDOWS),
    item("WB", "0.1330000000", operatingSystem="Windows", licenseModel="Bring your own license"),
    item("R", "0.1930000000", operatingSystem="RHEL", operation="RunInstances:0010"),
)


@pytest.mark.parametrize("order", list(permutations(FIVE)))
def test_c03_linux_and_windows_have_one_price_each_and_sql_server_none(order: Sequence[str]) -> None:
    assert {offer.os: str(offer.amount) for offer in parsed(order)} == {
        "linux": "0.1330000000",
        "windows": "0.2590000000",
    }


def test_c03_several_rows_that_pass_every_filter_fail_with_their_ids() -> None:
    rows = [item("ONE", "0.1330000000"), item("TWO", "0.1930000000")]
    with pytest.raises(AmbiguousRows, match=r"m3\.large in us-east-1 \(linux.*ONE.*TWO"):
        parsed(rows)


def test_c03_asking_for_windows_asks_the_api_for_windows_rows() -> None:
    for system, value in (("linux", "Linux"), ("windows", "Windows")):
        asked = {each["Field"]: each["Value"] for each in filters("us-east-1", system, ["p4d.24xlarge"])}
        assert asked["operatingSystem"] == value


ZONES = (
    item("R", "0.0850000000", instanceType="c5.large", regionCode="us-west-2", location="US West (Oregon)"),
    item(
        "Z", "0.1020000000", instanceType="c5.large", regionCode="us-west-2-lax-1",
        location="US West (Los Angeles)", locationType="AWS Local Zone",
    ),
)  # fmt: skip


@pytest.mark.parametrize("order", list(permutations(ZONES)))
def test_c04_a_local_zone_does_not_overwrite_its_region(order: Sequence[str]) -> None:
    assert [(offer.region, str(offer.amount)) for offer in parsed(order)] == [("us-west-2", "0.0850000000")]


def test_t2_a_capacity_block_at_zero_is_not_a_free_p5() -> None:
    block = item("CB", "0.0000000000", instanceType="p5.48xlarge", marketoption="CapacityBlock",
                 operation="RunInstances:CB")  # fmt: skip
    listed = item("OD", "55.0400000000", instanceType="p5.48xlarge", operation="RunInstances")
    for order in ([block, listed], [listed, block]):
        assert [str(offer.amount) for offer in parsed(order)] == ["55.0400000000"]
    assert parsed([block]) == ()


def test_t2_the_question_names_the_market() -> None:
    asked = {each["Field"]: each for each in filters("us-east-1", "linux", ["p5.48xlarge", "p4d.24xlarge"])}
    assert asked["marketoption"]["Value"] == "OnDemand"
    assert asked["capacitystatus"]["Value"] == "Used"
    assert asked["instanceType"] == {
        "Type": "ANY_OF", "Field": "instanceType", "Value": "p5.48xlarge,p4d.24xlarge",
    }  # fmt: skip


def test_t3_a_price_in_yuan_stays_in_yuan() -> None:
    offer = only([item("CN", "300.5", instanceType="p3.2xlarge", regionCode="cn-north-1", currency="CNY")])
    assert (offer.currency, offer.amount, offer.region) == ("CNY", Decimal("300.5"), "cn-north-1")


def test_t3_a_row_at_zero_says_that_the_price_is_not_known() -> None:
    offer = only([item("GOV", "0.0000000000", regionCode="us-gov-west-1")])
    assert offer.amount is None
    assert offer.note == "the list says 0, which is no price"


def test_t3_an_unknown_currency_is_counted_and_too_many_refuse_the_answer() -> None:
    good = [item(f"G{n}", "1.0", instanceType=f"m5.{n}xlarge") for n in range(40)]
    strange = item("X", "1.0", currency="XXX", instanceType="c5.large")
    result = AwsPriceList().parse([page([*good, strange])], fetched_at=NOW)
    assert result.bad == {"unknown currency": 1}
    assert len(result.offers) == 40
    with pytest.raises(TooManyBadRows, match="unknown currency"):
        parsed([strange])


def test_t4_the_region_is_the_code_and_never_the_name_of_the_place() -> None:
    assert parsed([item("N", "1.0", regionCode="", location="US East (N. Virginia)")]) == ()


@pytest.mark.parametrize(
    "changed",
    [
        {"tenancy": "Dedicated"},
        {"tenancy": "Host"},
        {"preInstalledSw": "SQL Ent"},
        {"operatingSystem": "SUSE"},
        {"family": "Compute Instance (bare metal)"},
        {"operation": "RunInstances:0800"},
        {"instanceType": "", "regionCode": ""},
    ],
)
def test_t5_other_licences_tenancies_and_metal_are_left_out(changed: dict[str, str]) -> None:
    result = AwsPriceList().parse([page([item("S", "9.9", **changed)])], fetched_at=NOW)
    assert result.offers == ()
    assert sum(result.skipped.values()) == result.rows == 1


def test_t5_of_three_windows_rows_that_pass_seven_filters_the_licensed_one_is_the_price() -> None:
    windows = {"instanceType": "m5.xlarge", "operatingSystem": "Windows"}
    rows = [
        item("A", "0.3760000000", **windows, operation="RunInstances:0002"),
        item("B", "0.1920000000", **windows, operation="RunInstances:0800"),
        item("C", "0.1920000000", **windows, operation="RunInstances:0002",
             licenseModel="Bring your own license"),
    ]  # fmt: skip
    assert str(only(rows, os="windows").amount) == "0.3760000000"


def test_t9_a_family_retired_from_the_list_is_no_row_and_no_error() -> None:
    _, offers = fetched(Clients({"pricing": {"get_products": [{"PriceList": []}]}}))
    assert offers == ()


def test_a_type_with_gpus_that_nobody_knows_is_left_out_and_named() -> None:
    result = AwsPriceList().parse(
        [page([item("S", "9.9", instanceType="p9.48xlarge", gpu="8")])], fetched_at=NOW
    )
    assert result.offers == ()
    assert result.skipped == {"unknown GPU": 1}
    assert "p9.48xlarge" in result.warnings[0]


# --- reservations


def reserved(payment: str, length: str, rates: dict[str, str], offering_class: str = "standard") -> str:
    row = json.loads(item("RI", "21.957642", instanceType="p4d.24xlarge"))
    dimensions = {
        f"RI.T.{unit}": {"unit": unit, "endRange": "Inf", "beginRange": "0", "pricePerUnit": {"USD": amount}}
        for unit, amount in rates.items()
    }
    attributes = {
        "LeaseContractLength": length,
        "PurchaseOption": payment,
        "OfferingClass": offering_class,
    }
    row["terms"]["Reserved"] = {"RI.T": {"termAttributes": attributes, "priceDimensions": dimensions}}
    return json.dumps(row)


def test_a_reservation_keeps_its_fee_apart_from_its_hourly_part() -> None:
    partial = only(
        [reserved("Partial Upfront", "1yr", {"Quantity": "80000", "Hrs": "9.13"})], contract="reserved_1y"
    )
    assert (partial.upfront, partial.amount, partial.term_months) == (Decimal(80000), Decimal("9.13"), 12)
    assert partial.payment == "partial"


def test_a_reservation_paid_in_advance_has_no_hourly_price_rather_than_zero() -> None:
    prepaid = only(
        [reserved("All Upfront", "3 yr", {"Quantity": "280000", "Hrs": "0.0000000000"})],
        contract="reserved_3y",
    )
    assert (prepaid.upfront, prepaid.amount, prepaid.payment) == (Decimal(280000), None, "all_upfront")


def test_a_convertible_reservation_is_counted_and_left_out() -> None:
    rows = [reserved("No Upfront", "1yr", {"Hrs": "13.5"}, "convertible")]
    result = AwsPriceList().parse([page(rows)], fetched_at=NOW)
    assert [offer.contract for offer in result.offers] == ["on_demand"]
    assert result.skipped == {"convertible reservation": 1}


# --- what does not read


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>busy</html>", b'{"PriceList": [', b"[]", b'{"PriceList": "x"}', b'{"a": NaN}', b"\xff\xfe"],
)
def test_an_answer_that_is_none_says_so(body: bytes) -> None:
    with pytest.raises(BadAnswer, match="a test"):
        AwsPriceList().parse([RawPage(body, ref="a test")], fetched_at=NOW)


@pytest.mark.parametrize("price", ["NaN", "-1", "1e999999", "1,000", "", "Infinity", "9" * 40])
def test_a_price_that_is_no_number_is_a_bad_row(price: str) -> None:
    with pytest.raises(TooManyBadRows, match="price"):
        parsed([item("S", price)])


def test_a_row_that_is_not_json_is_a_bad_row() -> None:
    with pytest.raises(TooManyBadRows, match="not JSON"):
        parsed(["{"])
