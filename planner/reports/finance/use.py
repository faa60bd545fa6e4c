"""What is promised and what of it is used, what machines do by month, energy and carbon."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from planner import money

from .accrual import Accrual
from .book import Book
from .charges import charges_of
from .commitments import commitments_of
from .months import Month, between, hours_of, month_of, pieces, start_of
from .table import Row, Table, columns

_HOUR = Decimal(3600)
Use = tuple[str, Month]


def commitments(accrual: Accrual) -> Table:
    book = accrual.book

    def rows() -> Iterator[Row]:
        for each in commitments_of(book):
            yield (
                each.id, each.provider, each.kind, each.level, each.start, each.end, each.hours,
                each.purchased, each.used_share, each.used, each.unused, each.break_even, each.paid,
                each.held,
            )  # fmt: skip

    return Table(
        "commitments", "Commitments",
        "UsedCost + UnusedCost = PurchasedCost. BreakEvenUtilisation: used less than this, paying as you go "
        "would have cost less. PaidInPlan is 0 for what was held before.",
        columns(
            CommitmentId="text", Provider="text", Type="text", HourlyCommitment="number",
            StartDate="moment", EndDate="moment", TermHours="number", PurchasedCost="money",
            PlannedUtilisation="number", UsedCost="money", UnusedCost="money",
            BreakEvenUtilisation="number", PaidInPlan="money", Held="flag",
        ),
        rows,
    )  # fmt: skip


def commitment_coverage(accrual: Accrual) -> Table:
    """By seller and month; only where something is promised."""
    book = accrual.book
    promises = commitments_of(book)

    def rows() -> Iterator[Row]:
        covered, on_demand = _by_coverage(accrual, {each.provider for each in promises})
        for key in sorted({*covered, *on_demand}):
            provider, month = key
            under, beside = covered.get(key, money.ZERO), on_demand.get(key, money.ZERO)
            whole = under + beside
            share = money.quantity(money.divided(under, whole)) if whole else None
            yield month.first_day, provider, under, beside, share

    return Table(
        "commitment_coverage", "Commitment coverage",
        "Of what a seller's machines would cost on demand, the part that promises pay for. Spot is left out: "
        "no promise covers it.",
        columns(
            Month="date", Provider="text", CoveredListCost="money", OnDemandListCost="money",
            Coverage="number",
        ),
        rows,
    )  # fmt: skip


def _by_coverage(accrual: Accrual, providers: set[str]) -> tuple[dict[Use, Decimal], dict[Use, Decimal]]:
    """(under promises, beside them) by seller and month, at list price. [currency]"""
    covered: defaultdict[Use, Decimal] = defaultdict(Decimal)
    on_demand: defaultdict[Use, Decimal] = defaultdict(Decimal)
    for charge in charges_of(accrual):
        line = charge.line
        if line is None or charge.category != "Usage":
            continue
        if charge.status == "Used" and charge.commitment is not None:
            covered[charge.commitment.provider, charge.month] += charge.listed
        elif line.provider in providers and line.purchase_model == "on_demand":
            on_demand[line.provider, charge.month] += charge.listed
    return dict(covered), dict(on_demand)


def capacity_monthly(accrual: Accrual) -> Table:
    book = accrual.book

    def rows() -> Iterator[Row]:
        used, gpus = _used(book)
        have = _available(book)
        for month in between(*_span(book)):
            hours = hours_of(month, book.zone)
            for key in sorted({key for key, at in {**used, **have} if at == month}):
                works = used.get((key, month), money.ZERO)
                available = have.get((key, month)) if key[0] == "own" else None
                share = None if not available else money.quantity(money.divided(works, available))
                idle = None if available is None else available - works
                yield (
                    month.first_day, key[0], key[1], hours, available, works,
                    gpus.get((key, month), money.ZERO), share, idle,
                )  # fmt: skip

    return Table(
        "capacity_monthly", "Capacity by month",
        "Machine-hours of each month, whose own hours stand in MonthHours. What is rented has no fixed "
        "capacity: empty.",
        columns(
            Month="date", Provider="text", Hardware="text", MonthHours="number",
            MachineHoursAvailable="number", MachineHoursUsed="number", GpuHoursUsed="number",
            Utilisation="number", IdleHours="number",
        ),
        rows,
    )  # fmt: skip


Key = tuple[str, str]


def _span(book: Book) -> tuple[Month, Month]:
    first = month_of(book.starts, book.zone)
    return first, max(first, month_of(book.ends, book.zone).plus(-1))


def _runs(book: Book) -> list[Mapping[str, Any]]:
    if book.is_schedule:
        return list(book.plan["jobs"])
    if not book.lines:
        return []
    start = min(line.service_start for line in book.lines)
    hours = Decimal(str(book.plan["time_hours"]["p50"]))
    return [dict(book.plan) | {"start": start, "seconds": hours * _HOUR}]


def _used(book: Book) -> tuple[dict[tuple[Key, Month], Decimal], dict[tuple[Key, Month], Decimal]]:
    """Machine-hours and GPU-hours by hardware and month. [h]"""
    machines: defaultdict[tuple[Key, Month], Decimal] = defaultdict(Decimal)
    gpus: defaultdict[tuple[Key, Month], Decimal] = defaultdict(Decimal)
    for run in _runs(book):
        start, end = _times(run)
        key = (str(run["provider"]), str(run["hardware"]))
        for month, since, to in pieces(start, end, book.zone):
            hours = money.quantity(money.divided(Decimal(int((to - since).total_seconds())), _HOUR))
            machines[key, month] += hours * run["count"]
            gpus[key, month] += hours * run["gpu_count"]
    return dict(machines), dict(gpus)


def _times(run: Mapping[str, Any]) -> tuple[datetime, datetime]:
    from datetime import timedelta

    if "seconds" in run:
        return run["start"], run["start"] + timedelta(seconds=int(run["seconds"]))
    return datetime.fromisoformat(run["start"]), datetime.fromisoformat(run["end"])


def _available(book: Book) -> dict[tuple[Key, Month], Decimal]:
    """Hours of the rigs that are there, bought or at hand. [h]"""
    found: defaultdict[tuple[Key, Month], Decimal] = defaultdict(Decimal)
    _, last = _span(book)
    end = start_of(last.plus(1), book.zone)
    times = [(asset.hardware, asset.count, asset.in_service, asset.sold or end) for asset in book.assets]
    hardware = book.document.get("schedule", {}).get("hardware") or {}
    for rig in hardware.get("at_hand") or ():
        times.append((str(rig["rig"]), int(rig.get("count", 1)), book.starts, end))
    for name, count, since, until in times:
        for month, start, to in pieces(since, min(until, end), book.zone):
            hours = money.quantity(money.divided(Decimal(round((to - start).total_seconds())), _HOUR))
            found[("own", name), month] += hours * count
    return dict(found)


def energy_co2(accrual: Accrual) -> Table:
    book = accrual.book

    def rows() -> Iterator[Row]:
        lines = defaultdict(list)
        for line in book.lines:
            if line.category in ("compute", "energy"):
                lines[month_of(line.due, book.zone), line.provider].append(line)
        for (month, provider), found in sorted(lines.items(), key=lambda item: item[0]):
            kwh = [line.energy_kwh for line in found if line.energy_kwh is not None]
            co2 = [line.co2_kg for line in found if line.co2_kg is not None]
            yield (
                month.first_day, provider, money.total(kwh) if kwh else None,
                money.total(co2) if co2 else None,
                sum(line.energy_kwh is None for line in found), sum(line.co2_kg is None for line in found),
            )  # fmt: skip

    return Table(
        "energy_co2_monthly", "Energy and CO2",
        "Of what is known; empty is unknown, not zero, and so is what the unknown payments count.",
        columns(
            Month="date", Provider="text", KnownEnergyKWh="number", KnownCo2Kg="number",
            PaymentsWithoutEnergy="integer", PaymentsWithoutCo2="integer",
        ),
        rows,
    )  # fmt: skip
