"""When cost is consumed, not when it is paid: services by their months, purchases by depreciation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from planner import money

from .book import Asset, Book, Line, asset_of, sums_by_month
from .depreciation import conventions, monthly
from .months import Month, between, month_of, split_by_month
from .policy import Policy

DEPRECIATION, DISPOSAL, AMORTISATION = "depreciation", "disposal", "amortisation"


@dataclass(frozen=True, slots=True)
class Entry:
    """An expense of one month. kind: operating, amortisation, depreciation or disposal. [currency]

    line: the payment behind it; None for depreciation and disposal, whose asset is named instead.
    """

    month: Month
    kind: str
    category: str
    amount: Decimal
    line: Line | None
    asset: str


@dataclass(frozen=True, slots=True)
class AssetMonth:
    """One row of the roll-forward: opening + addition - depreciation - disposal = closing. [currency]"""

    asset: Asset
    month: Month
    opening: Decimal
    addition: Decimal
    depreciation: Decimal
    disposal: Decimal
    proceeds: Decimal

    @property
    def closing(self) -> Decimal:
        return self.opening + self.addition - self.depreciation - self.disposal

    @property
    def gain(self) -> Decimal:
        """Proceeds less the book value disposed of. [currency]"""
        return self.proceeds - self.disposal


@dataclass(frozen=True)
class Accrual:
    """The accrual view of a book under a policy."""

    book: Book
    policy: Policy

    @cached_property
    def capitalised(self) -> Sequence[Asset]:
        """Assets at or above the threshold; those below are expensed when paid."""
        return [asset for asset in self.book.assets if asset.cost >= self.policy.threshold]

    @cached_property
    def conventions(self) -> dict[str, str]:
        """MACRS convention by asset."""
        return conventions(self.capitalised, self.policy, self.book.zone)

    @cached_property
    def schedule(self) -> Sequence[AssetMonth]:
        return [row for asset in self.capitalised for row in self._rows(asset)]

    @cached_property
    def months(self) -> Sequence[Month]:
        """The plan's months, and those after it in which something still depreciates or is amortised."""
        known = {entry.month for entry in self.entries} | set(self.book.months)
        return list(between(min(known), max(known))) if known else ()

    @cached_property
    def entries(self) -> Sequence[Entry]:
        """Every expense; they add up to the payments less the book value that is left."""
        return [entry for line in self.book.lines for entry in self.of_line(line)] + [
            entry for row in self.schedule for entry in _of_row(row)
        ]

    @cached_property
    def _capitalised_ids(self) -> frozenset[str]:
        return frozenset(asset.id for asset in self.capitalised)

    def of_line(self, line: Line) -> Iterator[Entry]:
        """The expenses of one payment; none where an asset's depreciation and disposal stand for it."""
        if line.expenditure in ("capital", "disposal"):
            if asset_of(line) not in self._capitalised_ids:
                yield Entry(
                    month_of(line.due, self.book.zone), "operating", line.category, line.amount, line, ""
                )
            return
        kind = AMORTISATION if line.expenditure == "prepaid" else "operating"
        for month, amount in split_by_month(
            line.amount, line.service_start, line.service_end, self.book.zone, self.book.step
        ):
            yield Entry(month, kind, line.category, amount, line, "")

    def _rows(self, asset: Asset) -> Iterator[AssetMonth]:
        """From the month of the first payment to full depreciation or sale.

        What is paid before an asset serves stands as an addition in the month it enters service.
        """
        zone = self.book.zone
        lost = monthly(asset, self.policy, zone, self.book.step, self.conventions[asset.id])
        first = month_of(asset.in_service, zone)
        end = None if asset.sold is None else month_of(asset.sold, zone)
        additions = self._additions(asset)
        start = min([first, *additions])
        last = end or max(first.plus(len(lost) - 1), *additions)
        value = money.ZERO
        for month in between(start, last):
            at = month.index - first.index
            addition = additions.get(month, money.ZERO)
            depreciation = lost[at] if 0 <= at < len(lost) else money.ZERO
            sold = month == end
            left = value + addition - depreciation
            row = AssetMonth(
                asset, month, value, addition, depreciation,
                left if sold else money.ZERO, asset.proceeds if sold else money.ZERO,
            )  # fmt: skip
            yield row
            value = row.closing

    def _additions(self, asset: Asset) -> dict[Month, Decimal]:
        return sums_by_month(
            (month_of(line.due, self.book.zone), line.amount)
            for line in self.book.lines
            if line.expenditure == "capital" and asset_of(line) == asset.id
        )


def _of_row(row: AssetMonth) -> Iterator[Entry]:
    if row.depreciation:
        yield Entry(row.month, DEPRECIATION, DEPRECIATION, row.depreciation, None, row.asset.id)
    if row.disposal or row.proceeds:
        yield Entry(row.month, DISPOSAL, DISPOSAL, -row.gain, None, row.asset.id)
