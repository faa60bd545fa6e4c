"""Savings-plan rates of EC2 instances."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from ..errors import BadOffer
from ..offer import Contract, Offer, Payment
from . import FetchContext, source
from .answers import (
    UnreadableRow,
    currency_of,
    load_json,
    member,
    money_of,
    part_of,
    parts_of,
    row_of,
    text_of,
)
from .aws_client import NEEDS, MakeClient, make_client, pages, to_bytes
from .aws_price_list import DEFAULT_REGIONS
from .aws_shapes import REGION, TYPE, known_gpus
from .errors import AmbiguousRows
from .page import ParseResult, RawPage, Tally

NAME = "aws-savings-plans"
# The service has one endpoint for all regions. Source: boto3 1.44.8, endpoint rules of "savingsplans".
_ENDPOINT = "us-east-1"
_ROWS_PER_PAGE = 1000
_SYSTEMS = {"Linux/UNIX": "linux", "Windows": "windows"}
_ASKED = {"linux": "Linux/UNIX", "windows": "Windows"}
_YEAR_SECONDS = 365 * 24 * 3600
_TERMS: dict[int, tuple[Contract, int]] = {
    _YEAR_SECONDS: ("savings_plan_1y", 12),
    3 * _YEAR_SECONDS: ("savings_plan_3y", 36),
}
_PAYMENTS: dict[str, Payment] = {
    "No Upfront": "none",
    "Partial Upfront": "partial",
    "All Upfront": "all_upfront",
}
# Dearest last: the plan tied to one family in one region costs less than the one for any compute.
_PLANS = ("EC2Instance", "Compute")


@source(NAME, provider="aws", needs=NEEDS + " (permission savingsplans:DescribeSavingsPlansOfferingRates)")
class AwsSavingsPlans:
    """Savings-plan rates of EC2 per type, term and payment; of two plans the one tied to the family.

    The rate is an hourly commitment for the whole term, used or not; "all_upfront" pays rate × hours of the
    term at its start. Regions: us-east-1 unless others are asked for.
    """

    def __init__(self, make_client: MakeClient = make_client) -> None:
        self._make_client = make_client

    def fetch(self, context: FetchContext) -> Iterator[RawPage]:
        """Rates of both kinds of plan for the wanted types."""
        deadline = context.deadline()
        client = self._make_client("savingsplans", _ENDPOINT, context)
        types = list(context.types_of(TYPE, known_gpus()))
        for region in context.regions_of(REGION, DEFAULT_REGIONS):
            wanted = {
                "region": [region],
                "instanceType": types,
                "productDescription": [_ASKED[system] for system in context.operating_systems],
                "tenancy": ["shared"],
            }
            question = {
                "savingsPlanTypes": list(_PLANS),
                "products": ["EC2"],
                "serviceCodes": ["AmazonEC2"],
                "filters": [{"name": name, "values": values} for name, values in wanted.items()],
                "maxResults": _ROWS_PER_PAGE,
            }
            what = "savingsplans:DescribeSavingsPlansOfferingRates"
            method = client.describe_savings_plans_offering_rates
            for answer in pages(method, what, "nextToken", deadline, **question):
                ref = f"aws savingsplans describe-savings-plans-offering-rates {region}"
                yield RawPage(to_bytes(answer), ref=ref, request={"region": region})

    def parse(
        self, pages: Iterable[RawPage], *, fetched_at: datetime, observed_at: datetime | None = None
    ) -> ParseResult:
        """One offer per type, system, term and payment. Raises AmbiguousRows, BadAnswer."""
        tally = Tally(NAME)
        found: dict[str, dict[str, Offer]] = {}
        for page in pages:
            for row in member(load_json(page), "searchResults", list, page.ref):
                tally.row()
                try:
                    plan, offer = _offer(row_of(row), page, observed_at or fetched_at, fetched_at)
                except (UnreadableRow, BadOffer) as error:
                    tally.spoilt(str(error).partition(" of ")[0], str(row))
                    continue
                if plan not in _PLANS or offer is None:
                    tally.skip("other plan, product, system or tenancy" if offer is None else "other plan")
                    continue
                same = found.setdefault(offer.price_id, {}).setdefault(plan, offer)
                if same.amount != offer.amount:
                    raise AmbiguousRows(
                        f"two {plan} rates are left for {offer.where}: {same.amount} ({same.sku}) and "
                        f"{offer.amount} ({offer.sku}); none is picked"
                    )
        return tally.result([_cheaper(plans, tally) for plans in found.values()])


def _cheaper(plans: Mapping[str, Offer], tally: Tally) -> Offer:
    chosen = next(plans[plan] for plan in _PLANS if plan in plans)
    if len(plans) > 1:
        tally.skip("rate of the plan for any compute, beside that of the family")
    return chosen


def _offer(
    row: Mapping[str, Any], page: RawPage, observed_at: datetime, fetched_at: datetime
) -> tuple[str, Offer | None]:
    """The plan and the offer; None when it is for something else."""
    offering = part_of(row, "savingsPlanOffering")
    plan = text_of(offering, "planType")
    properties = {text_of(each, "name"): text_of(each, "value") for each in parts_of(row, "properties")}
    system = _SYSTEMS.get(properties.get("productDescription", ""))
    gpus = known_gpus().get(properties.get("instanceType", ""))
    if (
        row.get("productType") != "EC2"
        or row.get("unit") != "Hrs"
        or properties.get("tenancy") != "shared"
        or not text_of(row, "usageType").partition(":")[0].endswith("BoxUsage")
        or system is None
        or gpus is None
    ):
        return plan, None
    try:
        contract, months = _TERMS[int(money_of(offering.get("durationSeconds"), "durationSeconds"))]
        payment = _PAYMENTS[text_of(offering, "paymentOption")]
    except KeyError:
        raise UnreadableRow("unknown term or payment") from None
    return plan, Offer(
        kind="cloud_instance",
        provider="aws",
        item=properties["instanceType"],
        region=text_of(properties, "region"),
        contract=contract,
        term_months=months,
        payment=payment,
        os=system,
        tenancy="shared",
        unit="instance_hour",
        amount=money_of(row.get("rate"), "rate") or None,
        currency=currency_of(offering.get("currency")),
        tax="excluded",
        sku=text_of(offering, "offeringId"),
        source=NAME,
        source_ref=page.ref,
        raw_sha256=page.sha256,
        observed_at=observed_at,
        fetched_at=fetched_at,
        note=f"{plan} savings plan: an hourly commitment for {months} months, used or not",
        **gpus.fields(),
    )
