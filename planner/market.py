"""What the store's offers say, for one plan: usable prices in the plan's currency, and why others are not.

Rules: an empty or zero amount is unknown and never chosen; a currency without a rate is refused, never
compared as a bare number; age alone excludes nothing unless a greatest age was asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from . import money
from .answer import Excluded, PriceUsed
from .errors import NothingStored

if TYPE_CHECKING:
    from .pricing.offer import Offer

RETAIL_KINDS = ("gpu_retail", "part_retail", "system_retail")
_HOURLY = ("instance_hour", "gpu_hour")
_TERM_MONTHS = {"reserved_1y": 12, "reserved_3y": 36, "savings_plan_1y": 12, "savings_plan_3y": 36}
# Not worth planning on: quarantined rows.
_UNUSABLE_QUALITY = frozenset({"suspect"})


@dataclass(frozen=True, slots=True)
class Quote:
    """One usable price. unit_price: per offer.unit; upfront: a fee paid once; in the plan's currency."""

    offer: Offer
    unit_price: Decimal
    used: PriceUsed
    upfront: Decimal = money.ZERO

    @property
    def term_months(self) -> int:
        """Of a commitment, as stated or as its contract says; 0 without one."""
        return self.offer.term_months or _TERM_MONTHS.get(self.offer.contract, 0)

    @property
    def source(self) -> str:
        return f"{self.offer.source}: {self.offer.source_ref}" if self.offer.source_ref else self.offer.source


@dataclass(frozen=True, slots=True)
class Sale:
    """Something to pay for: a cloud offer, or a rig. region: "" where it has none."""

    region: str
    quote: Quote | None = None


@dataclass(frozen=True, slots=True)
class Rate:
    """Plan currency per unit of another currency."""

    value: Decimal
    source: str | None
    observed_at: datetime | None


class Market:
    """The latest offers as of one moment. Every refusal is kept in `excluded`, each once.

    used_history: all observations of used prices. rates: plan currency per unit, by stored currency.
    """

    def __init__(
        self,
        offers: Iterable[Offer],
        *,
        as_of: datetime,
        currency: str,
        fx: Mapping[str, Decimal] | None = None,
        rates: Mapping[str, Rate] | None = None,
        used_history: Iterable[Offer] = (),
        max_age_hours: Decimal | None = None,
    ) -> None:
        self._as_of = as_of
        self._currency = currency
        self._rates: dict[str, Rate] = dict(rates or {})
        for given, value in (fx or {}).items():
            self._rates[given] = Rate(value, "given by the user", as_of)
        self._rates[currency] = Rate(Decimal(1), None, None)
        self._max_age_hours = max_age_hours
        self._by_item: dict[tuple[str, str], list[Offer]] = {}
        self.offers = tuple(offers)
        self._without_rate: set[str] = set()
        self._excluded: dict[tuple[str, str], Excluded] = {}
        self._sales: dict[tuple[str, frozenset[str], tuple[str, ...]], tuple[Sale, ...]] = {}
        self._used_history: dict[str, list[Offer]] = {}
        for offer in used_history:
            self._used_history.setdefault(offer.item, []).append(offer)
        self.regions: set[str] = set()
        self.providers: set[str] = set()
        for offer in self.offers:
            kind = "retail" if offer.kind in RETAIL_KINDS else offer.kind
            self._by_item.setdefault((kind, offer.item), []).append(offer)
            if offer.kind == "cloud_instance":
                self.regions.add(offer.region)
                self.providers.add(offer.provider)

    @property
    def currency(self) -> str:
        return self._currency

    @property
    def as_of(self) -> datetime:
        return self._as_of

    @property
    def currencies_without_rate(self) -> tuple[str, ...]:
        """Currencies in which a price was refused."""
        return tuple(sorted(self._without_rate))

    @property
    def excluded(self) -> tuple[Excluded, ...]:
        return tuple(self._excluded.values())

    def cloud(self, item: str, contracts: frozenset[str], regions: tuple[str, ...]) -> tuple[Sale, ...]:
        """Usable offers of one instance under any of these contracts; regions: empty means all.

        A seller that names no region has "all": it cannot promise one, so it is left out where one is asked.
        """
        key = (item, contracts, regions)
        if key not in self._sales:
            quotes = [self.quote(offer) for offer in self._rented(item, contracts, regions)]
            self._sales[key] = tuple(Sale(q.offer.region, q) for q in quotes if q is not None)
        return self._sales[key]

    def commitments(self, item: str, contracts: frozenset[str], regions: tuple[str, ...]) -> tuple[Sale, ...]:
        """Usable commitments: as `cloud`, but a prepaid one may lack an hourly amount."""
        found = []
        for offer in self._rented(item, contracts, regions):
            prepaid = offer.amount is None and offer.upfront is not None
            quote = self._prepaid(offer) if prepaid else self.quote(offer)
            if quote is not None:
                found.append(Sale(offer.region, quote))
        return tuple(found)

    def _rented(self, item: str, contracts: frozenset[str], regions: tuple[str, ...]) -> list[Offer]:
        return [
            offer
            for offer in self._by_item.get(("cloud_instance", item), ())
            if offer.contract in contracts
            and offer.unit in _HOURLY
            and (not regions or offer.region in regions)
        ]

    def retail(self, item: str, *, used: bool = False) -> Quote | None:
        """The price to expect for one piece, new or used; None where no usable row is stored.

        A median of many sales comes before a single listing, then the newer, then the cheaper. Where a piece
        is sold only used, that is its price.
        """
        rows = [*self._by_item.get(("retail", item), ()), *self._by_item.get(("resale", item), ())]
        quotes = [quote for row in rows if row.unit == "each" and (quote := self.quote(row)) is not None]
        as_asked = [q for q in quotes if _is_used(q.offer) == used]
        return min(as_asked or ([] if used else quotes), key=_expected_first, default=None)

    def history_of_used(self, item: str) -> list[tuple[datetime, Decimal]]:
        """(when, plan currency) of every stored used price of one piece, oldest first."""
        quotes = [self.quote(row) for row in self._used_history.get(item, ())]
        return sorted((q.offer.observed_at, q.unit_price) for q in quotes if q is not None)

    def electricity(self, region: str = "us", customer: str = "commercial") -> Quote | None:
        """The latest tariff of such customers in that region; None where none is stored."""
        rows = self._by_item.get(("electricity", f"electricity-{customer}"), ())
        quotes = [self.quote(row) for row in rows if row.region == region and row.unit == "kwh"]
        return max(
            (quote for quote in quotes if quote is not None),
            key=lambda q: (q.offer.observed_at, q.offer.price_id),
            default=None,
        )

    def quote(self, offer: Offer) -> Quote | None:
        """The offer as a usable price; None, with a reason kept, where it is not."""
        return self._quote(offer, offer.amount, offer.amount)

    def _prepaid(self, offer: Offer) -> Quote | None:
        """A commitment whose whole price is its fee: the same refusals, and nothing per hour."""
        return self._quote(offer, offer.upfront, money.ZERO)

    def _quote(self, offer: Offer, judged: Decimal | None, per_unit: Decimal | None) -> Quote | None:
        reason = self._why_not(offer, judged)
        if reason is not None:
            self.refuse(_label(offer), *reason)
            return None
        rate = self.rate(offer.currency)
        if rate is None or per_unit is None:
            return None
        return self._quote_of(offer, rate, per_unit)

    def _quote_of(self, offer: Offer, rate: Rate, amount: Decimal) -> Quote:
        age = self._as_of.date() - offer.observed_at.date()
        used = PriceUsed(
            id="/".join(
                filter(None, (offer.provider, offer.item, offer.zone or offer.region, offer.contract))
            ),
            item=offer.item,
            provider=offer.provider,
            region=offer.region,
            contract=offer.contract,
            amount=amount,
            currency=offer.currency,
            unit=offer.unit,
            source=offer.source,
            source_ref=offer.source_ref or "",
            observed_at=offer.observed_at,
            age_days=max(0, age.days),
            quality=offer.quality,
            fx_rate=rate.value,
            fx_source=rate.source,
            fx_observed_at=rate.observed_at,
        )
        upfront = money.ZERO if offer.upfront is None else money.product(offer.upfront, rate.value)
        return Quote(offer, money.product(amount, rate.value), used, upfront)

    def refuse(self, what: str, code: str, reason: str) -> None:
        """Keep why something was left out."""
        self._excluded.setdefault((what, reason), Excluded(what, code, reason))

    def rate(self, currency: str) -> Rate | None:
        """Plan currency per unit of `currency`: the user's rate, else the stored one, else None."""
        return self._rates.get(currency)

    def _why_not(self, offer: Offer, amount: Decimal | None) -> tuple[str, str] | None:
        if amount is None or amount <= 0:
            return "no_price", "price unknown"
        if offer.quality in _UNUSABLE_QUALITY:
            return "no_price", f"price is suspect and not used (observed {offer.observed_at:%Y-%m-%d})"
        if offer.availability == "listed_only":
            return "not_sold", "listed with a price but not sold under that contract"
        if self.rate(offer.currency) is None:
            self._without_rate.add(offer.currency)
            return "currency", (
                f"priced in {offer.currency} and no rate to {self._currency} is known; "
                f"give --fx {offer.currency}=RATE"
            )
        if self._max_age_hours is not None:
            age = self._as_of - offer.observed_at
            if age > timedelta(hours=float(self._max_age_hours)):
                return "stale_price", f"price is {age.days} days old, older than --max-price-age"
        return None


def stored_market(
    as_of: datetime,
    currency: str = "USD",
    *,
    fx: Mapping[str, Decimal] | None = None,
    max_age_hours: Decimal | None = None,
) -> Market:
    """The stored offers as of then, in one currency. Raises NothingStored."""
    from .pricing.errors import StoreUnusable
    from .pricing.reading import open_for_reading

    try:
        with open_for_reading() as store:
            return Market(
                store.latest(as_of),
                as_of=as_of,
                currency=currency,
                fx=fx,
                used_history=store.history(as_of, kind="resale"),
                max_age_hours=max_age_hours,
            )
    except StoreUnusable as error:
        raise NothingStored(str(error)) from error


def _is_used(offer: Offer) -> bool:
    return offer.kind == "resale" or offer.condition in ("used", "refurbished")


def _expected_first(quote: Quote) -> tuple[bool, float, Decimal, str]:
    offer = quote.offer
    return (offer.sample_n or 1) <= 1, -offer.observed_at.timestamp(), quote.unit_price, offer.price_id


def _label(offer: Offer) -> str:
    where = f"/{offer.region}" if offer.region else ""
    return f"{offer.provider}/{offer.item}{where} {offer.contract}"
