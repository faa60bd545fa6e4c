"""How sellers round the hours they bill. Figures, sources and dates: data/billing.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, Decimal, localcontext
from functools import lru_cache
from pathlib import Path

_SECONDS_PER_HOUR = 3600
_LARGEST_EXPONENT = 12  # a million years; beyond it int() takes as long as someone wants it to


@dataclass(frozen=True, slots=True)
class Billing:
    """A seller's rule: in steps of granularity_seconds, at least minimum_seconds [s]."""

    provider: str
    granularity_seconds: int
    minimum_seconds: int
    source: str
    checked: date | None
    note: str | None = None


def billing_of(provider: str) -> Billing:
    """The seller's rule; whole hours, labelled an assumption, for one that is not listed."""
    found = _rules().get(provider)
    if found is not None:
        return found
    return Billing(
        provider,
        granularity_seconds=_SECONDS_PER_HOUR,
        minimum_seconds=_SECONDS_PER_HOUR,
        source="assumption",
        checked=None,
        note="not listed, so whole hours are assumed: the dearest of the usual rules",
    )


def billed_hours(provider: str, hours: Decimal) -> Decimal:
    """Hours that the seller bills for `hours` of use: `billed_seconds` / 3600. [h]

    An hour has no finite third, so money that must be exact is rate × seconds / 3600.

    >>> billed_hours("somebody", Decimal("0.5"))
    Decimal('1')
    """
    return Decimal(billed_seconds(provider, hours)) / _SECONDS_PER_HOUR


def billed_seconds(provider: str, hours: Decimal) -> int:
    """Seconds that the seller bills for `hours` of use, rounded up to its granularity. [s]

    hours: zero or more; zero is billed as zero. Raises ValueError for a negative or non-finite number.

    >>> billed_seconds("aws", Decimal(20) / 60)
    1200
    >>> billed_seconds("lambda", Decimal("0.01"))  # 36 s, by the minute
    60
    """
    if not hours.is_finite() or hours < 0 or hours.adjusted() > _LARGEST_EXPONENT:
        raise ValueError(f"hours {hours}: a finite number, zero or more, is meant")
    if not hours:
        return 0
    rule = billing_of(provider)
    with localcontext() as context:
        # 20 minutes written as 0.333… h are 1,200 s, and must not become 1,201 s where the last digit was
        # rounded up: what is nearer to a step than a microsecond is that step.
        context.prec = 50
        steps = (hours * _SECONDS_PER_HOUR).quantize(Decimal("1e-6")) / rule.granularity_seconds
        seconds = int(steps.to_integral_value(ROUND_CEILING)) * rule.granularity_seconds
    return max(seconds, rule.minimum_seconds)


@lru_cache(maxsize=1)
def _rules() -> dict[str, Billing]:
    path = Path(__file__).parent / "data" / "billing.toml"
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return {provider: Billing(provider=provider, **table) for provider, table in tables.items()}
