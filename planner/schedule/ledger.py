"""Every payment of one plan, dated: runs by month, rigs bought and sold, promises, staff and hosting.

A run's line is cut where months begin, in proportion to its hours: quantities are rounded, the last piece
takes what is left, so that each amount is quantity × unit price exactly and the pieces add up to the line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from planner import money
from planner.answer import CostLine, PriceUsed
from planner.ownership import resale_risk
from planner.terms import CERTAIN, Risk

from .dates import Calendar
from .file import ScheduleFile
from .options import Choosable
from .plan import Category, Expenditure, Payment, Purchase
from .rigs import RigCost, Rigs
from .runs import Run

_CATEGORY: Mapping[str, Category] = {
    "power": "energy",
    "idle power": "energy",
    "upkeep": "maintenance",
    "own rate": "hosting",
}
# FOCUS: what a promise covers is paid by the promise.
_SPEND_STEP = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class Placed:
    """One run as chosen. start, end: hours from the schedule's start. [h]

    covered: share of its list price that a promised spend pays: 1 under a commitment, else 0.
    list_price: of a unit of its compute line on demand, in the same place; None where none is stored.
    """

    run: Run
    chosen: Choosable
    start: float
    end: float
    commitment: int | None
    list_price: Decimal | None


@dataclass(frozen=True, slots=True)
class Levels:
    """What is promised: by commitment, [currency/h]; new: what of it is not held already."""

    level: tuple[Decimal, ...]
    new: tuple[Decimal, ...]


def run_payments(placed: Placed, calendar: Calendar, carbon: Decimal | None) -> Iterator[Payment]:
    """What one run pays, by month. Under a commitment the promise pays, so nothing here."""
    if placed.commitment is not None:
        return
    for line in placed.chosen.priced.lines:
        yield from _by_month(placed, line, calendar, carbon)


def _by_month(
    placed: Placed, line: CostLine, calendar: Calendar, carbon: Decimal | None
) -> Iterator[Payment]:
    pieces = list(calendar.pieces(placed.start, placed.end))
    whole = Decimal(str(placed.end - placed.start))
    left = line.quantity
    for number, (start, end) in enumerate(pieces, 1):
        last = number == len(pieces)
        share = money.divided(Decimal(str(end - start)), whole) if whole else Decimal(1)
        quantity = left if last else money.quantity(line.quantity * share)
        left -= quantity
        yield _payment_of_run(placed, line, quantity, calendar.moment(start), calendar.moment(end), carbon)


def _payment_of_run(
    placed: Placed,
    line: CostLine,
    quantity: Decimal,
    start: datetime,
    end: datetime,
    carbon: Decimal | None,
) -> Payment:
    machine, job = placed.chosen.row.run.variant.machine, placed.run.job
    offer = placed.chosen.row.sale.quote.offer if placed.chosen.row.sale.quote else None
    energy = quantity if line.unit == "kWh" else None
    rented = line.item == "compute"
    list_price = placed.list_price if rented else None
    return Payment(
        due=due_at(start, end),
        service_start=start,
        service_end=end,
        category="compute" if rented else _CATEGORY.get(line.item, "other"),
        expenditure="operating",
        description=f"{placed.run.id}: {line.item}",
        job=placed.run.id,
        project=job.project,
        team=job.team,
        tags=job.tags,
        provider=machine.provider,
        region=placed.chosen.row.sale.region,
        hardware=machine.id,
        sku=(offer.sku or "") if offer else "",
        purchase_model=placed.chosen.row.model.id,
        quantity=quantity,
        unit=line.unit,
        unit_price=line.unit_price,
        amount=money.product(quantity, line.unit_price),
        list_amount=None if list_price is None else money.product(quantity, list_price),
        asset="",
        energy_kwh=energy,
        co2_kg=None if energy is None or carbon is None else money.quantity(energy * carbon),
        price_ids=tuple(used.id for used in placed.chosen.priced.prices if rented or energy is not None),
        source=line.source,
    )


def purchases_of(rigs: Rigs, bought: Sequence[Sequence[int]]) -> list[tuple[RigCost, int, Purchase]]:
    """(what one costs, month of first use, the purchase) of every rig type and month with any."""
    found = []
    for cost, by_month in zip(rigs.costs, bought, strict=True):
        for month, count in enumerate(by_month):
            if count:
                resale = rigs.resale(cost, month)
                purchase = Purchase(
                    asset=f"{cost.rig.id}@{rigs.calendar.name(month)}",
                    rig=cost.rig.id,
                    count=count,
                    ordered=rigs.ordered(cost, month),
                    usable=rigs.calendar.edges[month],
                    unit_price=cost.paid,
                    sold=rigs.calendar.ends - timedelta(seconds=1) if resale else None,
                    resale_each=resale or None,
                    life_months=cost.life_months,
                )
                found.append((cost, month, purchase))
    return found


def purchase_payments(
    cost: RigCost, month: int, purchase: Purchase, rigs: Rigs
) -> Iterator[tuple[Payment, Risk]]:
    """Parts, tax and cooling when ordered, keep by month, the sale at the end; with what moves each."""
    from planner import tco

    for part in cost.parts:
        quantity = Decimal(part.quantity * purchase.count)
        yield (
            _of_asset(
                purchase, "purchase", "capital", f"purchase {part.item}", quantity, "each",
                part.quote.unit_price, purchase.ordered, part.quote.source, (part.quote.used,),
            ),
            CERTAIN,
        )  # fmt: skip
    count = Decimal(purchase.count)
    once: tuple[tuple[Category, str, Decimal, str], ...] = (
        ("tax", "purchase tax", cost.tax, "the schedule's purchase_tax"),
        ("purchase", "cooling", cost.cooling, "the schedule's costs.cooling"),
    )
    for category, what, price, source in once:
        if price:
            line = _of_asset(
                purchase, category, "capital", what, count, "rig", price, purchase.ordered, source
            )
            yield line, CERTAIN
    for payment in keep_payments(cost, purchase.count, month, rigs.calendar, purchase.asset):
        yield payment, CERTAIN
    if purchase.sold is not None and purchase.resale_each is not None:
        decay, years = rigs.decay(cost), rigs.years(month)
        moved = resale_risk(decay, lambda k: tco.resale_value(Decimal(1), k, years), with_hours=False)
        yield (
            _of_asset(
                purchase, "resale", "disposal", "sold, less selling cost", count, "rig",
                -purchase.resale_each, purchase.sold, decay.source,
            ),
            moved,
        )  # fmt: skip


def keep_payments(
    cost: RigCost, count: int, month: int, calendar: Calendar, asset: str = ""
) -> Iterator[Payment]:
    """Staff and hosting of so many rigs, each month from that one on."""
    if not cost.monthly or not count:
        return
    for number in range(month, calendar.months):
        start, end = calendar.edges[number], calendar.edges[number + 1]
        yield _plain(
            due=due_at(start, end), start=start, end=end, category="hosting", expenditure="operating",
            description=f"staff and hosting of {cost.rig.id}", hardware=cost.rig.id, quantity=Decimal(count),
            unit="rig-month", unit_price=cost.monthly, asset=asset or f"{cost.rig.id}@hand",
            source="the schedule's costs.staff and costs.hosting",
        )  # fmt: skip


def promise_payments(file: ScheduleFile, levels: Levels, calendar: Calendar) -> Iterator[Payment]:
    """What is promised anew, each month, used or not."""
    for each, level in zip(file.cloud.commitments, levels.new, strict=True):
        if not level:
            continue
        for number in range(calendar.months):
            start, end = calendar.edges[number], calendar.edges[number + 1]
            hours = money.quantity((end - start).total_seconds() / 3600)
            yield _plain(
                due=due_at(start, end), start=start, end=end, category="commitment", expenditure="operating",
                description=f"promised spend {each.id}", provider=each.provider,
                purchase_model="savings_plan", quantity=hours, unit="h", unit_price=level,
                source="the schedule's cloud.commitments",
            )  # fmt: skip


def due_at(start: datetime, end: datetime) -> datetime:
    """The last second of what is paid for: the first of the next month would be the next month's cash."""
    return max(start, end - timedelta(seconds=1))


def level_of(level: float, held: Decimal) -> tuple[Decimal, Decimal]:
    """(level, what of it is new), rounded up: rounding down would leave spend uncovered. [currency/h]"""
    rounded = max(held, -(-Decimal(str(level)) // _SPEND_STEP) * _SPEND_STEP)
    return rounded, rounded - held


def _of_asset(
    purchase: Purchase,
    category: Category,
    expenditure: Expenditure,
    what: str,
    quantity: Decimal,
    unit: str,
    unit_price: Decimal,
    due: datetime,
    source: str,
    used: Sequence[PriceUsed] = (),
) -> Payment:
    return _plain(
        due=due, start=due, end=due, category=category, expenditure=expenditure,
        description=f"{purchase.asset}: {what}", hardware=purchase.rig, provider="own", purchase_model="buy",
        quantity=quantity, unit=unit, unit_price=unit_price, asset=purchase.asset, source=source,
        price_ids=tuple(each.id for each in used),
    )  # fmt: skip


def _plain(
    *,
    due: datetime,
    start: datetime,
    end: datetime,
    category: Category,
    expenditure: Expenditure,
    description: str,
    quantity: Decimal,
    unit: str,
    unit_price: Decimal,
    source: str,
    provider: str = "own",
    hardware: str = "",
    purchase_model: str = "",
    asset: str = "",
    price_ids: tuple[str, ...] = (),
) -> Payment:
    """A payment that belongs to the whole project."""
    return Payment(
        due=due, service_start=start, service_end=end, category=category, expenditure=expenditure,
        description=description, job="", project="", team="", tags={}, provider=provider, region="",
        hardware=hardware, sku="", purchase_model=purchase_model, quantity=quantity, unit=unit,
        unit_price=unit_price, amount=money.product(quantity, unit_price), list_amount=None, asset=asset,
        energy_kwh=None, co2_kg=None, price_ids=price_ids, source=source,
    )  # fmt: skip
