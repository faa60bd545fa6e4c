"""What every price of one plan is computed under, and the records in which a price is handed on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from . import money
from .answer import Basis, CostLine, PriceUsed, TimeLine
from .assumptions import Assumptions
from .market import Market, Quote
from .spot import ExpectedRun

if TYPE_CHECKING:
    from .own_rigs import OwnRate
    from .ownership import Decay, PartPrice, RigHour

# One random number of the simulation per factor, shared by every line and option that it moves.
Factor = Literal["electricity", "spot price", "resale"]


@dataclass(frozen=True, slots=True)
class Tariff:
    """Electricity. price: per kWh, in the plan's currency. used: the stored row, if it was stored."""

    price: Decimal
    source: str
    observed_at: datetime | None
    basis: Basis
    used: PriceUsed | None


@dataclass(frozen=True, slots=True)
class Risk:
    """What moves a cost line in the simulation.

    with_hours: whether the amount grows with the paid hours of the run.
    factor: what else moves it; low and high: the factors at its 10 % and 90 % points.
    """

    with_hours: bool
    factor: Factor | None = None
    low: float = 1.0
    high: float = 1.0


CERTAIN = Risk(with_hours=False)
BY_HOURS = Risk(with_hours=True)


@dataclass(frozen=True, slots=True)
class Terms:
    """What all options of one plan share.

    checkpoint_hours: one write of the whole training state. [h]
    regions: where to rent; empty for anywhere. own_rates: machine id -> the user's own all-in rate.
    at_hand: how many of each rig the user owns. tariff: None where no electricity price is known.
    priced_parts: bills of materials already priced, by rig; None where a part has no price.
    decays, rig_hours: already worked out, by card and by rig.
    """

    market: Market
    assume: Assumptions
    regions: tuple[str, ...]
    utilization: Decimal
    horizon_months: int | None
    pue: Decimal
    tariff: Tariff | None
    checkpoint_hours: Decimal
    at_hand: Mapping[str, int] = field(default_factory=dict)
    own_rates: Mapping[str, OwnRate] = field(default_factory=dict)
    priced_parts: dict[str, tuple[PartPrice, ...] | None] = field(default_factory=dict)
    decays: dict[str, Decay] = field(default_factory=dict)
    rig_hours: dict[str, RigHour] = field(default_factory=dict)

    @property
    def currency(self) -> str:
        return self.market.currency


@dataclass(frozen=True, slots=True)
class Interruptions:
    """What the simulation needs to know of a run that may be stopped. [h]"""

    expected: ExpectedRun
    interval: float
    checkpoint: float
    restart: float
    mean_to_loss: float
    outage: float


@dataclass(frozen=True, slots=True)
class Priced:
    """One variant under one purchase model. risks: of each cost line, in the same order.

    price_per_gpu_hour: of the hardware alone; None where it is bought. [currency/GPU-h]
    """

    purchase_model: str
    region: str
    lines: tuple[CostLine, ...]
    risks: tuple[Risk, ...]
    time_lines: tuple[TimeLine, ...]
    prices: tuple[PriceUsed, ...]
    cash_upfront: Decimal
    price_per_gpu_hour: Decimal | None
    interruptions: Interruptions | None = None
    notes: tuple[str, ...] = ()

    @property
    def cost(self) -> Decimal:
        """The exact sum of the lines. [currency]"""
        return money.total(line.amount for line in self.lines)

    @property
    def hours(self) -> Decimal:
        """The exact sum of the time lines. [h]"""
        return money.total(line.hours for line in self.time_lines)


class Bill:
    """Collects the lines of one price in one currency."""

    def __init__(self, currency: str) -> None:
        self._currency = currency
        self.lines: list[CostLine] = []
        self.risks: list[Risk] = []
        self.prices: list[PriceUsed] = []

    def add(
        self,
        item: str,
        quantity: Decimal,
        unit: str,
        unit_price: Decimal,
        formula: str,
        source: str,
        *,
        risk: Risk,
        basis: Basis,
        observed_at: datetime | None = None,
        used: PriceUsed | None = None,
    ) -> None:
        """One line; its amount is the exact product. quantity and unit_price are rounded already."""
        amount = money.product(quantity, unit_price)
        self.lines.append(
            CostLine(
                item, quantity, unit, unit_price, amount, self._currency, formula, source, observed_at, basis
            )
        )
        self.risks.append(risk)
        if used is not None:
            self.note(used)

    def quoted(
        self,
        item: str,
        quantity: Decimal,
        unit: str,
        quote: Quote,
        formula: str,
        risk: Risk,
        unit_price: Decimal | None = None,
    ) -> None:
        """A line at a stored price; unit_price: another figure of that offer than its amount."""
        self.add(
            item,
            quantity,
            unit,
            quote.unit_price if unit_price is None else unit_price,
            formula,
            quote.source,
            risk=risk,
            basis="quoted",
            observed_at=quote.offer.observed_at,
            used=quote.used,
        )

    def note(self, used: PriceUsed) -> None:
        """A stored price that a line rests on without being its unit price."""
        if used not in self.prices:
            self.prices.append(used)

    @property
    def total(self) -> Decimal:
        return money.total(line.amount for line in self.lines)
