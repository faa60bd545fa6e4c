"""Fetching the EC2 price list: every page, at an endpoint that exists, within the deadline."""

from __future__ import annotations

import json

import pytest
from aws_fakes import NOW, Clients, fetched, item, page

from planner.pricing.sources import BadAnswer, FetchContext, RawPage, SourceFailed
from planner.pricing.sources.aws_price_list import ENDPOINTS, AwsPriceList, endpoint_for


def test_c39_pages_are_followed_until_the_token_is_empty() -> None:
    rows = [item(f"S{n}", "1.0", instanceType=f"m5.{n}xlarge") for n in range(2037)]
    answers = [
        {"PriceList": rows[:1000], "NextToken": "one"},
        {"PriceList": rows[1000:2000], "NextToken": "two"},
        {"PriceList": rows[2000:], "NextToken": ""},
    ]
    pages, offers = fetched(Clients({"pricing": {"get_products": answers}}))
    assert len(pages) == 3
    assert len(offers) == 2037


def test_c39_a_token_that_comes_again_stops_with_an_error() -> None:
    same = {"PriceList": [item("S", "1.0")], "NextToken": "again"}
    clients = Clients({"pricing": {"get_products": [same] * 10}})
    pages = AwsPriceList(clients).fetch(FetchContext())
    assert [next(pages).request["region"] for _ in range(2)] == ["us-east-1"] * 2
    with pytest.raises(BadAnswer, match="page token"):
        next(pages)


def test_c41_the_price_service_is_asked_where_it_exists_about_the_region_that_was_meant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    row = item("S", "23.71569", instanceType="p4d.24xlarge", regionCode="eu-west-1")
    clients = Clients({"pricing": {"get_products": [{"PriceList": [row]}]}})
    pages, offers = fetched(clients, regions=("eu-west-1",))
    asked = [region for service, region in clients.asked if service == "pricing"]
    assert asked == ["eu-central-1"]
    assert asked[0] in ENDPOINTS
    assert [(offer.region, str(offer.amount)) for offer in offers] == [("eu-west-1", "23.71569")]
    assert pages[0].request["region"] == "eu-west-1"


@pytest.mark.parametrize("region", ["us-west-2", "sa-east-1", "ap-northeast-1", "me-south-1", "ca-central-1"])
def test_c41_every_region_is_served_by_one_of_the_three(region: str) -> None:
    assert endpoint_for(region) in ENDPOINTS


def test_the_api_tells_the_memory_of_one_gpu_and_our_table_the_model() -> None:
    types = {
        "InstanceTypes": [
            {
                "InstanceType": "p6-b200.48xlarge",
                "GpuInfo": {
                    "Gpus": [{"Name": "B200", "Count": 8, "MemoryInfo": {"SizeInMiB": 183296}}],
                    "TotalGpuMemoryInMiB": 1466368,
                },
            }
        ]
    }
    prices = {"PriceList": [item("S", "113.9", instanceType="p6-b200.48xlarge", gpu="8")]}
    clients = Clients({"ec2": {"describe_instance_types": [types]}, "pricing": {"get_products": [prices]}})
    _, (offer,) = fetched(clients)
    assert (offer.gpu_model, offer.gpu_count, offer.gpu_mem_mib) == ("b200-sxm-180gb", 8, 183296)


def test_t27_a_total_given_as_one_gpus_memory_is_not_believed() -> None:
    types = {
        "InstanceTypes": [
            {
                "InstanceType": "p4d.24xlarge",
                "GpuInfo": {"Gpus": [{"Count": 8, "MemoryInfo": {"SizeInMiB": 327680}}]},
            }
        ]
    }
    pages = [
        RawPage(json.dumps(types).encode(), ref="shapes"),
        page([item("S", "21", instanceType="p4d.24xlarge")]),
    ]
    result = AwsPriceList().parse(pages, fetched_at=NOW)
    assert result.offers[0].gpu_mem_mib == 40960
    assert result.warnings == ("p4d.24xlarge: the API says 327680 MiB per GPU, 40960 are kept",)


def test_a_fetch_ends_at_its_deadline_between_pages() -> None:
    answers = [{"PriceList": [], "NextToken": f"{n}"} for n in range(9)]
    clients = Clients({"pricing": {"get_products": answers}})
    seconds = iter([0.0, 1.0, 60.0, 121.0])
    pages = AwsPriceList(clients).fetch(FetchContext(monotonic=lambda: next(seconds)))
    assert len([next(pages), next(pages)]) == 2
    with pytest.raises(SourceFailed, match="pricing:GetProducts: not whole within 120 s"):
        next(pages)
