"""What can go wrong when asking what something costs.

PricingError
├── UnknownItem      no such item, provider or region in the store (carries the nearest names)
├── BadOffer         an offer that breaks an invariant of offer.py (names the field)
├── BadPriceFile     a price file that does not read (names file, row and column)
└── StoreUnusable    the store cannot be opened, is locked or of a newer schema
"""

from __future__ import annotations


class PricingError(Exception):
    """Root of this package's errors; the message says what, where and what to do next."""


class UnknownItem(PricingError):
    """An item, provider or region that is not in the store."""


class BadOffer(PricingError):
    """An offer that breaks an invariant."""


class BadPriceFile(PricingError):
    """A price file that does not read."""


class StoreUnusable(PricingError):
    """The price store cannot be used."""
