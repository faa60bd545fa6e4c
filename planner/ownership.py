"""A rig's money: what its parts cost, what it fetches used, what an hour of it draws and wears."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from . import money, tco
from .assumptions import HOURS_PER_YEAR
from .market import Quote
from .terms import BY_HOURS, Bill, Risk, Terms

if TYPE_CHECKING:
    from .models.hardware.catalogue import Rig

# Used prices older than this say little about what a card loses from now on: RTX 3090 prices fell by 70 % in
# 2022, when mining ended, and by a few per cent in 2024.
_RESALE_WINDOW = timedelta(days=3 * 365)
_FEWEST_USED_PRICES = 3
_SHORTEST_SERIES = timedelta(days=180)
_WATTS_PER_KW = Decimal(1000)
_DAYS_PER_YEAR = 365


@dataclass(frozen=True, slots=True)
class PartPrice:
    """One kind of part: how many, and the price of one."""

    item: str
    quantity: int
    quote: Quote


@dataclass(frozen=True, slots=True)
class Decay:
    """How fast a resale value falls: e^(-per_year t). low and high: its 10 % and 90 % points. [1/y]"""

    per_year: Decimal
    low: Decimal
    high: Decimal
    source: str


def parts_of(rig: Rig, terms: Terms) -> tuple[PartPrice, ...] | None:
    """The priced bill of materials; None, with the reason kept, where the price of a part is unknown."""
    if rig.id not in terms.priced_parts:
        terms.priced_parts[rig.id] = _price_parts(rig, terms)
    return terms.priced_parts[rig.id]


def _price_parts(rig: Rig, terms: Terms) -> tuple[PartPrice, ...] | None:
    found: list[PartPrice] = []
    missing: list[str] = []
    for part in rig.parts:
        quote = terms.market.retail(part.item)
        if quote is None:
            missing.append(part.item)
        else:
            found.append(PartPrice(part.item, part.quantity, quote))
    if missing:
        count = f"{len(missing)} part" + ("s" if len(missing) > 1 else "")
        terms.market.refuse(
            rig.id, "no_price", f"price of {count} of {len(rig.parts)} unknown: {', '.join(missing)}"
        )
        return None
    return tuple(found)


def purchase_price(parts: Sequence[PartPrice]) -> Decimal:
    """What one rig costs new. [currency]"""
    return money.total(money.product(Decimal(part.quantity), part.quote.unit_price) for part in parts)


def gpu_price(rig: Rig, parts: Sequence[PartPrice]) -> Decimal:
    """What its GPUs cost new. [currency]"""
    return purchase_price([part for part in parts if part.item == rig.gpu])


def rig_decay(rig: Rig, terms: Terms) -> Decay:
    """The decay of a whole rig: that of its cards, which are most of its value."""
    if rig.gpu not in terms.decays:
        terms.decays[rig.gpu] = decay_of(rig.gpu, terms)
    return terms.decays[rig.gpu]


def decay_of(item: str, terms: Terms) -> Decay:
    """The card's own decay, fitted to its used prices of the last three years, or the assumed one.

    Least squares of ln(price) over time, slope kept at or above 0: a card that grew dearer is taken to hold.
    """
    as_of = terms.market.as_of
    series = [(at, price) for at, price in terms.market.history_of_used(item) if as_of - at <= _RESALE_WINDOW]
    if len(series) < _FEWEST_USED_PRICES or series[-1][0] - series[0][0] < _SHORTEST_SERIES:
        figure = terms.assume.figure("resale_decay_per_year")
        return Decay(figure.value, figure.low, figure.high, figure.source)
    years = [Decimal(str((at - series[0][0]) / timedelta(days=365))) for at, _ in series]
    logs = [price.ln() for _, price in series]
    mean_year, mean_log = sum(years) / len(years), sum(logs) / len(logs)
    spread = sum((y - mean_year) ** 2 for y in years)
    slope = sum((y - mean_year) * (value - mean_log) for y, value in zip(years, logs, strict=True)) / spread
    fitted = money.quantity(max(Decimal(0), -slope), Decimal("0.001"))
    # A fit to a few monthly means says little about the next years: it keeps the assumed width around it.
    width = terms.assume.figure("resale_decay_per_year")
    return Decay(
        fitted,
        max(Decimal(0), fitted + width.low - width.value),
        fitted + width.high - width.value,
        f"fitted to {len(series)} used prices of {item}, {series[0][0]:%Y-%m} to {series[-1][0]:%Y-%m}",
    )


def value_at_hand(rig: Rig, parts: Sequence[PartPrice], decay: Decay, terms: Terms) -> tuple[Decimal, str]:
    """What one rig at hand would fetch today, less selling cost, and how that came about. [currency]

    Used prices of its cards where stored, aged by `decay` since they were seen; all else loses by `decay` over
    the assumed age.
    """
    aged = tco.resale_value(Decimal(1), decay.per_year, terms.assume["own_age_years"])
    kept = 1 - terms.assume["selling_cost_share"]
    total = Decimal(0)
    told = []
    for part in parts:
        used = terms.market.retail(part.item, used=True)
        if used is None:
            one = part.quote.unit_price * aged
        else:
            since = Decimal(used.used.age_days) / _DAYS_PER_YEAR
            one = tco.resale_value(used.unit_price, decay.per_year, since)
        total += part.quantity * one
        if used is not None:
            told.append(f"{part.item} used {money.text(used.unit_price)} ({used.offer.observed_at:%Y-%m})")
    told.append("other parts" if told else "all parts")
    said = f"{', '.join(told)} at {aged:.3f} of new; less {1 - kept:.0%} selling cost"
    return total * kept, said


def residual_value(purchase: Decimal, decay_per_year: Decimal, years: Decimal, terms: Terms) -> Decimal:
    """What a rig bought new fetches after `years`, less selling cost. [currency]"""
    return tco.resale_value(purchase, decay_per_year, years) * (1 - terms.assume["selling_cost_share"])


def resale_risk(decay: Decay, amount_at: Callable[[Decimal], Decimal], *, with_hours: bool = True) -> Risk:
    """How a line moves when the resale value falls slower or faster. amount_at: the line at a decay."""
    central = amount_at(decay.per_year)
    if central == 0:
        return Risk(with_hours)
    low, high = float(amount_at(decay.low) / central), float(amount_at(decay.high) / central)
    return Risk(with_hours, "resale", low, high)


def upkeep_per_year(rig: Rig, parts: Sequence[PartPrice], terms: Terms) -> Decimal:
    """Maintenance and spare cards of one rig: m P + f P_gpu. [currency/y]"""
    return terms.assume["maintenance_share_per_year"] * purchase_price(parts) + terms.assume[
        "spare_gpu_share_per_year"
    ] * gpu_price(rig, parts)


def add_power(bill: Bill, rig: Rig, count: int, hours: Decimal, terms: Terms) -> None:
    """The electricity of the run: hours × load × PUE × rigs. Without a tariff nothing is added."""
    if terms.tariff is None:
        return
    load_kw = Decimal(str(rig.load_watts)) / _WATTS_PER_KW
    energy = money.quantity(hours * load_kw * terms.pue * count)
    _add_energy(
        bill, "power", energy, f"{hours:f} h × {load_kw:f} kW × PUE {terms.pue:f}{_times(count)}", terms
    )


def add_idle_power(bill: Bill, rig: Rig, count: int, hours: Decimal, terms: Terms) -> None:
    """The share of idle electricity an hour of work carries: (1 - u)/u × idle × PUE."""
    if terms.tariff is None or terms.utilization == 1:
        return
    idle_kw = Decimal(str(rig.idle_watts)) / _WATTS_PER_KW
    idle_hours = (1 - terms.utilization) / terms.utilization
    energy = money.quantity(hours * idle_hours * idle_kw * terms.pue * count)
    formula = (
        f"{hours:f} h × (1 - {terms.utilization:f})/{terms.utilization:f} idle hours each × {idle_kw:f} kW "
        f"× PUE {terms.pue:f}{_times(count)}"
    )
    _add_energy(bill, "idle power", energy, formula, terms)


def add_upkeep(
    bill: Bill, rig: Rig, parts: Sequence[PartPrice], count: int, hours: Decimal, terms: Terms
) -> None:
    """Maintenance and spares for the hours of the run, spread over the hours the rig works."""
    per_year = upkeep_per_year(rig, parts, terms)
    per_hour = money.price(per_year / (HOURS_PER_YEAR * terms.utilization))
    if per_hour == 0:
        return
    bill.add(
        "upkeep",
        money.product(hours, Decimal(count)),
        "rig-hour",
        per_hour,
        f"(maintenance {terms.assume['maintenance_share_per_year']:f} × rig + spares "
        f"{terms.assume['spare_gpu_share_per_year']:f} × cards) = {per_year:.2f} a year / "
        f"({HOURS_PER_YEAR} h × {terms.utilization:f} utilization)",
        "assumptions",
        risk=BY_HOURS,
        basis="assumed",
    )


def _add_energy(bill: Bill, item: str, energy: Decimal, formula: str, terms: Terms) -> None:
    tariff = terms.tariff
    if tariff is None or energy == 0:
        return
    spread = float(terms.assume["electricity_spread"])
    bill.add(
        item,
        energy,
        "kWh",
        tariff.price,
        formula,
        tariff.source,
        risk=Risk(with_hours=True, factor="electricity", low=1 / spread, high=spread),
        basis=tariff.basis,
        observed_at=tariff.observed_at,
        used=tariff.used,
    )


def _times(count: int) -> str:
    return f" × {count} rigs" if count > 1 else ""
