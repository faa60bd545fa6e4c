"""What any store of prices is asked: the latest of each, how it was at a date, how it moved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime
from typing import Unpack

from .errors import UnknownItem
from .offer import FIELDS, Offer
from .queries import (
    AsOf,
    Filter,
    Filters,
    asked,
    by_date,
    end_of,
    history_sql,
    latest_sql,
)

COLUMNS = ", ".join(FIELDS)


class StoredPrices:
    """Questions to a store; how one is put to the database is up to the store."""

    def _offers(self, query: str, values: Mapping[str, str]) -> tuple[Offer, ...]:
        """The rows of a query of COLUMNS. Raises StoreUnusable."""
        raise NotImplementedError

    def latest(self, as_of: AsOf = None, **filters: Unpack[Filters]) -> tuple[Offer, ...]:
        """The newest observation of each price, ordered by kind, item, provider, region, contract.

        as_of: only what had been observed by then; a date means the end of that day in UTC.
        Rows of quality "suspect" stay in history and are never answered here; a row whose amount is None is:
        that the price is not known is news as well.
        """
        question = asked(as_of, **filters)
        return self._offers(latest_sql(COLUMNS, question), question.values)

    def history(self, as_of: AsOf = None, **filters: Unpack[Filters]) -> tuple[Offer, ...]:
        """Every observation that passes the filters, oldest first, suspect ones too."""
        question = asked(as_of, **filters)
        return self._offers(history_sql(COLUMNS, question), question.values)

    def first_after(
        self, as_of: date | datetime, *, item: Filter = None, kind: Filter = None
    ) -> tuple[Offer, ...]:
        """For each price that had not been observed by `as_of`: its first observation after it.

        For looking back to a time from which some prices (parts, power) are not recorded: each row comes as
        quality "estimated" with the reason, so that nobody takes it for what was known then.
        """
        end = end_of(as_of)
        first: dict[str, Offer] = {}
        for offer in self.history(item=item, kind=kind):
            if offer.quality != "suspect":
                first.setdefault(offer.price_id, offer)
        return tuple(
            replace(
                offer,
                quality="estimated",
                reason=f"first observed on {offer.observed_at:%Y-%m-%d}, after {end:%Y-%m-%d}"
                + (f"; {offer.reason}" if offer.reason else ""),
            )
            for offer in first.values()
            if offer.observed_at > end
        )

    def latest_by_item(self, kind: Filter = None, as_of: AsOf = None) -> dict[str, tuple[Offer, ...]]:
        """The latest offers, grouped by item."""
        groups: defaultdict[str, list[Offer]] = defaultdict(list)
        for offer in self.latest(as_of, kind=kind):
            groups[offer.item].append(offer)
        return {name: tuple(offers) for name, offers in groups.items()}

    def retail(self, item: str, condition: str = "new", as_of: AsOf = None) -> Offer:
        """The price in USD to expect for one card or part.

        A median or mean of several sales comes before a single listing, then the newer before the older.
        Used cards are bought at what others sell them for, so the resale series answers for them.
        Raises UnknownItem.
        """
        kinds = ("gpu_retail", "part_retail", "system_retail", "resale")
        found = self.latest(as_of, item=item, kind=kinds, condition=condition)
        offer = best_retail(found)
        if offer is None:
            raise UnknownItem(
                f'no price of "{item}", {condition}, is stored{by_date(as_of)}.'
                f"{self._nearest('item', item, kinds)} All prices: planner prices list"
            )
        return offer

    def electricity(self, region: str = "us", customer: str = "commercial", as_of: AsOf = None) -> Offer:
        """The price of a kWh in a region such as "us", "us-virginia" or "europe". Raises UnknownItem."""
        found = self.latest(as_of, kind="electricity", item=f"electricity-{customer}", region=region)
        known = [offer for offer in found if offer.amount is not None]
        if not known:
            raise UnknownItem(
                f'no {customer} electricity price of region "{region}" is stored{by_date(as_of)}.'
                f"{self._nearest('region', region, ('electricity',))} Or state one: --electricity-price 0.15"
            )
        return max(known, key=lambda offer: offer.observed_at)

    def _nearest(self, column: str, name: str, kinds: tuple[str, ...]) -> str:
        from difflib import get_close_matches

        names = sorted({getattr(offer, column) for offer in self.latest(kind=kinds)})
        close = get_close_matches(name, names, n=1, cutoff=0.6)
        return f' Did you mean "{close[0]}"?' if close else ""


def best_retail(offers: Iterable[Offer]) -> Offer | None:
    """Of several sellers' prices of one thing, the one to reckon with; None when none is known in USD.

    A price over several sales before a single listing (one listing may be a scalper's: 3,399 against a
    median of 3,089 for the RTX 4090 in mid-2025), then the newer before the older.
    """
    known = [offer for offer in offers if offer.amount is not None and offer.currency == "USD"]
    return max(known, key=lambda offer: ((offer.sample_n or 1) > 1, offer.observed_at), default=None)
