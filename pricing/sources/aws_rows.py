"""Rows of the EC2 price list: which one is the price, and the offer it becomes.

The list names one type in one region many times: per operating system, licence, pre-installed software,
tenancy, state of a capacity reservation and market. Only the full set of filters leaves one row. The same
rules serve the three shapes it comes in (answers of get_products, offer files as JSON and as CSV), whose
attribute names differ in case and spaces only.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal

from ..errors import BadOffer
from ..offer import Contract, Offer, Payment
from .answers import UnreadableRow, currency_of, money_of, part_of, row_of, time_of
from .aws_shapes import Gpus, gpu_fields, host_fields
from .errors import AmbiguousRows
from .page import Tally

FAMILY = "Compute Instance"
# Attribute, the value that is meant, and why a row with another one is left out.
FILTERS = (
    ("tenancy", "Shared", "tenancy not shared"),
    ("preinstalledsw", "NA", "pre-installed software"),
    ("capacitystatus", "Used", "capacity reservation"),
    ("marketoption", "OnDemand", "market not on-demand"),
    ("licensemodel", "No License required", "bring your own license"),
)
# Platform, its name in Offer.os, and the operation code that its plain price is booked under. Source:
# docs.aws.amazon.com/AWSEC2/latest/UserGuide/billing-info-fields.html, checked 2026-12-01.
PLATFORMS = {"Linux": ("linux", "RunInstances"), "Windows": ("windows", "RunInstances:0002")}
_TERMS: dict[str, tuple[Contract, int]] = {"1yr": ("reserved_1y", 12), "3yr": ("reserved_3y", 36)}
_PAYMENTS: dict[str, Payment] = {
    "No Upfront": "none",
    "Partial Upfront": "partial",
    "All Upfront": "all_upfront",
}


@dataclass(frozen=True, slots=True)
class Rate:
    """One price of a term. unit: "Hrs" or, for a fee paid once, "Quantity"; amount: text as listed."""

    code: str
    unit: str
    currency: str
    amount: str
    begins: str = "0"
    ends: str = "Inf"


@dataclass(frozen=True, slots=True)
class Term:
    """What a product costs under one contract."""

    kind: Literal["OnDemand", "Reserved"]
    effective: str | None
    rates: tuple[Rate, ...]
    length: str = ""
    payment: str = ""
    offering_class: str = ""


@dataclass(frozen=True, slots=True)
class Product:
    """One row. attributes: by name in lower case, letters and digits only ("preinstalledsw")."""

    sku: str
    family: str
    attributes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a row was read: goes into each offer of it."""

    source: str
    ref: str
    raw_sha256: str
    observed_at: datetime
    fetched_at: datetime


@lru_cache(maxsize=4096)
def normal(name: str) -> str:
    """ "Pre Installed S/W" and "preInstalledSw" are one name.

    >>> normal("Pre Installed S/W")
    'preinstalledsw'
    """
    return re.sub(r"[^a-z0-9]", "", name.lower())


def left_out(product: Product) -> str | None:
    """Why this row is not the plain price of an instance in a region; None when it is."""
    get = product.attributes.get
    if product.family != FAMILY:
        return "not a virtual machine"
    if not get("instancetype"):
        return "no instance type"
    if get("locationtype", "AWS Region") != "AWS Region":
        return "not in a region (local or wavelength zone)"
    if not get("regioncode"):
        return "no region code"
    platform = PLATFORMS.get(get("operatingsystem", ""))
    if platform is None:
        return "other operating system"
    for name, meant, reason in FILTERS:
        if get(name, meant) != meant:
            return reason
    if get("operation", platform[1]) != platform[1]:
        return "other operation"
    return None


class Rows:
    """Collects rows; `offers` gives one offer a price, or refuses.

    shapes: GPUs by type from describe_instance_types, over those of our table.
    wanted: types and, by Offer.os, operating systems; None takes all.
    """

    def __init__(
        self,
        tally: Tally,
        shapes: Mapping[str, Gpus] | None = None,
        *,
        types: frozenset[str] | None = None,
        systems: Iterable[str] | None = None,
    ) -> None:
        self._tally = tally
        self._shapes = shapes or {}
        self._types = types
        self._systems = None if systems is None else frozenset(systems)
        self._found: defaultdict[tuple[object, ...], dict[tuple[object, ...], Offer]] = defaultdict(dict)

    def keeps(self, product: Product) -> bool:
        """Whether this product's terms are wanted; counts it, and why not."""
        self._tally.row()
        reason = left_out(product) or self._not_wanted(product)
        if reason is not None:
            self._tally.skip(reason)
        return reason is None

    def _not_wanted(self, product: Product) -> str | None:
        name = product.attributes["instancetype"]
        if self._types is not None and name not in self._types:
            return "type not asked for"
        if self._systems is not None and _os(product) not in self._systems:
            return "operating system not asked for"
        if gpu_fields(name, product.attributes.get("gpu"), self._shapes) is None:
            self._tally.warn(f"{name} has GPUs that are not known here; it is left out")
            return "unknown GPU"
        return None

    def add(self, product: Product, term: Term, origin: Origin) -> None:
        """Take one term of a product that is kept."""
        if term.kind == "Reserved" and term.offering_class not in ("standard", ""):
            self._tally.skip("convertible reservation")
            return
        try:
            offer = self._offer(product, term, origin)
        except UnreadableRow as error:
            self._tally.spoilt(str(error), f"{product.sku} {product.attributes.get('instancetype')}")
            return
        except BadOffer as error:
            self._tally.spoilt("not an offer", str(error))
            return
        key = (offer.item, offer.region, offer.os, offer.contract, offer.payment, offer.currency)
        same = self._found[key]
        identity = (product.sku, offer.amount, offer.upfront)
        if identity in same:
            self._tally.skip("repeated row")
        same.setdefault(identity, offer)

    def offers(self) -> list[Offer]:
        """One offer a price. Raises AmbiguousRows with the ids where several rows are left."""
        for key, rows in self._found.items():
            if len(rows) > 1:
                ids = ", ".join(f"{sku} ({amount})" for sku, amount, _ in sorted(rows, key=str))
                raise AmbiguousRows(
                    f"{len(rows)} rows are left for {key[0]} in {key[1]} ({key[2]}, {key[3]}): {ids}. "
                    "Exactly one is meant, and none is picked; a new attribute may tell them apart."
                )
        return [next(iter(rows.values())) for rows in self._found.values()]

    def _offer(self, product: Product, term: Term, origin: Origin) -> Offer:
        attributes = product.attributes
        name = attributes["instancetype"]
        hourly, upfront, currency = _amounts(term)
        contract, months, payment = _contract(term)
        known = bool(hourly or upfront)
        return Offer(
            kind="cloud_instance",
            provider="aws",
            item=name,
            region=attributes["regioncode"],
            contract=contract,
            term_months=months,
            payment=payment,
            os=_os(product),
            tenancy="shared",
            unit="instance_hour",
            # Zero is how the list says "not for sale like this"; it would win every comparison.
            amount=hourly or None,
            upfront=upfront or None,
            currency=currency,
            tax="excluded",
            sku=product.sku,
            source=origin.source,
            source_ref=origin.ref,
            raw_sha256=origin.raw_sha256,
            valid_from=None if not term.effective else time_of(term.effective, "effectiveDate"),
            observed_at=origin.observed_at,
            fetched_at=origin.fetched_at,
            note=None if known else "the list says 0, which is no price",
            **host_fields(attributes),
            **(gpu_fields(name, attributes.get("gpu"), self._shapes) or {}),
        )


def _os(product: Product) -> str:
    return PLATFORMS[product.attributes["operatingsystem"]][0]


def _contract(term: Term) -> tuple[Contract, int | None, Payment | None]:
    if term.kind == "OnDemand":
        return "on_demand", None, None
    try:
        contract, months = _TERMS[term.length.replace(" ", "")]
        return contract, months, _PAYMENTS[term.payment]
    except KeyError:
        raise UnreadableRow("unknown reservation term") from None


def _amounts(term: Term) -> tuple[Decimal, Decimal, str]:
    """The hourly rate, the fee paid once, and their currency; 0 where the term has none."""
    hourly, upfront, currencies = Decimal(0), Decimal(0), set()
    hours = 0
    for rate in term.rates:
        amount = money_of(rate.amount, "price")
        currencies.add(currency_of(rate.currency))
        if rate.begins not in ("", "0") or rate.ends not in ("", "Inf"):
            raise UnreadableRow("tiered price")
        if rate.unit == "Hrs":
            hourly, hours = amount, hours + 1
        elif rate.unit == "Quantity":
            upfront += amount
        else:
            raise UnreadableRow("unit is neither hours nor a fee")
    if hours > 1 or len(currencies) != 1:
        raise UnreadableRow("not one price")
    return hourly, upfront, currencies.pop()


def rates_of(dimensions: Mapping[str, Any]) -> tuple[Rate, ...]:
    """The priceDimensions of a JSON term. Raises UnreadableRow."""
    rates = []
    for code, value in dimensions.items():
        row = row_of(value)
        prices = part_of(row, "pricePerUnit")
        if len(prices) != 1:
            raise UnreadableRow("not one currency")
        ((currency, amount),) = prices.items()
        begins, ends = str(row.get("beginRange", "0")), str(row.get("endRange", "Inf"))
        rates.append(Rate(code, str(row.get("unit", "")), currency, amount, begins, ends))
    return tuple(rates)


def terms_of(terms: Mapping[str, Any]) -> Iterable[Term]:
    """The on-demand and reserved terms of one product's JSON. Raises UnreadableRow."""
    kinds: tuple[Literal["OnDemand", "Reserved"], ...] = ("OnDemand", "Reserved")
    for kind in kinds:
        for value in part_of(terms, kind).values():
            term = row_of(value)
            attributes = part_of(term, "termAttributes")
            yield Term(
                kind=kind,
                effective=str(term.get("effectiveDate") or "") or None,
                rates=rates_of(part_of(term, "priceDimensions")),
                length=str(attributes.get("LeaseContractLength", "")),
                payment=str(attributes.get("PurchaseOption", "")),
                offering_class=str(attributes.get("OfferingClass", "")),
            )


def product_of(value: object) -> Product:
    """The "product" part of a JSON row. Raises UnreadableRow."""
    row = row_of(value)
    attributes, sku = part_of(row, "attributes"), row.get("sku")
    if not attributes or not isinstance(sku, str):
        raise UnreadableRow("no attributes or sku")
    plain = {normal(name): text for name, text in attributes.items() if isinstance(text, str)}
    return Product(sku, str(row.get("productFamily", "")), plain)
