"""A plan as FOCUS rows: the shape of a bill, each row saying that it is a forecast.

FOCUS has no forecast dataset (FOCUS_Spec issue 1029), so the shape of Cost and Usage is used with custom
columns behind it, x_RecordType = Forecast first. 1.2 is what sellers export today, 1.4 is the newest.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from .accrual import Accrual
from .book import Book
from .charges import Charge, charges_of
from .csv_files import moment
from .months import start_of
from .table import Column, Row, Table, columns

# The names of the seller and of whose machines it sells; and the columns that came later, which a forecast
# leaves empty: without them checkers take a 1.4 file for an older one.
_SELLER = {"1.2": ("ProviderName", "PublisherName"), "1.4": ("ServiceProviderName", "HostProviderName")}
_LATER: Mapping[str, tuple[str, ...]] = {
    "1.2": (),
    "1.4": ("InvoiceDetailId", "ContractApplied", "CommitmentProgramEligibilityDetails"),
}


def focus_forecast(accrual: Accrual) -> Table:
    version = accrual.policy.focus_version

    def rows() -> Iterator[Row]:
        shared = _shared(accrual.book)
        account, empty = accrual.policy.account, (None,) * len(_LATER[version])
        for charge in charges_of(accrual):
            yield (*_focus(charge, account, accrual.book), *empty, *_own(charge), *shared)

    return Table(
        f"focus_forecast_{version}", f"FOCUS {version} forecast",
        f"Rows shaped as FOCUS {version} Cost and Usage; a forecast, never a bill.",
        (*_texts(_SELLER[version]), *_COLUMNS, *_texts(_LATER[version]), *_OWN), rows, wide=True,
        interchange=True,
    )  # fmt: skip


def _texts(names: Iterable[str]) -> tuple[Column, ...]:
    return tuple(Column(name, "text") for name in names)


_COLUMNS: tuple[Column, ...] = columns(
    InvoiceIssuerName="text", InvoiceId="text", BillingAccountId="text", BillingAccountName="text",
    BillingPeriodStart="moment", BillingPeriodEnd="moment", ChargePeriodStart="moment",
    ChargePeriodEnd="moment", ChargeCategory="text", ChargeClass="text", ChargeDescription="text",
    ChargeFrequency="text", BilledCost="money", EffectiveCost="money", ListCost="money",
    ContractedCost="money", BillingCurrency="text", ListUnitPrice="number", ContractedUnitPrice="number",
    PricingCategory="text", PricingQuantity="number", PricingUnit="text", ConsumedQuantity="number",
    ConsumedUnit="text", ServiceName="text", ServiceCategory="text", ServiceSubcategory="text",
    SkuId="text", SkuPriceId="text", ResourceId="text", ResourceName="text", ResourceType="text",
    RegionId="text", RegionName="text", CommitmentDiscountId="text", CommitmentDiscountName="text",
    CommitmentDiscountCategory="text", CommitmentDiscountType="text", CommitmentDiscountStatus="text",
    Tags="text",
)  # fmt: skip
_OWN: tuple[Column, ...] = columns(
    x_ListPriceKnown="flag", x_Asset="text", x_ExpenditureClass="text", x_LineItem="text", x_Job="text",
    x_Project="text", x_Team="text", x_Source="text",
    x_RecordType="text", x_PlanId="text", x_PlanVersion="text", x_Scenario="text", x_PriceAsOf="moment",
    x_TimeZone="text",
)  # fmt: skip


@cache
def _names() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads((files(__package__) / "data" / "focus.toml").read_text(encoding="utf-8"))


def _focus(charge: Charge, account: str, book: Book) -> Row:
    line, names = charge.line, _names()
    provider = line.provider if line else "own"
    seller = names["providers"].get(provider, provider)
    own = f"{seller} GPU instances", "Compute", "Virtual Machines"
    service, category, subcategory = names["items"].get(charge.item, own)
    if charge.item not in names["items"]:
        service = names["services"].get(provider, service)
    sku = price = None
    if line and charge.unit_price is not None and line.price_ids:
        # Sellers' sku where they gave one; else our own name of the price stands for both.
        sku, price = line.sku or line.price_ids[0], line.price_ids[0]
    quantity = charge.quantity
    unit = names["units"].get(charge.unit, charge.unit) if quantity is not None else None
    consumed = charge.category == "Usage" and charge.status != "Unused"
    asset = charge.asset.id if charge.asset else line.asset if line else ""
    promise = charge.commitment
    region = (line.region if line else "") or None
    return (
        seller, seller, seller, None, account, account,
        start_of(charge.month, book.zone), start_of(charge.month.plus(1), book.zone),
        charge.start, charge.end, charge.category, None, charge.description, _frequency(charge),
        charge.billed, charge.effective, charge.listed, charge.contracted, book.currency,
        charge.list_unit_price, charge.unit_price, _pricing(charge), quantity, unit,
        quantity if consumed else None, unit if consumed else None,
        service, category, subcategory, sku, price,
        asset or None, asset or None, "Rig" if asset else None, region, region,
        promise.id if promise else None, promise.id if promise else None,
        None if promise is None else "Spend" if promise.described else "Usage",
        promise.kind if promise else None, charge.status or None, _tags(charge),
    )  # fmt: skip


def _frequency(charge: Charge) -> str:
    known: str | None = _names()["frequency"].get(charge.item)
    if charge.category in ("Usage", "Tax"):
        return known or "Usage-Based"
    return known if charge.category == "Purchase" and known else "One-Time"


def _pricing(charge: Charge) -> str | None:
    if charge.category not in ("Usage", "Purchase"):
        return None
    if charge.commitment is not None:
        return "Committed"
    model = charge.line.purchase_model if charge.line else ""
    return str(_names()["pricing"].get(model, "Other"))


def _tags(charge: Charge) -> str | None:
    """The job's tags, project and team among them, as JSON."""
    line = charge.line
    if line is None or not (line.tags or line.project or line.team):
        return None
    named = {key: value for key, value in (("project", line.project), ("team", line.team)) if value}
    return json.dumps(named | dict(line.tags), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _own(charge: Charge) -> Row:
    line = charge.line
    if line is None:
        asset = charge.asset.id if charge.asset else None
        return False, asset, "capital", charge.item, None, None, None, "the plan's depreciation"
    known = line.list_amount is not None or (
        charge.commitment is not None and bool(charge.commitment.discount)
    )
    return (
        known, line.asset or None, line.expenditure, line.category, line.job or None, line.project or None,
        line.team or None, line.source or None,
    )  # fmt: skip


def _shared(book: Book) -> Row:
    version = f"{book.snapshot} as of {moment(book.as_of)}"
    return "Forecast", book.id, version, "P50", book.as_of, str(book.zone)
