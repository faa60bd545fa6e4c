"""Rented hours: how many of them a seller bills for a run, and at what price."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

from . import money
from .errors import PlannerError
from .market import Quote, Sale
from .running_time import Run, Timed
from .terms import Bill, Risk, Terms

# Seconds are a repeating decimal of an hour: this step of 4 ns keeps 1,200 s × 21.96 at 7.32 to ten digits.
_BILLED_STEP = Decimal("0.000000000001")


@lru_cache(maxsize=4096)
def _billed(provider: str, paid: Decimal) -> Decimal:
    from .pricing.billing import billed_hours

    return money.quantity(billed_hours(provider, paid), _BILLED_STEP)


def quote_of(sale: Sale) -> Quote:
    """The offer behind a rental."""
    if sale.quote is None:
        raise PlannerError("a rental without an offer")
    return sale.quote


def billed_quantity(run: Run, timed: Timed, quote: Quote) -> Decimal:
    """What is multiplied by the offer's price: billed hours × instances, or × GPUs for a price per GPU."""
    by_gpu = quote.offer.unit == "gpu_hour"
    key = (timed.paid, by_gpu)
    if key not in run.billed:
        machine = run.variant.machine
        units = run.variant.count * (machine.gpu_count if by_gpu else 1)
        run.billed[key] = money.product(_billed(machine.provider, timed.paid), Decimal(units))
    return run.billed[key]


def rental_cost(run: Run, timed: Timed, sale: Sale) -> Decimal:
    """The whole cost of a rental, without its lines. [currency]"""
    quote = quote_of(sale)
    return money.product(billed_quantity(run, timed, quote), quote.unit_price)


def rental_bill(run: Run, timed: Timed, sale: Sale, terms: Terms, risk: Risk) -> tuple[Bill, Decimal]:
    """The lines of a rental, and the price of one GPU-hour."""
    quote, machine, count = quote_of(sale), run.variant.machine, run.variant.count
    by_gpu = quote.offer.unit == "gpu_hour"
    units = count * machine.gpu_count if by_gpu else count
    billed = _billed(machine.provider, timed.paid)
    said = f"{money.short(timed.paid)} h"
    if billed != timed.paid:
        said += f", billed as {money.short(billed)}"
    what, unit = ("GPU", "GPU-hour") if by_gpu else ("instance", "instance-hour")
    bill = Bill(terms.currency)
    bill.quoted(
        "compute",
        billed_quantity(run, timed, quote),
        unit,
        quote,
        f"{said} × {units} {what}{'s' if units > 1 else ''}",
        risk,
    )
    gpus = 1 if by_gpu else machine.gpu_count
    return bill, money.price(money.divided(quote.unit_price, Decimal(gpus)))


def spot_price_risk(quote: Quote, terms: Terms) -> Risk:
    """The window's own low and high where the offer states them, else the assumed spread."""
    offer, spread = quote.offer, float(terms.assume["spot_price_spread"])
    low, high = 1 / spread, spread
    if offer.amount and offer.amount_low and offer.amount_high and offer.amount_low < offer.amount_high:
        low, high = float(offer.amount_low / offer.amount), float(offer.amount_high / offer.amount)
    return Risk(with_hours=True, factor="spot price", low=low, high=high)
