"""What owning costs: one pure function per formula, named after it. Money is Decimal, rates are per year.

Formulas and check values: capital budgeting textbooks, IRS Publication 946 (MACRS), Epoch AI (decay).
Traps these functions are built against: a throughput ratio of 1 between unlike GPUs; energy with PUE and an
all-in colocation price both counted; a resale at the end of life instead of at the end of the project.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from .assumptions import HOURS_PER_YEAR

ONE = Decimal(1)

# Share of the purchase price per tax year: IRS Publication 946, Table A-1, 5-year property, half-year.
MACRS_5_YEAR_HALF_YEAR = tuple(Decimal(p) / 100 for p in ("20", "32", "19.2", "11.52", "11.52", "5.76"))


def capital_recovery_factor(rate: Decimal, years: Decimal) -> Decimal:
    """Equal yearly payment that repays 1 over `years` at `rate`: r / (1 - (1 + r)^-L). [1/y]

    >>> round(capital_recovery_factor(Decimal("0.08"), Decimal(4)), 6)
    Decimal('0.301921')
    """
    if rate == 0:
        return ONE / years
    return rate / (ONE - (ONE + rate) ** -years)


def equivalent_annual_cost(
    purchase: Decimal, residual: Decimal, rate: Decimal, years: Decimal, operating_per_year: Decimal
) -> Decimal:
    """(P - S(L) / (1 + r)^L) × capital recovery + O: a purchase as an equal yearly cost. [currency/y]"""
    net = purchase - residual / (ONE + rate) ** years
    return net * capital_recovery_factor(rate, years) + operating_per_year


def operating_cost_per_year(
    *,
    electricity_price: Decimal,
    pue: Decimal,
    utilization: Decimal,
    load_kw: Decimal,
    idle_kw: Decimal,
    maintenance: Decimal = Decimal(0),
    spares: Decimal = Decimal(0),
    staff: Decimal = Decimal(0),
) -> Decimal:
    """p_e × H × PUE × (u W_load + (1 - u) W_idle) + maintenance + spares + staff. [currency/y]

    Leaves out colocation: an all-in price replaces electricity and PUE, never adds to them.
    """
    energy_kwh = HOURS_PER_YEAR * pue * (utilization * load_kw + (ONE - utilization) * idle_kw)
    return electricity_price * energy_kwh + maintenance + spares + staff


def net_present_value(cash_by_month: Sequence[Decimal], rate_per_year: Decimal) -> Decimal:
    """Value today of cash in month 0, 1, 2, …; outflows negative. i_m = (1 + r)^(1/12) - 1. [currency]"""
    growth = ONE + rate_per_year
    return sum(
        (cash / growth ** (Decimal(month) / 12) for month, cash in enumerate(cash_by_month)), Decimal(0)
    )


def break_even_utilization(
    *,
    fixed_per_gpu_year: Decimal,
    cloud_price_per_gpu_hour: Decimal,
    throughput_ratio: Decimal,
    energy_price_per_gpu_hour: Decimal,
) -> Decimal | None:
    """u* = fixed / (H (c q - e)): the share of hours from which owning is cheaper; None where it never is.

    throughput_ratio: own GPU over cloud GPU on this workload; required, since 1 is wrong for unlike cards.
    A result above 1 also means never; it is returned to show how far off it is.
    """
    saved_per_hour = cloud_price_per_gpu_hour * throughput_ratio - energy_price_per_gpu_hour
    if saved_per_hour <= 0:
        return None
    return fixed_per_gpu_year / (HOURS_PER_YEAR * saved_per_hour)


def payback_periods(purchase: Decimal, rented: Decimal, running: Decimal) -> Decimal | None:
    """P / (c - o): periods until what is saved has paid the purchase; None where nothing is saved.

    rented, running: cost of one period (a month, a run) rented, and owned without any share of the purchase.
    Leaves out interest and resale. An owned cost that holds amortisation already would count it twice.

    >>> round(payback_periods(Decimal(392_000), Decimal(14_400), Decimal("3376.32")), 1)
    Decimal('35.6')
    """
    return purchase / (rented - running) if rented > running else None


def straight_line(purchase: Decimal, residual: Decimal, years: int) -> tuple[Decimal, ...]:
    """Equal depreciation per year. [currency]"""
    return ((purchase - residual) / years,) * years


def macrs_five_year(purchase: Decimal) -> tuple[Decimal, ...]:
    """Tax depreciation of computers by tax year; adds up to the purchase. [currency]

    >>> [int(d) for d in macrs_five_year(Decimal(10000))]
    [2000, 3200, 1920, 1152, 1152, 576]
    """
    return tuple(purchase * share for share in MACRS_5_YEAR_HALF_YEAR)


def resale_value(value_now: Decimal, decay_per_year: Decimal, years: Decimal) -> Decimal:
    """V e^(-k t): exponential decay of what a used rig sells for. [currency]

    >>> epoch = Decimal("0.14") * Decimal(10).ln()
    >>> [str(round(resale_value(Decimal(10000), epoch, Decimal(years)), 2)) for years in (1, 3)]
    ['7244.36', '3801.89']
    """
    return value_now * (-decay_per_year * years).exp()


def resale_forgone(value_now: Decimal, decay_per_year: Decimal, rate: Decimal, hours: Decimal) -> Decimal:
    """S(0) - S(T) / (1 + r)^T: what holding a rig for `hours` costs in resale and interest. [currency]"""
    years = hours / HOURS_PER_YEAR
    return value_now - resale_value(value_now, decay_per_year, years) / (ONE + rate) ** years
