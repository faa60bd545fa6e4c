"""The one record every price source returns: one price for one thing, in one place, under one
kind of contract, seen at one time.

Money is Decimal with a currency; unit and contract are never implied. An amount that is not
known is None: never 0, because a zero would win every comparison. A price that really is zero
(a free tier, the recurring part of a prepaid term) has no place here either.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from operator import attrgetter
from typing import Any, Literal, NamedTuple, get_args

from .errors import BadOffer

Kind = Literal[
    "cloud_instance", "cloud_component", "gpu_retail", "part_retail", "system_retail",
    "resale", "electricity", "colo", "storage", "egress",
]  # fmt: skip
Contract = Literal[
    "on_demand", "spot", "reserved_1y", "reserved_3y", "savings_plan_1y", "savings_plan_3y",
    "capacity_block", "community", "purchase",
]  # fmt: skip
Unit = Literal[
    "instance_hour", "gpu_hour", "vcpu_hour", "gib_hour", "each", "kwh", "kw_month",
    "gb_month", "gb", "fee",
]  # fmt: skip
Payment = Literal["none", "partial", "all_upfront"]
Tax = Literal["excluded", "included", "unknown"]
Form = Literal["sxm", "pcie", "nvl", "unknown"]
Availability = Literal["in_stock", "out_of_stock", "listed_only", "unknown"]
Condition = Literal["new", "refurbished", "used"]
Quality = Literal["ok", "stale", "estimated", "suspect"]

# Two observations with the same values here are one price at two times. The source is left out on
# purpose: a list price read from two places is still one price, and the newer reading holds.
KEY_FIELDS = (
    "kind", "provider", "item", "region", "zone", "contract", "term_months", "payment", "os",
    "tenancy", "condition", "unit", "currency",
)  # fmt: skip

# Beyond this many digits a "price" is a typing error or an attack on whoever turns it into an int.
_LARGEST_EXPONENT = 12
_SMALLEST_EXPONENT = -12


class Component(NamedTuple):
    """One summand of a composed price: quantity × amount, in `unit` (say gpu_hour)."""

    sku: str
    quantity: Decimal
    unit: Unit
    amount: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One observed price.

    amount: per `unit`, in `currency` as published; None when not known.
    amount_low, amount_high: the published range, or the window's minimum and maximum for spot.
    upfront: a fee paid once; `amount` is then the recurring part.
    gpu_mem_mib: of one GPU [MiB]; ram_gib, local_ssd_gib [GiB]; net_gbps [Gbit/s].
    observed_at: when the source said so (UTC). A period ("2026-03") is filed under its first day,
        so that an age is never understated; `note` says so.
    reason: why `quality` is not "ok".
    Raises BadOffer, naming field and value.
    """

    kind: Kind
    provider: str
    item: str
    region: str
    contract: Contract
    unit: Unit
    amount: Decimal | None
    currency: str
    observed_at: datetime
    source: str
    zone: str | None = None
    sku: str | None = None
    source_ref: str | None = None
    term_months: int | None = None
    payment: Payment | None = None
    os: str | None = None
    tenancy: str | None = None
    condition: Condition | None = None
    amount_low: Decimal | None = None
    amount_high: Decimal | None = None
    upfront: Decimal | None = None
    tax: Tax = "unknown"
    tax_rate: Decimal | None = None
    gpu_model: str | None = None
    gpu_count: int | None = None
    gpu_mem_mib: int | None = None
    gpu_form: Form | None = None
    vcpu: Decimal | None = None
    ram_gib: Decimal | None = None
    local_ssd_gib: Decimal | None = None
    net_gbps: Decimal | None = None
    components: tuple[Component, ...] = ()
    availability: Availability = "unknown"
    checked_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    fetched_at: datetime | None = None
    quality: Quality = "ok"
    reason: str | None = None
    sample_n: int | None = None
    raw_sha256: str | None = None
    note: str | None = None

    def __post_init__(self) -> None:
        _check(self)

    @property
    def price_id(self) -> str:
        """Hash of the key fields: the same for every observation of one price."""
        return _digest_of_key(_key_of(self))

    @property
    def observation_id(self) -> str:
        """Hash of all that was observed; reading the same thing again later does not change it."""
        return str(self.to_row()[0])

    @property
    def amount_per_gpu(self) -> Decimal | None:
        """Price of one GPU for one hour; None when the amount or the number of GPUs is not known."""
        if self.amount is None or not self.gpu_count:
            return None
        if self.unit == "gpu_hour":
            return self.amount
        return self.amount / self.gpu_count if self.unit == "instance_hour" else None

    @property
    def where(self) -> str:
        """The offer in a few words, for messages."""
        return f"{self.item} ({self.provider} {self.region} {self.contract})"

    def age(self, now: datetime) -> timedelta:
        """How long before `now` the source said this. Never negative."""
        return max(aware("now", now) - self.observed_at, timedelta(0))

    def to_record(self) -> tuple[str | int | None, ...]:
        """All fields as text and integers, in the order of FIELDS. `from_record` is the inverse."""
        values: list[Any] = list(_all_of(self))
        for index, write in _RECORD_WRITERS:
            if values[index] is not None:
                values[index] = write(values[index])
        return tuple(values)

    def to_row(self) -> tuple[str | int | None, ...]:
        """observation_id, price_id and the record, in one pass: what is stored, of a million offers too."""
        record = self.to_record()
        plain: list[Any] = list(record)
        for index in _DECIMAL_INDEXES:
            if plain[index] is not None:
                plain[index] = _shortest(plain[index])
        plain[_COMPONENTS_INDEX] = [
            [part.sku, _shortest(f"{part.quantity:f}"), part.unit, _shortest(f"{part.amount:f}")]
            for part in self.components
        ]
        observed = plain[:_FETCHED_INDEX] + plain[_FETCHED_INDEX + 1 :]
        return (_digest(observed), self.price_id, *record)

    @classmethod
    def from_record(cls, record: Sequence[str | int | None]) -> Offer:
        """An offer from the values `to_record` gave. Raises BadOffer."""
        values: list[Any] = list(record)
        for index, name, read in _RECORD_READERS:
            if values[index] is not None:
                values[index] = read(name, values[index])
        return cls(**dict(zip(FIELDS, values, strict=True)))

    @classmethod
    def from_row(cls, row: Mapping[str, str | None]) -> Offer:
        """An offer from a row of text, as a CSV file has it; a missing or empty cell means not given.

        Times may be dates: a date is the first instant of that day in UTC. Raises BadOffer.
        """
        unknown = sorted(set(row) - set(FIELDS))
        if unknown:
            raise BadOffer(f'no field "{unknown[0]}"; fields: {", ".join(FIELDS)}')
        values: dict[str, Any] = {}
        for name, text in row.items():
            text = (text or "").strip()
            if not text:
                continue
            values[name] = _READ[name](name, text) if name in _READ else text
        for name in REQUIRED:
            if name not in values and name != "amount":
                raise BadOffer(f"{name} is missing")
        values.setdefault("amount", None)
        return cls(**values)


FIELDS: tuple[str, ...] = tuple(field.name for field in fields(Offer))
REQUIRED: tuple[str, ...] = FIELDS[: FIELDS.index("zone")]
_DECIMALS = (
    "amount", "amount_low", "amount_high", "upfront", "tax_rate", "vcpu", "ram_gib",
    "local_ssd_gib", "net_gbps",
)  # fmt: skip
_MONEY = ("amount", "amount_low", "amount_high", "upfront")
_INTEGERS = ("term_months", "gpu_count", "gpu_mem_mib", "sample_n")
_TIMES = ("observed_at", "checked_at", "valid_from", "valid_to", "fetched_at")
_CHOICES: dict[str, frozenset[str | None]] = {
    "kind": frozenset(get_args(Kind)),
    "contract": frozenset(get_args(Contract)),
    "unit": frozenset(get_args(Unit)),
    "tax": frozenset(get_args(Tax)),
    "availability": frozenset(get_args(Availability)),
    "quality": frozenset(get_args(Quality)),
    "payment": frozenset((*get_args(Payment), None)),
    "condition": frozenset((*get_args(Condition), None)),
    "gpu_form": frozenset((*get_args(Form), None)),
}
_TEXTS = tuple(
    name
    for name in FIELDS
    if name not in {*_DECIMALS, *_INTEGERS, *_TIMES, *_CHOICES, "components", "currency"}
)
_DECIMAL_INDEXES = tuple(FIELDS.index(name) for name in _DECIMALS)
_COMPONENTS_INDEX, _FETCHED_INDEX = FIELDS.index("components"), FIELDS.index("fetched_at")
_UTC_OFFSET = timedelta(0)
# One call for several fields: a plan reads hundreds of offers, and each is checked.
_choices_of = attrgetter(*_CHOICES)
_decimals_of = attrgetter(*_DECIMALS)
_times_of = attrgetter(*_TIMES)
_integers_of = attrgetter(*_INTEGERS)
_texts_of = attrgetter(*_TEXTS)
_all_of = attrgetter(*FIELDS)
_key_of = attrgetter(*KEY_FIELDS)
# One encoder for all: json.dumps makes a new one at each call with options.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


# --- checking


def _check(offer: Offer) -> None:
    for name, value in zip(_CHOICES, _choices_of(offer), strict=True):
        if value not in _CHOICES[name]:
            raise _bad(offer, name, f"one of {', '.join(sorted(filter(None, _CHOICES[name])))} is meant")
    for name, value in zip(_DECIMALS, _decimals_of(offer), strict=True):
        if value is not None:
            _check_number(offer, name, value)
    for name, value in zip(_TIMES, _times_of(offer), strict=True):
        if value is not None and not (isinstance(value, datetime) and value.utcoffset() == _UTC_OFFSET):
            raise _bad(offer, name, "a datetime with timezone UTC is needed")
    for name, value in zip(_INTEGERS, _integers_of(offer), strict=True):
        if value is not None and (type(value) is not int or not 0 <= value < 2**31):
            raise _bad(offer, name, "a whole number, zero or more and below 2^31, is needed")
    for value, name in zip(_texts_of(offer), _TEXTS, strict=True):
        # Spaces around a word would make a second key that looks the same; PostgreSQL refuses NUL.
        if isinstance(value, str) and value and value.isprintable() and value == value.strip():
            continue
        if value is not None or name in REQUIRED:
            raise _bad(offer, name, "one line of text without spaces around it is needed")
    if not (isinstance(offer.currency, str) and len(offer.currency) == 3 and offer.currency.isascii()
            and offer.currency.isalpha() and offer.currency.isupper()):  # fmt: skip
        raise _bad(offer, "currency", 'an ISO 4217 code such as "USD" is needed')
    if offer.observed_at is None:
        raise _bad(offer, "observed_at", "a price without a date cannot be judged")
    _check_together(offer)


def _check_number(offer: Offer, name: str, value: object) -> None:
    if not isinstance(value, Decimal):
        raise _bad(offer, name, "a Decimal is needed; a float has already lost digits")
    if not value.is_finite():
        raise _bad(offer, name, "a finite number is needed; leave it empty when it is not known")
    if value and not _SMALLEST_EXPONENT <= value.adjusted() <= _LARGEST_EXPONENT:
        raise _bad(offer, name, "that is no plausible size")
    if value < 0:
        raise _bad(offer, name, "a negative number makes no sense here")
    if not value and name in _MONEY:
        raise _bad(offer, name, "zero is not a price; leave it empty when it is not known")


def _check_together(offer: Offer) -> None:
    low, amount, high = offer.amount_low, offer.amount, offer.amount_high
    if low is not None and high is not None and low > high:
        raise _bad(offer, "amount_low", f"it is above amount_high {high}")
    if amount is not None and ((low is not None and amount < low) or (high is not None and amount > high)):
        raise _bad(offer, "amount", f"it lies outside {low} to {high}")
    if offer.valid_from is not None and offer.valid_to is not None and offer.valid_from > offer.valid_to:
        raise _bad(offer, "valid_from", f"it is after valid_to {offer.valid_to.isoformat()}")
    if offer.quality != "ok" and not offer.reason:
        raise _bad(offer, "reason", f'quality "{offer.quality}" needs a reason')
    if not isinstance(offer.components, tuple):
        raise _bad(offer, "components", "a tuple of Component is needed")
    for part in offer.components:
        if not isinstance(part, Component):
            raise _bad(offer, "components", "a tuple of Component is needed")
        _check_number(offer, "components", part.quantity)
        _check_number(offer, "components", part.amount)
        if part.unit not in _CHOICES["unit"]:
            raise _bad(offer, "components", f'unit "{part.unit}" is not known')


def _bad(offer: Offer, name: str, what_is_meant: str) -> BadOffer:
    value = getattr(offer, name)
    shown = str(value) if isinstance(value, Decimal) else repr(value)
    return BadOffer(f"{name} {shown[:80]} of {offer.where}: {what_is_meant}")


# --- text and back


def aware(name: str, value: datetime) -> datetime:
    """The same instant in UTC. Raises BadOffer for a time without a timezone."""
    if value.utcoffset() is None:
        raise BadOffer(f"{name} {value.isoformat()}: a time without a timezone can mean many instants; add Z")
    return value.astimezone(UTC)


def parse_decimal(name: str, text: str | int) -> Decimal:
    """A number as published, digit for digit. Raises BadOffer for "2000+", "1,000" or a range."""
    try:
        return Decimal(text)
    except InvalidOperation:
        raise BadOffer(f'{name} "{str(text)[:40]}" is not a number: digits and one point are meant') from None


def parse_integer(name: str, text: str | int) -> int:
    """A whole number. Raises BadOffer."""
    try:
        return int(text[:20]) if isinstance(text, str) else text
    except ValueError:
        raise BadOffer(f'{name} "{str(text)[:40]}" is not a whole number') from None


def parse_time(name: str, text: str | int) -> datetime:
    """An instant in UTC; a date is its first instant. Raises BadOffer."""
    text = str(text)
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        raise BadOffer(
            f'{name} "{text[:40]}" is not a time: 2026-09-10 or 2026-09-10T19:55:14Z is meant'
        ) from None
    if len(text) == len("2026-09-10"):
        return value.replace(tzinfo=UTC)
    return value if value.tzinfo is UTC else aware(name, value)


def format_time(value: datetime) -> str:
    """An instant as text of fixed width, so that text order is time order."""
    return value.isoformat(timespec="microseconds")[:26] + "Z"


def _parse_components(name: str, text: str | int) -> tuple[Component, ...]:
    if text == "[]":
        return ()
    try:
        parts = json.loads(str(text))
        return tuple(
            Component(str(sku), Decimal(quantity), unit, Decimal(amount))
            for sku, quantity, unit, amount in parts
        )
    except (ValueError, TypeError, InvalidOperation, RecursionError):
        raise BadOffer(
            f'{name} "{str(text)[:60]}" does not read: [["sku", "quantity", "unit", "amount"], …] is meant'
        ) from None


def _write_components(parts: tuple[Component, ...]) -> str:
    if not parts:
        return "[]"
    return json.dumps([[part.sku, f"{part.quantity:f}", part.unit, f"{part.amount:f}"] for part in parts])


_READ: dict[str, Any] = {
    **dict.fromkeys(_DECIMALS, parse_decimal),
    **dict.fromkeys(_INTEGERS, parse_integer),
    **dict.fromkeys(_TIMES, parse_time),
    "components": _parse_components,
}
_RECORD_READERS = tuple((FIELDS.index(name), name, read) for name, read in _READ.items())
_WRITE: dict[str, Any] = {
    **dict.fromkeys(_DECIMALS, lambda value: format(value, "f")),
    **dict.fromkeys(_TIMES, format_time),
    "components": _write_components,
}
_RECORD_WRITERS = tuple((FIELDS.index(name), write) for name, write in _WRITE.items())


def _shortest(text: str) -> str:
    """21.957642 and 21.9576420000 are one figure. Not Decimal.normalize(): that rounds to 28 digits."""
    return text.rstrip("0").rstrip(".") if "." in text else text


@lru_cache(maxsize=8192)
def _digest_of_key(values: tuple[object, ...]) -> str:
    """A history holds the same key thousands of times, one after another."""
    return _digest(values)


def _digest(values: Sequence[object]) -> str:
    return hashlib.sha256(_encode(values).encode()).hexdigest()[:32]
