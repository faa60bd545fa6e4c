"""Figures as people read them: rounded, grouped, with their unit."""

from __future__ import annotations

from decimal import Decimal


def money(amount: Decimal) -> str:
    """An amount to the cent; to whole units where it is large, to more places where it is small.

    >>> money(Decimal("2001.876")), money(Decimal("123456.7")), money(Decimal("0.01234"))
    ('2,001.88', '123,457', '0.0123')
    """
    size = abs(amount)
    if size >= 100_000:
        return f"{amount:,.0f}"
    return f"{amount:,.2f}" if size >= Decimal("0.1") or size == 0 else f"{amount:.4f}"


def money_range(low: Decimal, high: Decimal) -> str:
    """Two ends of a band, to three figures: more would promise what a simulation cannot keep.

    One figure where the ends do not differ by as much.

    >>> money_range(Decimal("2.664"), Decimal("3.552")), money_range(Decimal("1801.692"), Decimal(2402))
    ('2.66–3.55', '1,802–2,402')
    """
    ends = dict.fromkeys((_three(low), _three(high)))
    return "–".join(ends)


def hours(value: float) -> str:
    """A duration in hours, never in days, so that rows compare.

    >>> hours(0.345), hours(14.23), hours(1234.5)
    ('0.34', '14.2', '1,234')
    """
    return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f}"


def _three(amount: Decimal) -> str:
    size = abs(amount)
    return (
        f"{amount:,.{4 if size < Decimal('0.1') and size else 2 if size < 10 else 1 if size < 100 else 0}f}"
    )


def rate(value: float) -> str:
    """A speed to four figures.

    >>> rate(12911.2), rate(123.456)
    ('12,911', '123.5')
    """
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def count(value: float) -> str:
    """A count in words beyond a million: 336.4 M, 3.2 B.

    >>> count(875_990), count(336_380_160), count(3.2e9)
    ('875,990', '336.4 M', '3.2 B')
    """
    for size, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if value >= size:
            return f"{value / size:,.1f} {letter}"
    return f"{value:,.0f}"


def age(days: int | None) -> str:
    """How old a price is, in days; "-" where nothing was quoted."""
    return "-" if days is None else f"{days:,} d"


def share(value: float) -> str:
    """A fraction in percent: 0.62 is 62 %."""
    return f"{value:.0%}".replace("%", " %")


def gib(size_bytes: float) -> str:
    """A size in GiB (2^30 B), to two places.

    >>> gib(7 * 2**30)
    '7.00'
    """
    return f"{size_bytes / 2**30:,.2f}"
