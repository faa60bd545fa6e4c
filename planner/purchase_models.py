"""Ways to pay for the same hours: one class each, registered by name.

    on_demand   an instance-hour at list price, as the provider bills it
    community   the same from hosts of a marketplace's community tier
    spot        the same at a lower price, that may be taken away: expected hours by spot.expected_run
    reserved    a commitment: the whole term is paid, whatever of it is used
    own         a rig at hand: power, upkeep, resale forgone; or the user's own rate
    buy         the whole purchase now, power on top; the resale is netted with a horizon only
    amortised   a rig-hour at a stated utilization over the rig's life, to compare with an hour of cloud

The last three are prices of the same rig for different questions and are never mixed: each row says which.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

from . import money, tco
from .answer import TimeLine
from .assumptions import HOURS_PER_YEAR
from .errors import PlannerError
from .market import Quote
from .options import Machine, Variant
from .ownership import (
    PartPrice,
    add_idle_power,
    add_power,
    add_upkeep,
    parts_of,
    purchase_price,
    resale_risk,
    residual_value,
    rig_decay,
    value_at_hand,
)
from .running_time import interrupted_hours, uninterrupted_hours
from .terms import BY_HOURS, CERTAIN, Bill, Interruptions, Priced, Risk, Run, Sale, Terms

if TYPE_CHECKING:
    from .models.hardware.catalogue import Rig

_MONTHS_PER_YEAR = 12
# Seconds are a repeating decimal of an hour: this step of 4 ns keeps 1,200 s × 21.96 at 7.32 to ten digits.
_BILLED_STEP = Decimal("0.000000000001")


class PurchaseModel(Protocol):
    """One way to pay. contracts: of the offers it buys, none for rigs."""

    id: str
    title: str
    contracts: frozenset[str]

    def sales(self, machine: Machine, count: int, terms: Terms) -> Sequence[Sale]:
        """What could be paid for to get this hardware; empty where nothing can."""
        ...

    def price(self, variant: Variant, run: Run, sale: Sale, terms: Terms) -> Priced | None:
        """Cost and time of the whole run; None, with the reason kept by the market, where there is none."""
        ...


PURCHASE_MODELS: dict[str, PurchaseModel] = {}


def purchase_model(model: type[PurchaseModel]) -> type[PurchaseModel]:
    """Register a class under its id. Raises PlannerError for an id that is taken."""
    if model.id in PURCHASE_MODELS:
        raise PlannerError(f'two purchase models are called "{model.id}"')
    PURCHASE_MODELS[model.id] = model()
    return model


class _Rented:
    """What all rentals share: they buy stored cloud offers by contract."""

    contracts: frozenset[str]

    def sales(self, machine: Machine, count: int, terms: Terms) -> Sequence[Sale]:
        if machine.provider == "own":
            return ()
        quotes = terms.market.cloud(machine.id, self.contracts, terms.regions)
        return [Sale(quote.offer.region, quote) for quote in quotes]


@purchase_model
class OnDemand(_Rented):
    """An instance-hour at list price."""

    id = "on_demand"
    title = "on demand"
    contracts = frozenset({"on_demand"})

    def price(self, variant: Variant, run: Run, sale: Sale, terms: Terms) -> Priced | None:
        lines = uninterrupted_hours(variant, run, terms)
        paid = money.total(line.hours for line in lines)
        return _rented(self.id, variant, sale, terms, lines, paid, BY_HOURS)


@purchase_model
class Community(OnDemand):
    """An hour on a host of a marketplace's community tier: not taken away, less sure than a data centre."""

    id = "community"
    title = "community"
    contracts = frozenset({"community"})


@purchase_model
class Spot(_Rented):
    """An hour that may be taken away: expected paid hours and waiting, losses one process per pool."""

    id = "spot"
    title = "spot"
    contracts = frozenset({"spot"})

    def price(self, variant: Variant, run: Run, sale: Sale, terms: Terms) -> Priced | None:
        lines, paid, interruptions = interrupted_hours(variant, run, terms)
        if interruptions is None:
            name = f"{variant.machine.provider}/{variant.machine.id} spot"
            terms.market.refuse(
                name, "interruptions", "would be interrupted too often to end: too much work between losses"
            )
            return None
        risk = _spot_price_risk(_quote(self.id, sale), terms)
        return _rented(self.id, variant, sale, terms, lines, paid, risk, interruptions)


@purchase_model
class Reserved(_Rented):
    """A commitment of one or three years: the whole term is the project's cost, used or not."""

    id = "reserved"
    title = "reserved"
    contracts = frozenset({"reserved_1y", "reserved_3y", "savings_plan_1y", "savings_plan_3y"})

    def sales(self, machine: Machine, count: int, terms: Terms) -> Sequence[Sale]:
        if machine.provider == "own":
            return ()
        quotes = terms.market.commitments(machine.id, self.contracts, terms.regions)
        return [Sale(quote.offer.region, quote) for quote in quotes]

    def price(self, variant: Variant, run: Run, sale: Sale, terms: Terms) -> Priced | None:
        quote = _quote(self.id, sale)
        offer, months = quote.offer, quote.offer.term_months
        lines = uninterrupted_hours(variant, run, terms)
        needed = money.total(line.hours for line in lines)
        if not months:
            terms.market.refuse(offer.where, "no_price", "a commitment without a term cannot be priced")
            return None
        term = HOURS_PER_YEAR * months / _MONTHS_PER_YEAR
        if needed > term:
            terms.market.refuse(offer.where, "limit", f"the run takes {needed:f} h, the term has {term:f}")
            return None
        count = Decimal(variant.count)
        bill = Bill(terms.currency)
        if quote.upfront:
            what = f"{months} months, {offer.payment or 'upfront'} payment × {variant.count}"
            bill.quoted("upfront fee", count, "commitment", quote, what, CERTAIN, unit_price=quote.upfront)
        if offer.amount is not None:
            hours = money.product(term, count)
            what = f"the whole term, {term:f} h × {variant.count}, whatever is used of it"
            bill.quoted("committed hours", hours, "instance-hour", quote, what, CERTAIN)
        effective = money.divided(bill.total, term * count * variant.machine.gpu_count)
        return _priced(
            self.id,
            sale,
            bill,
            lines,
            cash_upfront=money.product(count, quote.upfront),
            per_gpu_hour=money.price(effective),
        )


class _Owned:
    """What the three prices of a rig share."""

    contracts: frozenset[str] = frozenset()

    def sales(self, machine: Machine, count: int, terms: Terms) -> Sequence[Sale]:
        if machine.rig is None or parts_of(machine.rig, terms) is None:
            return ()
        return (Sale(""),)


@purchase_model
class Own(_Owned):
    """A rig at hand: power, upkeep and the resale its owner forgoes meanwhile; or the owner's own rate."""

    id = "own"
    title = "owned"

    def sales(self, machine: Machine, count: int, terms: Terms) -> Sequence[Sale]:
        if count > terms.at_hand.get(machine.id, 0):
            return ()
        return (Sale(""),) if machine.id in terms.own_rates else super().sales(machine, count, terms)

    def price(self, variant: Variant, run: Run, sale: Sale, terms: Terms) -> Priced | None:
        lines = uninterrupted_hours(variant, run, terms)
        hours = money.total(line.hours for line in lines)
        count = Decimal(variant.count)
        bill = Bill(terms.currency)
        rate = terms.own_rates.get(variant.machine.id)
        if rate is not None:
            bill.add(
                "own rate",
                money.product(hours, count),
                "rig-hour",
                rate.per_hour,
                f"{hours:f} h × {variant.count} at {rate.said}; all-in, nothing added",
                rate.source,
                risk=BY_HOURS,
                basis="quoted",
            )
            return _priced(self.id, sale, bill, lines, per_gpu_hour=rate.per_hour / variant.machine.gpu_count)
        rig, parts = _rig_parts(variant, terms)
        decay = rig_decay(rig, terms)
        value, said = value_at_hand(rig, parts, decay, terms)
        discount = terms.assume["discount_rate_per_year"]
        forgone = tco.resale_forgone(value, decay.per_year, discount, hours)
        add_power(bill, rig, variant.count, hours, terms)
        bill.add(
            "resale forgone",
            money.product(hours, count),
            "rig-hour",
            money.price(money.divided(forgone, hours)),
            f"worth {value:.2f} now ({said}), loses {decay.per_year:f} a year and {discount:f} interest",
            decay.source,
            risk=resale_risk(decay, lambda k: tco.resale_forgone(value, k, discount, hours)),
            basis="modelled",
        )
        add_upkeep(bill, rig, parts, variant.count, hours, terms)
        return _priced(self.id, sale, bill, lines, notes=_power_note(terms))


@purchase_model
class Buy(_Owned):
    """The whole purchase now. Time to deliver and build is not counted."""

    id = "buy"
    title = "buy"

    def price(self, variant: Variant, run: Run, sale: Sale, terms: Terms) -> Priced | None:
        lines = uninterrupted_hours(variant, run, terms)
        hours = money.total(line.hours for line in lines)
        rig, parts = _rig_parts(variant, terms)
        count = variant.count
        bill = Bill(terms.currency)
        for part in parts:
            each = f"{part.quantity} in a rig" + (f" × {count} rigs" if count > 1 else "")
            quantity = Decimal(part.quantity * count)
            bill.quoted(f"purchase {part.item}", quantity, "each", part.quote, each, CERTAIN)
        paid = bill.total
        if terms.horizon_months is not None:
            self._sell(bill, variant, parts, terms, terms.horizon_months)
        add_power(bill, rig, count, hours, terms)
        notes = (*_power_note(terms), "delivery and building time are not counted")
        return _priced(self.id, sale, bill, lines, cash_upfront=paid, notes=notes)

    def _sell(
        self, bill: Bill, variant: Variant, parts: Sequence[PartPrice], terms: Terms, months: int
    ) -> None:
        rig, _ = _rig_parts(variant, terms)
        decay = rig_decay(rig, terms)
        years = Decimal(months) / _MONTHS_PER_YEAR
        discount = terms.assume["discount_rate_per_year"]
        sold_for = residual_value(purchase_price(parts), decay.per_year, years, terms)
        bill.add(
            "resale",
            Decimal(variant.count),
            "rig",
            -money.price(sold_for / (1 + discount) ** years),
            f"sold after {months} months for {sold_for:.2f}: new price × e^(-{decay.per_year:f} × "
            f"{years:.3f}) less selling cost, discounted at {discount:f} a year",
            decay.source,
            risk=resale_risk(decay, lambda k: tco.resale_value(Decimal(1), k, years), with_hours=False),
            basis="modelled",
        )


@purchase_model
class Amortised(_Owned):
    """A rig-hour: the purchase less resale as an annuity over its life, spread over the hours it works."""

    id = "amortised"
    title = "amortised"

    def price(self, variant: Variant, run: Run, sale: Sale, terms: Terms) -> Priced | None:
        lines = uninterrupted_hours(variant, run, terms)
        hours = money.total(line.hours for line in lines)
        rig, parts = _rig_parts(variant, terms)
        decay = rig_decay(rig, terms)
        paid, life = purchase_price(parts), Decimal(str(rig.life_years))
        discount = terms.assume["discount_rate_per_year"]
        staff = terms.assume["staff_cost_per_rig_year"]
        residual = residual_value(paid, decay.per_year, life, terms)

        def yearly_at(per_year: Decimal) -> Decimal:
            left = residual_value(paid, per_year, life, terms)
            return tco.equivalent_annual_cost(paid, left, discount, life, staff)

        yearly = yearly_at(decay.per_year)
        rig_hour = money.price(yearly / (HOURS_PER_YEAR * terms.utilization))
        bill = Bill(terms.currency)
        bill.add(
            "purchase share",
            money.product(hours, Decimal(variant.count)),
            "rig-hour",
            rig_hour,
            f"(price {money.text(paid)} - resale {residual:.2f} after {life:f} years, discounted at "
            f"{discount:f}) as an annuity{f' + staff {staff:f}' if staff else ''} = {yearly:.2f} a year / "
            f"({HOURS_PER_YEAR} h × {terms.utilization:f} utilization)",
            f"parts priced one by one; resale: {decay.source}",
            risk=resale_risk(decay, yearly_at),
            basis="modelled",
        )
        for part in parts:
            bill.note(part.quote.used)
        add_upkeep(bill, rig, parts, variant.count, hours, terms)
        add_power(bill, rig, variant.count, hours, terms)
        add_idle_power(bill, rig, variant.count, hours, terms)
        per_gpu = money.price(money.divided(bill.total, hours * variant.gpu_count))
        return _priced(self.id, sale, bill, lines, per_gpu_hour=per_gpu, notes=_power_note(terms))


def _spot_price_risk(quote: Quote, terms: Terms) -> Risk:
    """The window's own low and high where the offer states them, else the assumed spread."""
    offer, spread = quote.offer, float(terms.assume["spot_price_spread"])
    low, high = 1 / spread, spread
    if offer.amount and offer.amount_low and offer.amount_high and offer.amount_low < offer.amount_high:
        low, high = float(offer.amount_low / offer.amount), float(offer.amount_high / offer.amount)
    return Risk(with_hours=True, factor="spot price", low=low, high=high)


def _rented(
    model: str,
    variant: Variant,
    sale: Sale,
    terms: Terms,
    time_lines: tuple[TimeLine, ...],
    paid: Decimal,
    risk: Risk,
    interruptions: Interruptions | None = None,
) -> Priced:
    """Renting `count` instances for `paid` hours each, as the provider bills them."""
    from .pricing.billing import billed_hours

    quote = _quote(model, sale)
    machine, count = variant.machine, variant.count
    billed = money.quantity(billed_hours(machine.provider, paid), _BILLED_STEP)
    by_gpu = quote.offer.unit == "gpu_hour"
    units = count * machine.gpu_count if by_gpu else count
    said = f"{paid:f} h" if billed == paid else f"{paid:f} h, billed as {billed:f}"
    what, unit = ("GPUs", "GPU-hour") if by_gpu else ("instances", "instance-hour")
    bill = Bill(terms.currency)
    quantity = money.product(billed, Decimal(units))
    bill.quoted("compute", quantity, unit, quote, f"{said} × {units} {what}", risk)
    per_gpu = quote.unit_price if by_gpu else money.divided(quote.unit_price, Decimal(machine.gpu_count))
    return _priced(
        model, sale, bill, time_lines, per_gpu_hour=money.price(per_gpu), interruptions=interruptions
    )


def _priced(
    model: str,
    sale: Sale,
    bill: Bill,
    time_lines: tuple[TimeLine, ...],
    *,
    cash_upfront: Decimal = money.ZERO,
    per_gpu_hour: Decimal | None = None,
    interruptions: Interruptions | None = None,
    notes: tuple[str, ...] = (),
) -> Priced:
    return Priced(
        purchase_model=model,
        region=sale.region,
        lines=tuple(bill.lines),
        risks=tuple(bill.risks),
        time_lines=time_lines,
        prices=tuple(bill.prices),
        cash_upfront=cash_upfront,
        price_per_gpu_hour=per_gpu_hour,
        interruptions=interruptions,
        notes=notes,
    )


def _quote(model: str, sale: Sale) -> Quote:
    if sale.quote is None:
        raise PlannerError(f"{model}: a rental without an offer")
    return sale.quote


def _rig_parts(variant: Variant, terms: Terms) -> tuple[Rig, Sequence[PartPrice]]:
    rig = variant.machine.rig
    parts = None if rig is None else parts_of(rig, terms)
    if rig is None or parts is None:
        raise PlannerError(f"{variant.machine.id}: priced as a rig without priced parts")
    return rig, parts


def _power_note(terms: Terms) -> tuple[str, ...]:
    if terms.tariff is not None:
        return ()
    return ("electricity is left out: no tariff is known; give --electricity-price",)
