"""planner.pricing.sources.aws_savings_plans and aws_capacity_blocks: what is promised or paid in advance."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from aws_fakes import NOW, Clients

from planner.pricing import checks
from planner.pricing.sources import (
    AmbiguousRows,
    BadAnswer,
    FetchContext,
    RawPage,
    SourceFailed,
    SourceUnavailable,
)
from planner.pricing.sources.aws_capacity_blocks import AwsCapacityBlocks
from planner.pricing.sources.aws_client import call
from planner.pricing.sources.aws_savings_plans import AwsSavingsPlans

YEAR = 31_536_000


def rate(amount: str, **changed: Any) -> dict[str, Any]:
    """One row of describe_savings_plans_offering_rates."""
    offering = {
        "offeringId": changed.pop("offering", "o-1"),
        "paymentOption": changed.pop("payment", "No Upfront"),
        "planType": changed.pop("plan", "EC2Instance"),
        "durationSeconds": changed.pop("seconds", YEAR),
        "currency": changed.pop("currency", "USD"),
    }
    properties = {
        "region": "us-east-1",
        "instanceType": "p4d.24xlarge",
        "instanceFamily": "p4d",
        "productDescription": "Linux/UNIX",
        "tenancy": "shared",
        **changed.pop("properties", {}),
    }
    plain = {
        "savingsPlanOffering": offering,
        "rate": amount,
        "unit": "Hrs",
        "productType": "EC2",
        "serviceCode": "AmazonEC2",
        "usageType": "BoxUsage:p4d.24xlarge",
        "operation": "RunInstances",
        "properties": [{"name": name, "value": value} for name, value in properties.items()],
    }
    return {**plain, **changed}


def plans(*rows: dict[str, Any]) -> RawPage:
    return RawPage(json.dumps({"searchResults": list(rows)}).encode(), ref="a test")


def block(fee: str, **changed: Any) -> dict[str, Any]:
    """One row of describe_capacity_block_offerings."""
    return {
        "CapacityBlockOfferingId": "cb-1",
        "InstanceType": "p5.48xlarge",
        "AvailabilityZone": "us-east-1a",
        "InstanceCount": 1,
        "StartDate": datetime(2026, 9, 20, 11, 30, tzinfo=UTC),
        "EndDate": datetime(2026, 9, 21, 11, 30, tzinfo=UTC),
        "CapacityBlockDurationHours": 24,
        "UpfrontFee": fee,
        "CurrencyCode": "USD",
        "Tenancy": "default",
        **changed,
    }


def blocks(*rows: dict[str, Any]) -> RawPage:
    body = json.dumps({"CapacityBlockOfferings": list(rows)}, default=lambda value: value.isoformat())
    return RawPage(body.encode(), ref="a test")


# --- savings plans


def test_a_rate_is_an_hourly_commitment_for_a_term() -> None:
    result = AwsSavingsPlans().parse([plans(rate("15.1200000000"))], fetched_at=NOW)
    (offer,) = result.offers
    assert (offer.contract, offer.term_months, offer.payment) == ("savings_plan_1y", 12, "none")
    assert (offer.amount, offer.currency, offer.region) == (Decimal("15.12"), "USD", "us-east-1")
    assert offer.sku == "o-1"
    assert checks.verify(result.offers) == ()


def test_terms_and_payments_are_prices_of_their_own() -> None:
    page = plans(
        rate("15.12"),
        rate("14.5", payment="All Upfront"),
        rate("14.8", payment="Partial Upfront"),
        rate("9.9", seconds=3 * YEAR),
    )
    offers = AwsSavingsPlans().parse([page], fetched_at=NOW).offers
    assert {(offer.contract, offer.payment) for offer in offers} == {
        ("savings_plan_1y", "none"),
        ("savings_plan_1y", "all_upfront"),
        ("savings_plan_1y", "partial"),
        ("savings_plan_3y", "none"),
    }


@pytest.mark.parametrize("turned", [False, True])
def test_of_two_plans_the_one_tied_to_the_family_is_the_rate(turned: bool) -> None:
    rows = [rate("16.5", plan="Compute", offering="o-2"), rate("15.12")]
    result = AwsSavingsPlans().parse([plans(*(reversed(rows) if turned else rows))], fetched_at=NOW)
    assert [offer.amount for offer in result.offers] == [Decimal("15.12")]
    assert sum(result.skipped.values()) == 1


def test_the_plan_for_any_compute_stands_where_there_is_no_other() -> None:
    (offer,) = AwsSavingsPlans().parse([plans(rate("16.5", plan="Compute"))], fetched_at=NOW).offers
    assert offer.note is not None
    assert offer.note.startswith("Compute savings plan")


@pytest.mark.parametrize(
    "changed",
    [
        {"properties": {"tenancy": "dedicated"}},
        {"properties": {"productDescription": "Red Hat Enterprise Linux"}},
        {"properties": {"instanceType": "m5.xlarge"}},
        {"productType": "Fargate"},
        {"usageType": "UnusedBox:p4d.24xlarge"},
        {"plan": "SageMaker"},
    ],
)
def test_rates_of_something_else_are_counted_and_left_out(changed: dict[str, Any]) -> None:
    result = AwsSavingsPlans().parse([plans(rate("1", **changed))], fetched_at=NOW)
    assert result.offers == ()
    assert sum(result.skipped.values()) == 1


def test_two_rates_for_one_thing_are_not_picked_from() -> None:
    with pytest.raises(AmbiguousRows, match=r"o-1.*o-2"):
        AwsSavingsPlans().parse([plans(rate("15.12"), rate("15.13", offering="o-2"))], fetched_at=NOW)


def test_pages_of_rates_are_followed_and_asked_at_the_one_endpoint() -> None:
    answers = [
        {"searchResults": [rate("15.12")], "nextToken": "more"},
        {"searchResults": [rate("9.9", seconds=3 * YEAR)], "nextToken": ""},
    ]
    clients = Clients({"savingsplans": {"describe_savings_plans_offering_rates": answers}})
    source = AwsSavingsPlans(clients)
    assert len(source.parse(source.fetch(FetchContext(regions=("eu-west-1",))), fetched_at=NOW).offers) == 2
    assert clients.asked == [("savingsplans", "us-east-1")]


# --- capacity blocks


def test_a_block_is_a_fee_for_a_window_and_never_a_price_of_zero_an_hour() -> None:
    result = AwsCapacityBlocks().parse([blocks(block("943.68"))], fetched_at=NOW)
    (offer,) = result.offers
    assert (offer.contract, offer.amount, offer.upfront) == ("capacity_block", None, Decimal("943.68"))
    assert offer.valid_from is not None
    assert offer.valid_to is not None
    assert (offer.valid_to - offer.valid_from).total_seconds() == 24 * 3600
    assert offer.note is not None
    assert "39.32 an hour" in offer.note
    assert checks.verify(result.offers) == ()


def test_the_fee_of_several_instances_is_told_for_one() -> None:
    page = blocks(block("1887.36", InstanceCount=2))
    (offer,) = AwsCapacityBlocks().parse([page], fetched_at=NOW).offers
    assert offer.upfront == Decimal("943.68")


def test_of_several_blocks_in_a_zone_the_one_that_is_cheapest_by_the_hour_is_kept() -> None:
    week = block("6000", CapacityBlockDurationHours=168, EndDate=datetime(2026, 9, 27, 11, 30, tzinfo=UTC))
    result = AwsCapacityBlocks().parse([blocks(block("943.68"), week)], fetched_at=NOW)
    assert [offer.upfront for offer in result.offers] == [Decimal(6000)]
    assert result.skipped == {"dearer block of the same type and zone": 1}


def test_a_block_without_a_fee_or_on_dedicated_hosts_is_left_out() -> None:
    page = blocks(block("0"), block("9", Tenancy="dedicated"), block("9", InstanceType="trn9.48xlarge"))
    assert AwsCapacityBlocks().parse([page], fetched_at=NOW).offers == ()


def test_blocks_are_asked_for_types_that_are_sold_so_for_a_day_and_a_week() -> None:
    answer = {"CapacityBlockOfferings": [block("943.68")]}
    clients = Clients({"ec2": {"describe_capacity_block_offerings": [answer, answer]}})
    types = frozenset({"p5.48xlarge", "g5.xlarge"})
    source = AwsCapacityBlocks(clients)
    pages = list(source.fetch(FetchContext(instance_types=types, clock=lambda: NOW)))
    assert len(pages) == 2
    assert len(source.parse(pages, fetched_at=NOW).offers) == 1


# --- errors of AWS


def _client_error(code: str) -> Any:
    from botocore.exceptions import ClientError

    def fails(**_: Any) -> dict[str, Any]:
        raise ClientError({"Error": {"Code": code, "Message": "signed with SECRET"}}, "GetProducts")

    return fails


def test_a_missing_permission_is_something_the_source_needs() -> None:
    with pytest.raises(SourceUnavailable, match="permission for pricing:GetProducts"):
        call(_client_error("AccessDeniedException"), "pricing:GetProducts")


def test_a_failure_of_aws_names_its_code_and_never_its_text() -> None:
    with pytest.raises(SourceFailed, match="ThrottlingException") as caught:
        call(_client_error("ThrottlingException"), "pricing:GetProducts")
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("kind", ["ConnectTimeoutError", "ReadTimeoutError", "EndpointConnectionError"])
def test_t6_an_endpoint_out_of_reach_is_a_failure_and_not_an_old_price_in_silence(kind: str) -> None:
    from botocore import exceptions

    def unreachable(**_: Any) -> dict[str, Any]:
        raise getattr(exceptions, kind)(endpoint_url="https://api.pricing.example", error="no route")

    with pytest.raises(SourceFailed, match=f"pricing:GetProducts: {kind}"):
        call(unreachable, "pricing:GetProducts")


@pytest.mark.parametrize("source", [AwsSavingsPlans, AwsCapacityBlocks])
def test_an_answer_without_its_list_says_so(source: type[AwsSavingsPlans | AwsCapacityBlocks]) -> None:
    with pytest.raises(BadAnswer, match="format may have changed"):
        source().parse([RawPage(b"{}", ref="a test")], fetched_at=NOW)
