"""Prices from other projects' catalogues: SkyPilot, gpuhunt, Vantage, with the traps in each (T23-T29)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from local_server import local_context
from pytest_httpserver import HTTPServer

from planner.pricing.errors import BadPriceFile
from planner.pricing.import_files import FileResult, read_price_file
from planner.pricing.offer import Offer
from planner.pricing.sources import BadAnswer, RawPage
from planner.pricing.sources.answers import UnreadableRow
from planner.pricing.sources.catalog_gpus import CatalogGpu, catalog_gpu, slug
from planner.pricing.sources.gpuhunt_catalog import GpuhuntCatalog
from planner.pricing.sources.skypilot_catalog import NAME, SkyPilotCatalog
from planner.pricing.store import PriceStore

NOW = datetime(2026, 11, 30, tzinfo=UTC)
SKYPILOT = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice\n"
GPUHUNT = "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor\n"


def skypilot(rows: str, provider: str = "lambda") -> tuple[Offer, ...]:
    page = RawPage((SKYPILOT + rows).encode(), ref="vms.csv", request={"provider": provider})
    return SkyPilotCatalog().parse([page], fetched_at=NOW).offers


def gpuhunt(rows: str, provider: str = "runpod") -> tuple[Offer, ...]:
    page = RawPage((GPUHUNT + rows).encode(), ref=f"{provider}.csv", request={"provider": provider})
    return GpuhuntCatalog().parse([page], fetched_at=NOW).offers


def imported(tmp_path: Path, name: str, text: str, observed_at: datetime | None = NOW) -> FileResult:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return read_price_file(path, fetched_at=NOW, observed_at=observed_at)


# --- the recorded file


def test_the_recorded_rows_of_lambda_and_runpod_line_up_with_our_items(
    recorded: Path, loaded: PriceStore
) -> None:
    path = recorded / "neocloud" / "skypilot_lambda_runpod_v8_distinct.csv"
    found = read_price_file(path, fetched_at=NOW, observed_at=NOW)
    assert (found.form, found.bad) == ("skypilot-csv", ())
    by_item = {offer.item: offer for offer in found.offers}
    assert by_item["lambda.gpu_8x_h100_sxm5"].amount == Decimal("31.92")
    assert by_item["lambda.gpu_8x_a100_80gb_sxm4"].gpu_model == "a100-sxm4-80gb"
    ours = {offer.price_id for offer in loaded.latest(provider=("lambda", "runpod"))}
    assert {offer.price_id for offer in found.offers} <= ours


# --- traps


def test_t23_a_community_machine_is_another_contract_than_a_secure_one() -> None:
    rows = "1x_RTX4090_SECURE,RTX4090,1,8,40,0.69,US,,\n1x_RTX4090_COMMUNITY,RTX4090,1,8,40,0.34,US,,0.20\n"
    found = {(offer.contract, offer.amount) for offer in skypilot(rows, "runpod")}
    assert found == {
        ("on_demand", Decimal("0.69")), ("community", Decimal("0.34")), ("spot", Decimal("0.20")),
    }  # fmt: skip


def test_t24_t38_the_price_is_of_the_instance_and_per_gpu_is_its_share() -> None:
    (found,) = skypilot("gpu_8x_h100_sxm5,H100,8.0,208,1800,31.92,us,,\n")
    assert (found.unit, found.amount, found.amount_per_gpu) == (
        "instance_hour",
        Decimal("31.92"),
        Decimal("3.99"),
    )


def test_t25_a_region_blind_seller_has_one_price_and_says_nothing_on_stock() -> None:
    rows = "".join(f"gpu_1x_a10,A10,1,30,200,1.29,region-{number},,\n" for number in range(17))
    (found,) = skypilot(rows)
    assert (found.region, found.availability) == ("all", "unknown")
    assert "neither date nor stock" in str(found.note)


def test_t25_where_regions_disagree_the_dearer_holds_and_it_is_said() -> None:
    page = RawPage(
        (SKYPILOT + "gpu_1x_a10,A10,1,30,200,1.29,a,,\ngpu_1x_a10,A10,1,30,200,1.49,b,,\n").encode(),
        ref="vms.csv",
        request={"provider": "lambda"},
    )
    result = SkyPilotCatalog().parse([page], fetched_at=NOW)
    assert [offer.amount for offer in result.offers] == [Decimal("1.49")]
    assert "listed at 1.29 and at 1.49" in result.warnings[0]


@pytest.mark.parametrize("spot", ["0.00", "0", "", "1.39"])
def test_t26_a_spot_price_of_nothing_or_equal_to_the_price_is_not_known(spot: str) -> None:
    (found,) = skypilot(f"1x_A100-80GB_SECURE,A100-80GB,1.0,8,117,1.39,US,,{spot}\n", "runpod")
    assert (found.contract, found.amount) == ("on_demand", Decimal("1.39"))


def test_t26_a_price_of_zero_is_no_offer() -> None:
    assert skypilot("Standard_NC40ads_H100_v5,H100-NVL,1,40,320,0.0,eastus,,0\n", "azure") == ()
    assert gpuhunt("x,US,0.0,8,40,1,RTX4090,24,False,,nvidia\n") == ()


@pytest.mark.parametrize("memory", ["80", "81920", "655360", "640", ""])
def test_t27_memory_in_gib_in_mib_of_one_or_of_all_is_one_memory(memory: str) -> None:
    header = SKYPILOT.replace("GpuInfo", "GpuInfo.SizeInMiB")
    rows = f"gpu_8x_h100_sxm5,H100,8,208,1800,31.92,us,{memory},\n"
    page = RawPage((header + rows).encode(), ref="vms.csv", request={"provider": "lambda"})
    (found,) = SkyPilotCatalog().parse([page], fetched_at=NOW).offers
    assert found.gpu_mem_mib == 81920


def test_t27_gpu_info_as_a_python_dict_is_read_and_never_run() -> None:
    info = "\"{'Gpus': [{'Name': 'A100', 'MemoryInfo': {'SizeInMiB': 81920}}]}\""
    (found,) = skypilot(f"Standard_ND96amsr_A100_v4,A100,8,96,1900,32.77,eastus,{info},\n", "azure")
    assert found.gpu_mem_mib == 81920
    attack = "\"__import__('os').system('false')\""
    with pytest.raises(BadAnswer, match="a GPU of unknown memory"):
        skypilot(f"Standard_ND96amsr_A100_v4,A100,8,96,1900,32.77,eastus,{attack},\n", "azure")


@pytest.mark.parametrize(
    ("name", "instance", "memory", "id", "form"),
    [
        ("A100", "gpu_8x_a100_80gb_sxm4", 81920, "a100-sxm4-80gb", "sxm"),
        ("A100", "1x_A100_PCIE", 40960, "a100-pcie-40gb", "pcie"),
        ("A100", "some-machine", 40960, "a100-40gb", "unknown"),
        ("A100-80GB", "", None, "a100-80gb", "unknown"),
        ("H100", "1x-H100_NVL", None, "h100-80gb", "unknown"),
        ("H100-SXM", "", None, "h100-sxm5-80gb", "sxm"),
        ("H100NVL", "", None, "h100-nvl-94gb", "nvl"),
        ("NVIDIA GeForce RTX 4090", "", None, "rtx-4090-24gb", "pcie"),
        ("RTX6000", "", 49152, "rtx-6000-ada-48gb", "pcie"),
    ],
)
def test_t28_memory_and_form_tell_cards_of_one_name_apart_or_stay_unknown(
    name: str, instance: str, memory: float | None, id: str, form: str
) -> None:
    found = catalog_gpu(name, instance=instance, memory_mib=memory)
    assert found is not None
    assert (found.id, found.form) == (id, form)


def test_t28_a_name_of_two_memories_without_a_memory_is_refused() -> None:
    with pytest.raises(UnreadableRow, match="a GPU of unknown memory"):
        catalog_gpu("A100")


def test_t29_a_4090_with_48_gb_is_no_4090() -> None:
    with pytest.raises(UnreadableRow, match="a memory that this GPU does not have"):
        catalog_gpu("RTX4090", memory_mib=49152)
    rows = (
        "1x,US,0.34,8,40,1,RTX4090,48,False,,nvidia\n" + "1x,US,0.34,8,40,1,RTX4090,24,False,,nvidia\n" * 30
    )
    assert [offer.gpu_mem_mib for offer in gpuhunt(rows)] == [24576]


def test_t10_googles_rows_are_parts_of_a_machine_and_are_left_out() -> None:
    assert skypilot("a2-highgpu-1g,A100,1,12,85,0.94,us-central1,,\n", "gcp") == ()


def test_an_unknown_gpu_is_left_out_and_counted_never_guessed() -> None:
    page = RawPage(
        (SKYPILOT + "x,Z9000,1,8,40,0.1,us,,\n").encode(), ref="vms.csv", request={"provider": "lambda"}
    )
    result = SkyPilotCatalog().parse([page], fetched_at=NOW)
    assert (result.offers, dict(result.skipped)) == ((), {"a GPU not known here: Z9000": 1})


def test_names_of_items_are_those_of_our_own_prices() -> None:
    assert slug(CatalogGpu("a100-pcie-80gb", 81920, "pcie")) == "a100_pcie_80gb"
    assert slug(CatalogGpu("rtx-4090-24gb", 24576, "pcie")) == "rtx_4090"


# --- fetching and importing


def test_one_file_a_cloud_is_fetched(server: HTTPServer) -> None:
    rows = SKYPILOT + "gpu_1x_a10,A10,1,30,200,1.29,us,,\n"
    server.expect_request("/lambda/vms.csv").respond_with_data(rows)
    server.expect_request("/vast/vms.csv").respond_with_data(
        SKYPILOT + "1x-RTX_4090,RTX4090,1,8,40,0.4,US,,0.00\n"
    )
    context = local_context(
        base_urls={NAME: server.url_for("").rstrip("/")}, settings={NAME: {"providers": "lambda, vast"}}
    )
    pages = list(SkyPilotCatalog().fetch(context))
    found = SkyPilotCatalog().parse(pages, fetched_at=NOW).offers
    assert [(offer.item, offer.region) for offer in found] == [
        ("lambda.gpu_1x_a10", "all"),
        ("vast.1x_rtx_4090", "US"),
    ]


def test_an_answer_that_is_a_web_page_is_refused() -> None:
    page = RawPage(b"<html>busy</html>", ref="vms.csv", request={"provider": "lambda"})
    with pytest.raises(BadAnswer, match="not SkyPilot's columns"):
        SkyPilotCatalog().parse([page], fetched_at=NOW)


def test_a_file_without_a_date_is_refused_until_one_is_given(tmp_path: Path) -> None:
    with pytest.raises(BadPriceFile, match="says no date; say when it held: --observed-at"):
        imported(tmp_path, "lambda/vms.csv", SKYPILOT + "gpu_1x_a10,A10,1,30,200,1.29,us,,\n", None)


def test_the_folder_of_a_file_tells_the_cloud(tmp_path: Path) -> None:
    rows = SKYPILOT + "gpu_1x_a10,A10,1,30,200,1.29,us,,\n"
    found = imported(tmp_path, "lambda/vms.csv", rows)
    assert (found.form, [offer.provider for offer in found.offers]) == ("skypilot-csv", ["lambda"])
    assert found.offers[0].source_ref == "lambda/vms.csv"
    assert "no provider" in imported(tmp_path, "vms.csv", rows).bad[0][1]


def test_gpuhunt_files_are_told_by_their_columns_and_named_by_their_provider(tmp_path: Path) -> None:
    rows = (
        "NVIDIA GeForce RTX 4090,US-1,0.69,8,40,1,RTX4090,24,False,,nvidia\n"
        "NVIDIA GeForce RTX 4090,US-2,0.34,8,40,1,RTX4090,24,True,,nvidia\n"
        "cpu-only,US-1,0.05,8,40,0,,,False,,\n"
        "x,US-1,0.69,8,40,1,RTX4090,24,maybe,,nvidia\n"
    )
    found = imported(tmp_path, "runpod.csv", GPUHUNT + rows)
    assert found.form == "gpuhunt-csv"
    assert {(offer.item, offer.region, offer.contract, offer.amount) for offer in found.offers} == {
        ("runpod.1x_rtx_4090", "all", "on_demand", Decimal("0.69")),
        ("runpod.1x_rtx_4090", "all", "spot", Decimal("0.34")),
    }
    assert found.skipped["no GPU"] == 1
    assert found.bad == (("5", "spot is neither True nor False"),)


def vantage(**prices: Any) -> str:
    linux = {"ondemand": "21.957642", **prices}
    regions = {"us-east-1": {"linux": linux, "mswin": {"ondemand": "99"}}, "eu-west-1": {"mswin": {}}}
    return json.dumps([
        {"instance_type": "p4d.24xlarge", "GPU": 8, "pricing": regions},
        {"instance_type": "m5.large", "GPU": 0, "pricing": regions},
        {"GPU": 8},
    ])  # fmt: skip


def test_vantage_prices_are_read_by_contract_and_never_blended(tmp_path: Path) -> None:
    text = vantage(
        spot_min="9.1", spot_avg="9.83", spot_max="12.2",
        reserved={
            "yrTerm1Standard.noUpfront": "13.5", "yrTerm1Standard.partialUpfront": "12.9",
            "yrTerm3Standard.allUpfront": "8.1", "yrTerm1Convertible.noUpfront": "15",
        },
    )  # fmt: skip
    found = imported(tmp_path, "instances.json", text)
    assert found.form == "vantage-json"
    assert {(o.contract, o.term_months, o.payment, o.amount) for o in found.offers} == {
        ("on_demand", None, None, Decimal("21.957642")),
        ("spot", None, None, Decimal("9.83")),
        ("reserved_1y", 12, "none", Decimal("13.5")),
        ("reserved_3y", 36, "all_upfront", Decimal("8.1")),
    }
    (spot,) = [offer for offer in found.offers if offer.contract == "spot"]
    assert (spot.amount_low, spot.amount_high) == (Decimal("9.1"), Decimal("12.2"))
    assert found.bad == (("3", "no instance_type"),)


@pytest.mark.parametrize("value", ["N/A", "0", "", None])
def test_vantage_an_unknown_price_is_no_offer(tmp_path: Path, value: str | None) -> None:
    assert imported(tmp_path, "instances.json", vantage(ondemand=value)).offers == ()


def test_t7_a_spot_minimum_without_its_mean_is_not_taken_for_a_price(tmp_path: Path) -> None:
    found = imported(tmp_path, "instances.json", vantage(spot_min="9.1"))
    assert [offer.contract for offer in found.offers] == ["on_demand"]
    assert found.skipped["a spot minimum without its mean"] == 1


@pytest.mark.parametrize("text", ["", "hello", "<html></html>", "a,b\n1,2\n", "{}"])
def test_a_file_of_no_known_form_is_refused_with_the_known_ones(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadPriceFile, match="planner-csv, vantage-json"):
        imported(tmp_path, "prices.txt", text)
