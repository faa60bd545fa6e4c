"""What price data must hold before it is published or planned on.

An Offer that exists is already well-formed (offer.py). These checks look at offers side by side and at
what is merely implausible. A violation is a finding, not an exception: the caller decides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from .offer import Offer

_CLOUD = frozenset({"cloud_instance", "cloud_component"})
_RETAIL = frozenset({"gpu_retail", "part_retail", "system_retail", "resale"})
_UNITS: dict[str, frozenset[str]] = {
    "cloud_instance": frozenset({"instance_hour", "gpu_hour", "fee"}),
    "cloud_component": frozenset({"gpu_hour", "vcpu_hour", "gib_hour", "gb_month"}),
    **dict.fromkeys(_RETAIL, frozenset({"each"})),
    "electricity": frozenset({"kwh"}),
    "colo": frozenset({"kw_month"}),
    "storage": frozenset({"gb_month"}),
    "egress": frozenset({"gb"}),
}
_TERMS = {"reserved_1y": 12, "reserved_3y": 36, "savings_plan_1y": 12, "savings_plan_3y": 36}
# A price ten times the last one, or a tenth of it, is a slipped point or another unit until someone looks
# (the steepest real step on record, the AWS cut of June 2025, was -44 %).
_JUMP = Decimal(10)
# ISO 4217, the currencies that price lists of the covered sellers come in.
_CURRENCIES = frozenset({
    "AED", "ARS", "AUD", "BGN", "BRL", "CAD", "CHF", "CLP", "CNY", "COP", "CZK", "DKK", "EUR", "GBP", "HKD",
    "HUF", "IDR", "ILS", "INR", "JPY", "KRW", "KZT", "MXN", "MYR", "NGN", "NOK", "NZD", "PEN", "PHP", "PKR",
    "PLN", "RON", "RUB", "SAR", "SEK", "SGD", "THB", "TRY", "TWD", "UAH", "USD", "VND", "ZAR",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Violation:
    """One finding. rule: its name; severity "error" (do not publish) or "warning" (true, but look)."""

    rule: str
    severity: str
    offer: Offer
    message: str


Check = Callable[[Offer], str | None]


def verify(offers: Iterable[Offer]) -> tuple[Violation, ...]:
    """All findings, offer by offer and then side by side."""
    given = tuple(offers)
    found = [
        Violation(rule, "error", offer, f"{offer.where}: {message}")
        for offer in given
        for rule, check in _EACH.items()
        if (message := check(offer)) is not None
    ]
    return (*found, *_duplicates(given), *_jumps(given), *_dear_spot(given))


def errors(offers: Iterable[Offer]) -> tuple[Violation, ...]:
    """The findings that forbid publication."""
    return tuple(found for found in verify(offers) if found.severity == "error")


# --- one offer


def _unit(offer: Offer) -> str | None:
    if offer.unit in _UNITS[offer.kind]:
        return None
    return f"{offer.kind} is not priced by {offer.unit}"


def _contract(offer: Offer) -> str | None:
    rented = offer.kind in _CLOUD
    if rented == (offer.contract == "purchase"):
        return f"{offer.kind} cannot be had by {offer.contract}"
    term = _TERMS.get(offer.contract)
    if term is not None and (offer.term_months != term or offer.payment is None):
        given = f"{offer.term_months}, {offer.payment}"
        return f"{offer.contract} needs term_months {term} and a payment, not {given}"
    return None


def _capacity_block(offer: Offer) -> str | None:
    """The fee of a block is paid in advance; its rows in price lists say 0.00 an hour."""
    if offer.contract == "capacity_block" and offer.upfront is None and offer.unit != "fee":
        return "a capacity block without its fee; an hourly price alone is not what it costs"
    return None


def _condition(offer: Offer) -> str | None:
    if (offer.condition is None) == (offer.kind in _RETAIL):
        return "goods need a condition (new, refurbished, used), and only goods"
    if offer.kind == "resale" and offer.condition != "used":
        return "resale is of used goods"
    return None


def _gpu(offer: Offer) -> str | None:
    if not offer.gpu_count:
        return "no GPU is stated" if offer.kind == "cloud_instance" else None
    if offer.gpu_model is None:
        return f"{offer.gpu_count} GPUs of no model"
    if offer.gpu_form is None:
        return 'gpu_form is missing; write "unknown" when it is not known'
    if offer.gpu_mem_mib is None and offer.gpu_form != "unknown":
        return "gpu_mem_mib is missing"
    return None


def _currency(offer: Offer) -> str | None:
    return None if offer.currency in _CURRENCIES else f"{offer.currency} is no currency known here"


def _components(offer: Offer) -> str | None:
    if not offer.components:
        return None
    total = sum((part.quantity * part.amount for part in offer.components), Decimal(0))
    if offer.amount is not None and total == offer.amount:
        return None
    return f"the components sum to {total}, not to {offer.amount}"


def _range(offer: Offer) -> str | None:
    if (offer.amount_low is None) != (offer.amount_high is None):
        return "a range needs both ends"
    return None


_EACH: Mapping[str, Check] = {
    "unit": _unit,
    "contract": _contract,
    "capacity-block": _capacity_block,
    "condition": _condition,
    "gpu": _gpu,
    "currency": _currency,
    "components": _components,
    "range": _range,
}


# --- offers side by side


def _duplicates(offers: Iterable[Offer]) -> Iterator[Violation]:
    """Two amounts for one price at one instant, from one source: one of them is wrong."""
    seen: dict[tuple[object, ...], Offer] = {}
    for offer in offers:
        key = (offer.price_id, offer.observed_at, offer.source, offer.fetched_at)
        first = seen.setdefault(key, offer)
        if first is not offer:
            message = f"{offer.where}: stands there twice for {offer.observed_at:%Y-%m-%d} ({offer.source})"
            yield Violation("duplicate", "error", offer, message)


def _jumps(offers: Iterable[Offer]) -> Iterator[Violation]:
    """A step of ten times or more between two observations of one price."""
    by_price: defaultdict[str, list[Offer]] = defaultdict(list)
    for offer in offers:
        if offer.amount is not None and offer.quality != "suspect":
            by_price[offer.price_id].append(offer)
    for series in by_price.values():
        series.sort(key=lambda offer: (offer.observed_at, offer.observation_id))
        for before, after in pairwise(series):
            if is_jump(before, after):
                message = (
                    f"{after.where}: {before.amount} became {after.amount} on {after.observed_at:%Y-%m-%d}"
                )
                yield Violation("jump", "error", after, message)


def is_jump(before: Offer, after: Offer) -> bool:
    """Whether `after` is ten times `before` or more, or a tenth or less."""
    if before.amount is None or after.amount is None:
        return False
    return after.amount >= before.amount * _JUMP or after.amount * _JUMP <= before.amount


def _dear_spot(offers: Iterable[Offer]) -> Iterator[Violation]:
    """Spot above on-demand happens (AWS, 2020: at the on-demand price); it is kept and flagged."""
    on_demand: defaultdict[tuple[str, ...], list[Offer]] = defaultdict(list)
    spot: list[Offer] = []
    for offer in offers:
        if offer.kind != "cloud_instance" or offer.amount is None:
            continue
        if offer.contract == "on_demand":
            on_demand[_place(offer)].append(offer)
        elif offer.contract == "spot":
            spot.append(offer)
    for offer in spot:
        earlier = [other for other in on_demand[_place(offer)] if other.observed_at <= offer.observed_at]
        if not earlier or offer.amount is None:
            continue
        list_price = max(earlier, key=lambda other: other.observed_at).amount
        if list_price is not None and offer.amount > list_price:
            message = f"{offer.where}: spot {offer.amount} is above on-demand {list_price}"
            yield Violation("dear-spot", "warning", offer, message)


def _place(offer: Offer) -> tuple[str, ...]:
    return (offer.provider, offer.item, offer.region, offer.unit, offer.currency)
