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
from typing import ClassVar, Protocol

from . import money
from .assumptions import HOURS_PER_YEAR, MONTHS_PER_YEAR
from .errors import PlannerError
from .market import Sale
from .options import Machine
from .ownership import amortised_bill, at_hand_bill, own_rate_bill, parts_of, purchase_bill
from .renting import quote_of, rental_bill, rental_cost, spot_price_risk
from .running_time import Run, Timed
from .terms import BY_HOURS, CERTAIN, Bill, Priced, Terms

# List prices of GPU instances fell by 25 to 44 % within 2025: a commitment's rate from before says little.
_OLD_RATE_DAYS = 365


class PurchaseModel(Protocol):
    """One way to pay. id names it in options, title in tables."""

    id: ClassVar[str]
    title: ClassVar[str]

    def sales(self, machine: Machine, count: int, terms: Terms) -> Sequence[Sale]:
        """What could be paid for to get this hardware; empty where nothing can."""
        ...

    def timed(self, run: Run) -> Timed | None:
        """The hours of the run under this way of paying; None where it would never end."""
        ...

    def cost(self, run: Run, timed: Timed, sale: Sale, terms: Terms) -> Decimal | None:
        """The sum of `price`, quickly: for rows that are only compared. None where it cannot be paid so."""
        ...

    def price(self, run: Run, timed: Timed, sale: Sale, terms: Terms) -> Priced:
        """Cost lines and time lines of the whole run."""
        ...


PURCHASE_MODELS: dict[str, PurchaseModel] = {}


def purchase_model(model: type[PurchaseModel]) -> type[PurchaseModel]:
    """Register a class under its id. Raises PlannerError for an id that is taken."""
    if model.id in PURCHASE_MODELS:
        raise PlannerError(f'two purchase models are called "{model.id}"')
    PURCHASE_MODELS[model.id] = model()
    return model


class _Rented:
    """What rentals share: they buy stored cloud offers by contract, and nobody takes them away."""

    id: ClassVar[str]
    title: ClassVar[str]
    contracts: ClassVar[frozenset[str]]

    def sales(self, machine: Machine, count: int, terms: Terms) -> Sequence[Sale]:
        if machine.provider == "own":
            return ()
        return terms.market.cloud(machine.id, self.contracts, terms.regions)

    def timed(self, run: Run) -> Timed | None:
        return run.steady

    def cost(self, run: Run, timed: Timed, sale: Sale, terms: Terms) -> Decimal | None:
        return rental_cost(run, timed, sale)

    def price(self, run: Run, timed: Timed, sale: Sale, terms: Terms) -> Priced:
        bill, per_gpu_hour = rental_bill(run, timed, sale, terms, BY_HOURS)
        return _priced(self.id, sale, timed, bill, per_gpu_hour=per_gpu_hour)


@purchase_model
class OnDemand(_Rented):
    """An instance-hour at list price."""

    id = "on_demand"
    title = "on demand"
    contracts = frozenset({"on_demand"})


@purchase_model
class Community(_Rented):
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

    def timed(self, run: Run) -> Timed | None:
        return run.interrupted

    def price(self, run: Run, timed: Timed, sale: Sale, terms: Terms) -> Priced:
        risk = spot_price_risk(quote_of(sale), terms)
        bill, per_gpu_hour = rental_bill(run, timed, sale, terms, risk)
        return _priced(self.id, sale, timed, bill, per_gpu_hour=per_gpu_hour)


@purchase_model
class Reserved(_Rented):
    """A commitment of one or three years: the whole term is the project's cost, used or not."""

    id = "reserved"
    title = "reserved"
    contracts = frozenset({"reserved_1y", "reserved_3y", "savings_plan_1y", "savings_plan_3y"})

    def sales(self, machine: Machine, count: int, terms: Terms) -> Sequence[Sale]:
        if machine.provider == "own":
            return ()
        return terms.market.commitments(machine.id, self.contracts, terms.regions)

    def cost(self, run: Run, timed: Timed, sale: Sale, terms: Terms) -> Decimal | None:
        """None where the run outlasts the term."""
        if timed.paid > self._term_hours(sale):
            quote = quote_of(sale)
            reason = f"the run is longer than the term of {quote.term_months} months"
            terms.market.refuse(quote.offer.where, "limit", reason)
            return None
        return self.price(run, timed, sale, terms).cost

    def price(self, run: Run, timed: Timed, sale: Sale, terms: Terms) -> Priced:
        quote, count = quote_of(sale), Decimal(run.variant.count)
        offer, term = quote.offer, self._term_hours(sale)
        bill = Bill(terms.currency)
        if quote.upfront:
            what = f"{quote.term_months} months, {offer.payment or 'upfront'} × {run.variant.count}"
            bill.quoted("upfront fee", count, "commitment", quote, what, CERTAIN, unit_price=quote.upfront)
        if offer.amount is not None:
            what = f"the whole term, {money.short(term)} h × {run.variant.count}, whatever is used of it"
            bill.quoted("committed hours", money.product(term, count), "instance-hour", quote, what, CERTAIN)
        effective = money.divided(bill.total, term * count * run.variant.machine.gpu_count)
        upfront = money.product(count, quote.upfront)
        return _priced(self.id, sale, timed, bill, cash_upfront=upfront, per_gpu_hour=money.price(effective))

    def _term_hours(self, sale: Sale) -> Decimal:
        months = quote_of(sale).term_months
        return money.quantity(HOURS_PER_YEAR * months / MONTHS_PER_YEAR)


class _Owned:
    """What the prices of a rig share. Rigs are few: the quick cost is the sum of the lines."""

    id: ClassVar[str]
    title: ClassVar[str]

    def sales(self, machine: Machine, count: int, terms: Terms) -> Sequence[Sale]:
        if machine.rig is None or parts_of(machine.rig, terms) is None:
            return ()
        return (Sale(""),)

    def timed(self, run: Run) -> Timed | None:
        return run.steady

    def cost(self, run: Run, timed: Timed, sale: Sale, terms: Terms) -> Decimal | None:
        return self.price(run, timed, sale, terms).cost

    def price(self, run: Run, timed: Timed, sale: Sale, terms: Terms) -> Priced:
        raise NotImplementedError


@purchase_model
class Own(_Owned):
    """A rig at hand: power, upkeep and the resale its owner forgoes meanwhile; or the owner's own rate."""

    id = "own"
    title = "owned"

    def sales(self, machine: Machine, count: int, terms: Terms) -> Sequence[Sale]:
        if count > terms.at_hand.get(machine.id, 0):
            return ()
        return (Sale(""),) if machine.id in terms.own_rates else super().sales(machine, count, terms)

    def price(self, run: Run, timed: Timed, sale: Sale, terms: Terms) -> Priced:
        rate = terms.own_rates.get(run.variant.machine.id)
        if rate is not None:
            bill = own_rate_bill(run.variant, timed.paid, rate, terms)
            per_gpu = money.divided(rate.per_hour, Decimal(run.variant.machine.gpu_count))
            return _priced(self.id, sale, timed, bill, per_gpu_hour=money.price(per_gpu))
        bill = at_hand_bill(run.variant, timed.paid, terms)
        return _priced(self.id, sale, timed, bill, notes=_power_note(terms))


@purchase_model
class Buy(_Owned):
    """The whole purchase now. Time to deliver and build is not counted."""

    id = "buy"
    title = "buy"

    def price(self, run: Run, timed: Timed, sale: Sale, terms: Terms) -> Priced:
        bill, paid = purchase_bill(run.variant, timed.paid, terms)
        notes = (*_power_note(terms), "delivery and building time are not counted")
        return _priced(self.id, sale, timed, bill, cash_upfront=paid, notes=notes)


@purchase_model
class Amortised(_Owned):
    """A rig-hour: the purchase less resale as an annuity over its life, spread over the hours it works."""

    id = "amortised"
    title = "amortised"

    def price(self, run: Run, timed: Timed, sale: Sale, terms: Terms) -> Priced:
        bill = amortised_bill(run.variant, timed.paid, terms)
        per_gpu = money.divided(bill.total, timed.paid * run.variant.gpu_count)
        return _priced(
            self.id, sale, timed, bill, per_gpu_hour=money.price(per_gpu), notes=_power_note(terms)
        )


def _priced(
    model: str,
    sale: Sale,
    timed: Timed,
    bill: Bill,
    *,
    cash_upfront: Decimal = money.ZERO,
    per_gpu_hour: Decimal | None = None,
    notes: tuple[str, ...] = (),
) -> Priced:
    return Priced(
        purchase_model=model,
        region=sale.region,
        lines=tuple(bill.lines),
        risks=tuple(bill.risks),
        time_lines=timed.lines(),
        prices=tuple(bill.prices),
        cash_upfront=cash_upfront,
        price_per_gpu_hour=per_gpu_hour,
        interruptions=timed.interruptions,
        notes=notes,
    )


def _power_note(terms: Terms) -> tuple[str, ...]:
    if terms.tariff is not None:
        return ()
    return ("electricity is left out: no tariff is known; give --electricity-price",)
