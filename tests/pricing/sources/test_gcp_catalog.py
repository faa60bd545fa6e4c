"""planner.pricing.sources.gcp_*: a machine is the exact sum of its parts, or has no price; T10 to T16."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from gcp_fakes import A100, A100_80, CORE, NOW, RAM, SSD, machine, machines, one, sku, skus

from planner.pricing import checks
from planner.pricing.sources import (
    BadAnswer,
    ParseResult,
    RawPage,
    TooManyBadRows,
)
from planner.pricing.sources.gcp_catalog import GcpCatalog, sku_to_json
from planner.pricing.sources.gcp_shapes import known_shapes
from planner.pricing.sources.gcp_skus import classify

SAMPLE = "billing_skus_a2_sample.json"


def parsed(*pages: RawPage) -> ParseResult:
    return GcpCatalog().parse(pages, fetched_at=NOW)


def prices(result: ParseResult, region: str = "us-central1") -> dict[tuple[str, str], Decimal | None]:
    return {(o.item, o.contract): o.amount for o in result.offers if o.region == region}


# --- the recorded catalog


def test_c06_the_recorded_skus_compose_to_the_published_prices_exactly(recorded: Path) -> None:
    page = RawPage((recorded / "gcp" / SAMPLE).read_bytes(), ref="recorded")
    result = parsed(page)
    assert one(result, "a2-highgpu-1g").amount == Decimal("3.673385")
    assert one(result, "a2-megagpu-16g").amount == Decimal("55.739504")
    assert checks.verify(result.offers) == ()


def test_c06_a_machine_tells_its_parts_and_they_add_up() -> None:
    offer = one(parsed(skus(CORE, RAM, A100)), "a2-highgpu-1g")
    parts = [part.quantity * part.amount for part in offer.components]
    assert parts == [Decimal("2.933908"), Decimal("0.379332"), Decimal("0.360145")]
    assert sum(parts) == offer.amount == Decimal("3.673385")
    assert [part.unit for part in offer.components] == ["gpu_hour", "vcpu_hour", "gib_hour"]
    assert (offer.gpu_model, offer.gpu_count, offer.gpu_mem_mib) == ("a100-sxm4-40gb", 1, 40960)


def test_every_recorded_on_demand_price_of_a2_highgpu_is_met(recorded: Path) -> None:
    result = parsed(RawPage((recorded / "gcp" / SAMPLE).read_bytes(), ref="recorded"))
    with (recorded / "gcp" / "gce_gpu_ondemand_spot_latest.csv").open(newline="") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if row["region"] == "us-central1"
            and row["capacity"] == "on_demand"
            and row["machine_type"].startswith(("a2-highgpu", "a2-megagpu"))
        ]
    assert len(rows) == 5
    for row in rows:
        assert one(result, row["machine_type"]).amount == Decimal(row["usd_per_instance_hour"])


def test_the_librarys_own_sku_reads_as_the_recorded_one_does(recorded: Path) -> None:
    from google.cloud.billing_v1.types import Sku

    answer = json.loads((recorded / "gcp" / SAMPLE).read_text())
    written = [sku_to_json(Sku.from_json(json.dumps(row))) for row in answer["skus"]]
    assert prices(parsed(skus(*written))) == prices(parsed(skus(*answer["skus"])))


def test_c06_units_and_nanos_never_pass_through_a_float() -> None:
    offer = one(parsed(skus(CORE, RAM, A100)), "a2-highgpu-8g")
    # 2 + 933908000 / 1e9 is 2.9339079999999997 in floating point.
    assert str(offer.components[0].amount) == "2.933908000"
    assert offer.amount == 8 * Decimal("3.673385")


# --- parts


@pytest.mark.parametrize("left", [(CORE, RAM), (A100,), (A100, CORE), (A100, RAM)])
def test_t10_a_host_without_gpu_and_a_gpu_without_host_have_no_price(
    left: tuple[dict[str, Any], ...],
) -> None:
    result = parsed(skus(*left))
    assert result.offers == ()
    assert any("no single price" in reason for reason in result.skipped) == (A100 in left)


def test_t11_bundled_local_ssd_is_in_the_price() -> None:
    result = parsed(skus(CORE, RAM, A100_80, SSD))
    offer = one(result, "a2-ultragpu-1g")
    # Published on 2026-08-03 as 5.06879789041096: the monthly price of 375 GiB over 730 hours.
    assert offer.amount is not None
    assert round(offer.amount, 14) == Decimal("5.06879789041096")
    assert offer.local_ssd_gib == 375
    assert offer.components[-1].quantity == 375
    assert checks.verify(result.offers) == ()


def test_t11_without_a_price_of_the_ssd_there_is_none_of_the_machine() -> None:
    result = parsed(skus(CORE, RAM, A100_80))
    assert result.offers == ()
    assert result.skipped["on_demand: no single price of the local SSD"] == 12


def test_t11_recorded_prices_are_whole_nano_dollars_once_our_bundled_ssd_is_taken_off(recorded: Path) -> None:
    # Every other part is priced in whole nano-dollars an hour; only SSD, 0.08 a GiB and month, leaves a tail.
    checked = 0
    with (recorded / "gcp" / "gce_gpu_ondemand_spot_latest.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            shape = known_shapes().get(row["machine_type"])
            if shape is None or row["region"] != "us-central1" or row["capacity"] != "on_demand":
                continue
            rest = Decimal(row["usd_per_instance_hour"]) - shape.ssd_gib * Decimal("0.08") / 730
            assert abs(rest - round(rest, 9)) < Decimal("5e-11"), row["machine_type"]
            checked += 1
    assert checked >= 15


def test_t12_a_list_price_of_a_machine_that_is_not_sold_on_demand_says_so() -> None:
    result = parsed(
        skus(
            sku("A3 Instance Core running in Americas", "0.029"),
            sku("A3 Instance Ram running in Americas", "0.0025", unit="GiBy.h"),
            sku("Nvidia H100 80GB GPU running in Americas", "9.796550569", group="GPU"),
            SSD,
        )
    )
    assert one(result, "a3-highgpu-1g").availability == "listed_only"
    assert one(result, "a3-highgpu-8g").availability == "unknown"


def test_t13_a_machine_type_listed_where_no_sku_is_sold_has_no_price() -> None:
    result = parsed(machines(machine("a2-highgpu-1g", "europe-west4-a")), skus(CORE, RAM, A100))
    assert result.offers == ()
    assert result.skipped["machine not offered in the region"] > 0


def test_t13_a_sku_in_a_region_without_the_machine_makes_no_offer() -> None:
    result = parsed(machines(machine("a2-highgpu-1g", "us-central1-b")), skus(CORE, RAM, A100))
    assert {(offer.item, offer.region) for offer in result.offers} == {("a2-highgpu-1g", "us-central1")}


def test_t14_a_g4_with_a_part_of_a_gpu_is_not_composed_as_one_with_a_whole() -> None:
    fraction = machine(
        "g4-standard-6",
        accelerators=[{"guestAcceleratorType": "nvidia-rtx-pro-6000", "guestAcceleratorCount": 1}],
    )
    whole = machine("g4-standard-96")
    result = parsed(
        machines(fraction, whole),
        skus(
            sku("G4 Instance Core running in Americas", "0.04"),
            sku("G4 Instance Ram running in Americas", "0.005", unit="GiBy.h"),
            sku("RTX 6000 96GB running in Americas", "1.5", group="GPU"),
        ),
    )
    assert {offer.item for offer in result.offers} == {"g4-standard-96"}
    assert one(result, "g4-standard-96").gpu_count == 2  # 96 counts vCPUs
    assert any("g4-standard-6" in warning for warning in result.warnings)


SPOT = (
    sku("Spot Preemptible A2 Instance Core running in Americas", "0.010", usage="Preemptible"),
    sku("Spot Preemptible A2 Instance Ram running in Americas", "0.001", unit="GiBy.h", usage="Preemptible"),
    sku("Nvidia Tesla A100 GPU attached to Spot Preemptible VMs running in Americas", "1.0", group="GPU"),
)


def test_t15_a_spot_sku_flagged_on_demand_is_spot() -> None:
    assert SPOT[2]["category"]["usageType"] == "OnDemand"
    for order in ((CORE, RAM, A100, *SPOT), (*SPOT, A100, RAM, CORE)):
        result = prices(parsed(skus(*order)))
        assert result["a2-highgpu-1g", "on_demand"] == Decimal("3.673385")
        assert result["a2-highgpu-1g", "spot"] == Decimal("1.205")
    assert prices(parsed(skus(*SPOT)))["a2-highgpu-1g", "spot"] == Decimal("1.205")
    assert ("a2-highgpu-1g", "on_demand") not in prices(parsed(skus(*SPOT)))


@pytest.mark.parametrize(
    ("description", "usage", "contract", "name"),
    [
        ("A2 Instance Core running in Americas", "OnDemand", "on_demand", "A2 Instance Core"),
        ("Spot Preemptible A2 Instance Core running in Tokyo", "Preemptible", "spot", "A2 Instance Core"),
        ("Preemptible A2 Instance Core running in Tokyo", "Preemptible", "spot", "A2 Instance Core"),
        ("A2 Instance Core running in Tokyo", "Preemptible", "spot", "A2 Instance Core"),
        (
            "Nvidia L4 GPU attached to Spot Preemptible VMs running in Americas",
            "OnDemand",
            "spot",
            "Nvidia L4 GPU",
        ),
        ("SSD backed Local Storage in Tokyo", "OnDemand", "on_demand", "SSD backed Local Storage"),
        (
            "SSD backed Local Storage attached to Spot Preemptible VMs",
            "OnDemand",
            "spot",
            "SSD backed Local Storage",
        ),
        ("RTX 6000 96GB running in Delhi", "OnDemand", "on_demand", "RTX 6000 96GB"),
        ("Commitment v1: A2 Cpu in APAC for 1 Year", "Commit1Yr", "reserved_1y", "A2 Cpu"),
        ("Commitment v1: A2 Ram in APAC for 3 Years", "Commit3Yr", "reserved_3y", "A2 Ram"),
        (
            "Commitment v1: Nvidia Tesla A100 GPU running in Americas for 3 Years",
            "Commit3Yr",
            "reserved_3y",
            "Nvidia Tesla A100 GPU",
        ),
    ],
)
def test_the_contract_of_a_sku_is_read_from_its_description(
    description: str, usage: str, contract: str, name: str
) -> None:
    assert classify(description, usage) == (contract, name)


@pytest.mark.parametrize(
    ("description", "usage"),
    [
        ("A2 Sole Tenancy Instance Core running in Americas", "OnDemand"),
        ("Reserved Nvidia H100 80GB Mega GPU in Americas in Calendar Mode", "OnDemand"),
        ("Nvidia H100 Mega 80GB GPU attached to DWS Defined Duration VMs running in Americas", "OnDemand"),
        ("DWS Calendar Mode A4 Nvidia B200 (1 gpu slice) running in Americas", "OnDemand"),
        ("Commitment: Compute Engine - 1 year - US", "Commit1Yr"),
        ("N1 Custom Instance Core running in Americas", "OnDemand"),
        ("Nvidia L4 Virtual Workstation GPU running in Netherlands", "OnDemand"),
        ("A2 Instance Core running in Americas", "Commit1Yr"),
        ("A2 Instance Core running in Americas", ""),
    ],
)
def test_what_is_booked_queued_or_of_other_tenancy_is_no_on_demand_price(
    description: str, usage: str
) -> None:
    assert classify(description, usage)[0] is None


def test_booked_capacity_does_not_undercut_the_on_demand_price() -> None:
    cheap = [
        sku("A2 Sole Tenancy Instance Core running in Americas", "0.001"),
        sku("Reserved Nvidia Tesla A100 GPU in Americas in Calendar Mode", "0.5", group="GPU"),
        sku("Commitment v1: Nvidia Tesla A100 GPU running in Americas for 1 Year", "1.8", usage="Commit1Yr"),
    ]
    assert one(parsed(skus(CORE, RAM, A100, *cheap)), "a2-highgpu-1g").amount == Decimal("3.673385")


def test_commitments_compose_to_reservations_of_a_year_or_three() -> None:
    rows = [
        sku(f"Commitment v1: {name} in Americas for {years}", price, unit=unit, group=group, usage=usage)
        for years, usage in (("1 Year", "Commit1Yr"), ("3 Years", "Commit3Yr"))
        for name, price, unit, group in (
            ("A2 Cpu", "0.02", "h", "CPU"),
            ("A2 Ram", "0.002", "GiBy.h", "RAM"),
            ("Nvidia Tesla A100 GPU running", "1.8", "h", "GPU"),
        )
    ]
    result = parsed(skus(*rows))
    offer = one(result, "a2-highgpu-1g", contract="reserved_3y")
    assert (offer.term_months, offer.payment, offer.amount) == (36, "none", Decimal("2.21"))
    assert checks.verify(result.offers) == ()


def test_two_skus_of_one_part_that_differ_are_named_and_not_picked_from() -> None:
    twin = sku("A2 Instance Core running in Americas", "0.05", sku_id="TWIN")
    result = parsed(skus(CORE, twin, RAM, A100))
    assert result.offers == ()
    assert any("TWIN (0.050000000)" in warning for warning in result.warnings)


def test_two_skus_of_one_part_at_one_price_are_one() -> None:
    twin = {**CORE, "skuId": "TWIN"}
    assert one(parsed(skus(CORE, twin, RAM, A100)), "a2-highgpu-1g").amount == Decimal("3.673385")


def test_t16_parts_in_several_currencies_are_not_added_up() -> None:
    rupiah = sku("Nvidia Tesla A100 GPU running in Americas", "45000", group="GPU", currency="IDR")
    result = parsed(skus(CORE, RAM, rupiah))
    assert result.offers == ()
    assert result.skipped["parts in several currencies"] > 0


def test_t16_a_catalog_in_another_currency_keeps_it() -> None:
    rows = [
        sku("A2 Instance Core running in Americas", "500", currency="IDR"),
        sku("A2 Instance Ram running in Americas", "60", unit="GiBy.h", currency="IDR"),
        sku("Nvidia Tesla A100 GPU running in Americas", "45000", group="GPU", currency="IDR"),
    ]
    offer = one(parsed(skus(*rows)), "a2-highgpu-1g")
    assert (offer.currency, offer.amount) == ("IDR", Decimal(45000 + 12 * 500 + 85 * 60))


# --- machine types


def test_the_recorded_machine_types_read_and_hold_no_gpus(recorded: Path) -> None:
    page = RawPage((recorded / "gcp" / "compute_machine_types_sample.json").read_bytes(), ref="recorded")
    result = parsed(page, skus(CORE, RAM, A100))
    assert result.offers == ()
    assert result.warnings == ()


def test_sizes_of_the_api_hold_over_our_table_and_a_difference_is_told() -> None:
    row = machine("a2-highgpu-1g", guestCpus=16, memoryMb=87040)
    result = parsed(machines(row), skus(CORE, RAM, A100))
    assert one(result, "a2-highgpu-1g").amount == Decimal("3.673385") + 4 * Decimal("0.031611")
    assert any("16 vCPUs" in warning for warning in result.warnings)


def test_an_aggregated_list_reads_as_that_of_a_zone() -> None:
    scopes = {
        "zones/us-central1-a": {"machineTypes": [machine("a2-highgpu-1g")]},
        "zones/us-east1-b": {"warning": {"code": "NO_RESULTS_ON_PAGE"}},
    }
    page = RawPage(json.dumps({"items": scopes}).encode(), ref="aggregated")
    assert len(parsed(page, skus(CORE, RAM, A100)).offers) == 1


# --- rows and pages


def test_regions_and_types_that_were_asked_for_are_the_only_ones() -> None:
    result = parsed(skus(CORE, RAM, A100, regions="us-east1", types="a2-highgpu-8g,a2-highgpu-1g"))
    assert {(offer.item, offer.region) for offer in result.offers} == {
        ("a2-highgpu-1g", "us-east1"),
        ("a2-highgpu-8g", "us-east1"),
    }


def test_skus_of_other_things_are_counted() -> None:
    result = parsed(skus(CORE, RAM, A100, sku("N2 Instance Core running in Americas", "0.03")))
    assert result.rows == 4
    assert result.skipped["part of another machine or service"] == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"pricingInfo": []},
        {"serviceRegions": None},
        {"skuId": ""},
        {"category": 7},
        {"description": 7},
    ],
)
def test_a_sku_that_does_not_read_is_bad(changed: dict[str, Any]) -> None:
    with pytest.raises(TooManyBadRows, match="1 of 3"):
        parsed(skus(CORE, RAM, {**A100, **changed}))


@pytest.mark.parametrize(
    "price", [{"units": "-1"}, {"nanos": -5}, {"units": "1e9"}, {"nanos": 10**9}, {"units": 2.5}]
)
def test_an_amount_that_is_none_is_bad(price: dict[str, Any]) -> None:
    row = json.loads(json.dumps(A100))
    row["pricingInfo"][0]["pricingExpression"]["tieredRates"][0]["unitPrice"] |= price
    with pytest.raises(TooManyBadRows, match="no amount"):
        parsed(skus(CORE, RAM, row))


@pytest.mark.parametrize("unit", ["mo", "", "GBy.h"])
def test_a_unit_that_is_not_known_is_bad(unit: str) -> None:
    with pytest.raises(TooManyBadRows, match="unknown usage unit"):
        parsed(skus(CORE, RAM, {**sku("Nvidia Tesla A100 GPU running in Americas", "2", unit=unit)}))


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"skus": {}}', b'{"items": 1}'])
def test_an_answer_that_is_none_says_so(body: bytes) -> None:
    with pytest.raises(BadAnswer, match="a test"):
        parsed(RawPage(body, ref="a test"))
