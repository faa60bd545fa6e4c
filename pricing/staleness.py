"""How old a price is, and what is too old. Every function is told the time: none of them looks at a clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from .offer import Offer


@dataclass(frozen=True, slots=True)
class Freshness:
    """The age of some prices.

    oldest: the price seen longest ago; None when there are none.
    stale: those older than the limit, oldest first.
    """

    oldest: Offer | None
    stale: tuple[Offer, ...]


def age_days(offer: Offer, now: datetime) -> int:
    """Whole days since the source said it: what tables and CSV files show. Never negative. [day]"""
    return offer.age(now).days


def is_stale(offer: Offer, now: datetime, max_age: timedelta) -> bool:
    """Whether the price is older than `max_age`; one of exactly that age is not."""
    return offer.age(now) > max_age


def mark_stale(offers: Iterable[Offer], now: datetime, max_age: timedelta) -> tuple[Offer, ...]:
    """The offers, those too old with quality "stale" and their age as the reason.

    What was "suspect" or "estimated" before says so still, behind the age.
    """
    return tuple(_marked(offer, now) if is_stale(offer, now, max_age) else offer for offer in offers)


def freshness(offers: Iterable[Offer], now: datetime, max_age: timedelta) -> Freshness:
    """The oldest of the offers and all that are too old."""
    by_age = sorted(offers, key=lambda offer: (offer.observed_at, offer.price_id))
    return Freshness(
        by_age[0] if by_age else None, tuple(offer for offer in by_age if is_stale(offer, now, max_age))
    )


def _marked(offer: Offer, now: datetime) -> Offer:
    days = age_days(offer, now)
    before = f"; {offer.quality}: {offer.reason}" if offer.quality not in ("ok", "stale") else ""
    if offer.quality == "suspect":
        return replace(offer, reason=f"stale, {days} days{before}")
    return replace(offer, quality="stale", reason=f"stale, {days} days{before}")
