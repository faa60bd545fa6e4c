"""A rig's money: what its parts cost, what it fetches used, what an hour of it draws and wears."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from . import money, tco
from .assumptions import HOURS_PER_YEAR, MONTHS_PER_YEAR
from .errors import PlannerError
from .market import Quote
from .options import Variant
from .terms import BY_HOURS, CERTAIN, Bill, Risk, Terms

if TYPE_CHECKING:
    from .models.hardware.catalogue import Rig
    from .own_rigs import OwnRate

# Used prices older than this say little about what a card loses from now on: RTX 3090 prices fell by 70 % in
# 2022, when mining ended, and by a few per cent in 2024.
_RESALE_WINDOW = timedelta(days=3 * 365)
_FEWEST_USED_PRICES = 3
_SHORTEST_SERIES = timedelta(days=180)
_WATTS_PER_KW = Decimal(1000)
_DAYS_PER_YEAR = 365
_YEAR = timedelta(days=_DAYS_PER_YEAR)


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


@dataclass(frozen=True, slots=True)
class RigHour:
    """One rig for one hour of work, power and upkeep apart. [currency/h]"""

    price: Decimal
    formula: str
    source: str
    risk: Risk


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
    slope = _slope([((at - series[0][0]) / _YEAR, float(price.ln())) for at, price in series])
    fitted = money.quantity(max(0.0, -slope), Decimal("0.001"))
    # A fit to a few monthly means says little about the next years: it keeps the assumed width around it.
    width = terms.assume.figure("resale_decay_per_year")
    return Decay(
        fitted,
        max(Decimal(0), fitted + width.low - width.value),
        fitted + width.high - width.value,
        f"fitted to {len(series)} used prices of {item}, {series[0][0]:%Y-%m} to {series[-1][0]:%Y-%m}",
    )


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """Least squares slope of y over x."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)


def value_at_hand(rig: Rig, parts: Sequence[PartPrice], decay: Decay, terms: Terms) -> tuple[Decimal, str]:
    """What one rig at hand would fetch today, less selling cost, and how that came about. [currency]

    Used prices of its cards where stored, aged by `decay` since they were seen; all else loses by `decay`
    over the assumed age.
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
        bill,
        "power",
        energy,
        f"{money.short(hours)} h × {load_kw:f} kW × PUE {terms.pue:f}{_times(count)}",
        terms,
    )


def add_idle_power(bill: Bill, rig: Rig, count: int, hours: Decimal, terms: Terms) -> None:
    """The share of idle electricity an hour of work carries: (1 - u)/u × idle × PUE."""
    if terms.tariff is None or terms.utilization == 1:
        return
    idle_kw = Decimal(str(rig.idle_watts)) / _WATTS_PER_KW
    idle_hours = (1 - terms.utilization) / terms.utilization
    energy = money.quantity(hours * idle_hours * idle_kw * terms.pue * count)
    formula = (
        f"{money.short(hours)} h × (1 - {terms.utilization:f})/{terms.utilization:f} idle hours each × "
        f"{idle_kw:f} kW × PUE {terms.pue:f}{_times(count)}"
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


def own_rate_bill(variant: Variant, hours: Decimal, rate: OwnRate, terms: Terms) -> Bill:
    """The owner's own all-in rate times the hours; nothing is added to it."""
    bill = Bill(terms.currency)
    bill.add(
        "own rate",
        money.product(hours, Decimal(variant.count)),
        "rig-hour",
        rate.per_hour,
        f"{money.short(hours)} h × {variant.count} at {rate.said}; all-in, nothing added",
        rate.source,
        risk=BY_HOURS,
        basis="quoted",
    )
    return bill


def at_hand_bill(variant: Variant, hours: Decimal, terms: Terms) -> Bill:
    """Power, the resale the owner forgoes meanwhile, and upkeep."""
    rig, parts = _rig_and_parts(variant, terms)
    decay = rig_decay(rig, terms)
    value, said = value_at_hand(rig, parts, decay, terms)
    discount = terms.assume["discount_rate_per_year"]
    forgone = tco.resale_forgone(value, decay.per_year, discount, hours)
    bill = Bill(terms.currency)
    add_power(bill, rig, variant.count, hours, terms)
    bill.add(
        "resale forgone",
        money.product(hours, Decimal(variant.count)),
        "rig-hour",
        money.price(money.divided(forgone, hours)),
        f"worth {value:.2f} now ({said}), loses {decay.per_year:f} a year and {discount:f} interest",
        decay.source,
        risk=resale_risk(decay, lambda k: tco.resale_forgone(value, k, discount, hours)),
        basis="modelled",
    )
    for part in parts:
        bill.note(part.quote.used)
    add_upkeep(bill, rig, parts, variant.count, hours, terms)
    return bill


def purchase_bill(variant: Variant, hours: Decimal, terms: Terms) -> tuple[Bill, Decimal]:
    """Every part now, the sale at the horizon if one was given, the power of the run; and the cash now."""
    rig, parts = _rig_and_parts(variant, terms)
    count = variant.count
    bill = Bill(terms.currency)
    for part in parts:
        each = f"{part.quantity} in a rig" + _times(count)
        quantity = Decimal(part.quantity * count)
        bill.quoted(f"purchase {part.item}", quantity, "each", part.quote, each, CERTAIN)
    paid = bill.total
    if terms.horizon_months is not None:
        _add_sale(bill, rig, parts, count, terms, terms.horizon_months)
    add_power(bill, rig, count, hours, terms)
    return bill, paid


def _add_sale(
    bill: Bill, rig: Rig, parts: Sequence[PartPrice], count: int, terms: Terms, months: int
) -> None:
    """The cash of the sale, as it will be paid; what it is worth today is a matter of present value."""
    decay = rig_decay(rig, terms)
    years = Decimal(months) / MONTHS_PER_YEAR
    sold_for = residual_value(purchase_price(parts), decay.per_year, years, terms)
    bill.add(
        "resale",
        Decimal(count),
        "rig",
        -money.price(sold_for),
        f"sold after {months} months for {sold_for:.2f}: new price × e^(-{decay.per_year:f} × "
        f"{years:.3f}) less selling cost",
        decay.source,
        risk=resale_risk(decay, lambda k: tco.resale_value(Decimal(1), k, years), with_hours=False),
        basis="modelled",
    )


def amortised_bill(variant: Variant, hours: Decimal, terms: Terms) -> Bill:
    """A share of the purchase, upkeep, power at work and while idle."""
    rig, parts = _rig_and_parts(variant, terms)
    hour = _rig_hour(rig, parts, terms)
    bill = Bill(terms.currency)
    bill.add(
        "purchase share",
        money.product(hours, Decimal(variant.count)),
        "rig-hour",
        hour.price,
        hour.formula,
        hour.source,
        risk=hour.risk,
        basis="modelled",
    )
    for part in parts:
        bill.note(part.quote.used)
    add_upkeep(bill, rig, parts, variant.count, hours, terms)
    add_power(bill, rig, variant.count, hours, terms)
    add_idle_power(bill, rig, variant.count, hours, terms)
    return bill


def _rig_hour(rig: Rig, parts: Sequence[PartPrice], terms: Terms) -> RigHour:
    """The annuity of one rig per hour it works; the same for every run."""
    found = terms.rig_hours.get(rig.id)
    if found is None:
        found = terms.rig_hours[rig.id] = _work_out_rig_hour(rig, parts, terms)
    return found


def _work_out_rig_hour(rig: Rig, parts: Sequence[PartPrice], terms: Terms) -> RigHour:
    decay = rig_decay(rig, terms)
    paid, life = purchase_price(parts), Decimal(str(rig.life_years))
    discount = terms.assume["discount_rate_per_year"]
    staff = terms.assume["staff_cost_per_rig_year"]

    def yearly_at(decay_per_year: Decimal) -> Decimal:
        left = residual_value(paid, decay_per_year, life, terms)
        return tco.equivalent_annual_cost(paid, left, discount, life, staff)

    yearly = yearly_at(decay.per_year)
    residual = residual_value(paid, decay.per_year, life, terms)
    staffed = f" + staff {staff:f}" if staff else ""
    return RigHour(
        price=money.price(yearly / (HOURS_PER_YEAR * terms.utilization)),
        formula=f"(price {money.text(paid)} - resale {residual:.2f} after {life:f} years, discounted at "
        f"{discount:f}) as an annuity{staffed} = {yearly:.2f} a year / ({HOURS_PER_YEAR} h × "
        f"{terms.utilization:f} utilization)",
        source=f"parts priced one by one; resale: {decay.source}",
        risk=resale_risk(decay, yearly_at),
    )


def _rig_and_parts(variant: Variant, terms: Terms) -> tuple[Rig, Sequence[PartPrice]]:
    rig = variant.machine.rig
    parts = None if rig is None else parts_of(rig, terms)
    if rig is None or parts is None:
        raise PlannerError(f"{variant.machine.id}: priced as a rig without priced parts")
    return rig, parts
