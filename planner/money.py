"""Exact decimal money: round a quantity once, then multiply and add without rounding.

A product that does not fit the working precision raises instead of being rounded, so that the lines of a
cost always add up to its total.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_HALF_EVEN, Context, Decimal, Inexact

# 60 digits hold any sum of products of an amount and a quantity of 20 digits each.
_EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN, traps=[Inexact])
_WORKING = Context(prec=60, rounding=ROUND_HALF_EVEN)

# One step of a quantity: a millionth of an hour is 3.6 ms, of a kWh 3.6 J.
QUANTITY_STEP = Decimal("0.000001")
# One step of a price that we compute (a rig-hour out of a purchase): a millionth of a cent.
PRICE_STEP = Decimal("0.00000001")
ZERO = Decimal(0)


def quantity(value: Decimal | float | int, step: Decimal = QUANTITY_STEP) -> Decimal:
    """`value` rounded half to even to a multiple of `step`.

    >>> quantity(2 / 3)
    Decimal('0.666667')
    """
    exact = value if isinstance(value, Decimal) else Decimal(str(value))
    return _WORKING.quantize(exact, step)


def price(value: Decimal | float) -> Decimal:
    """A price of our own computing, rounded to PRICE_STEP."""
    return quantity(value, PRICE_STEP)


def product(a: Decimal, b: Decimal) -> Decimal:
    """a × b, exactly. Raises decimal.Inexact where 60 digits do not hold it."""
    return _EXACT.multiply(a, b)


def divided(a: Decimal, b: Decimal) -> Decimal:
    """a / b to 60 digits; round what becomes of it."""
    return _WORKING.divide(a, b)


def total(amounts: Iterable[Decimal]) -> Decimal:
    """The exact sum.

    >>> total([Decimal("0.1"), Decimal("0.2")])
    Decimal('0.3')
    """
    result = ZERO
    for amount in amounts:
        result = _EXACT.add(result, amount)
    return result


def plain(value: Decimal) -> Decimal:
    """The same number without trailing zeros and without an exponent.

    >>> plain(Decimal("35.00")), plain(Decimal("1E+2"))
    (Decimal('35'), Decimal('100'))
    """
    short = _WORKING.normalize(value)
    whole = short == short.to_integral_value()
    return _WORKING.quantize(short, Decimal(1)) if whole else short


def short(value: Decimal) -> str:
    """Decimal text without an exponent or trailing zeros, for formulas."""
    return format(plain(value), "f")


def text(value: Decimal) -> str:
    """Decimal text without an exponent, at least two decimals, nothing rounded.

    >>> text(Decimal("9.2")), text(Decimal("21.957642"))
    ('9.20', '21.957642')
    """
    written = format(plain(value), "f")
    whole, _, decimals = written.partition(".")
    return f"{whole}.{decimals:0<2}"
