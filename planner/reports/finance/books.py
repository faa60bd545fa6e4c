"""The accrual view: expense by month, what stands on the books, depreciation and what it leaves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal

from planner import money

from .accrual import AMORTISATION, DEPRECIATION, DISPOSAL, Accrual, AssetMonth
from .book import sums_by_month
from .cash import fiscal
from .depreciation import tax_years
from .months import Month, month_of
from .table import Row, Table, columns


def pnl_monthly(accrual: Accrual) -> Table:
    kinds = ("operating", AMORTISATION, DEPRECIATION, DISPOSAL)

    def rows() -> Iterator[Row]:
        sums: defaultdict[tuple[Month, str], defaultdict[str, list[Decimal]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for entry in accrual.entries:
            sums[entry.month, entry.category][entry.kind].append(entry.amount)
        last = max(accrual.book.months, default=None)
        for (month, category), by_kind in sorted(sums.items()):
            parts = [money.total(by_kind.get(kind, ())) for kind in kinds]
            within = last is not None and month <= last
            yield (month.first_day, *fiscal(month, accrual), category, money.total(parts), *parts, within)

    return Table(
        "pnl_monthly", "Expense by month",
        "When cost is consumed. Expense = Operating + Amortisation + Depreciation + LossOnDisposal; "
        "WithinPlan is false for depreciation after the plan's last month.",
        columns(
            Month="date", FiscalYear="integer", FiscalPeriod="integer", LineItem="text", Expense="money",
            Operating="money", Amortisation="money", Depreciation="money", LossOnDisposal="money",
            WithinPlan="flag",
        ),
        rows,
    )  # fmt: skip


def balance_monthly(accrual: Accrual) -> Table:
    """cumulative cash = cumulative expense + book value + prepaid - accrued, at each month's end."""

    def rows() -> Iterator[Row]:
        zone = accrual.book.zone
        cash = sums_by_month((month_of(line.due, zone), line.amount) for line in accrual.book.lines)
        expense = sums_by_month((entry.month, entry.amount) for entry in accrual.entries)
        value = sums_by_month((row.month, row.closing - row.opening) for row in accrual.schedule)
        paid = used = book_value = money.ZERO
        for month in accrual.months:
            paid += cash.get(month, money.ZERO)
            used += expense.get(month, money.ZERO)
            book_value += value.get(month, money.ZERO)
            rest = paid - used - book_value
            yield (
                month.first_day, *fiscal(month, accrual), paid, used, book_value,
                max(rest, money.ZERO), max(-rest, money.ZERO),
            )  # fmt: skip

    return Table(
        "balance_monthly", "Balance by month",
        "At each month's end: cumulative cash = cumulative expense + net book value + prepaid - accrued.",
        columns(
            Month="date", FiscalYear="integer", FiscalPeriod="integer", CumulativeCashOut="money",
            CumulativeExpense="money", NetBookValue="money", Prepaid="money", Accrued="money",
        ),
        rows,
    )  # fmt: skip


def depreciation_schedule(accrual: Accrual) -> Table:
    book, policy = accrual.book, accrual.policy

    def rows() -> Iterator[Row]:
        for row in accrual.schedule:
            asset = row.asset
            salvage = money.quantity(asset.cost * policy.salvage_share, book.step)
            method = policy.depreciation
            if method == "macrs":
                method = f"macrs_5_year_{accrual.conventions[asset.id]}"
            yield (
                row.month.first_day, *fiscal(row.month, accrual), asset.id, asset.hardware,
                asset.in_service.astimezone(book.zone).date(), asset.life_months, method, salvage,
                row.opening, row.addition, row.depreciation, row.disposal, row.proceeds,
                row.gain if row.disposal or row.proceeds else money.ZERO, row.closing,
            )  # fmt: skip

    return Table(
        "depreciation_schedule", "Depreciation",
        "OpeningNBV + Addition - Depreciation - Disposal = ClosingNBV. The months of entry and of sale "
        "count in full.",
        columns(
            Month="date", FiscalYear="integer", FiscalPeriod="integer", AssetId="text", Hardware="text",
            InServiceDate="date", UsefulLifeMonths="integer", Method="text", SalvageValue="money",
            OpeningNBV="money", Addition="money", Depreciation="money", Disposal="money",
            DisposalProceeds="money", GainLoss="money", ClosingNBV="money",
        ),
        rows,
    )  # fmt: skip


def tax_depreciation(accrual: Accrual) -> Table:
    book, policy = accrual.book, accrual.policy

    def rows() -> Iterator[Row]:
        for asset in accrual.capitalised:
            convention = accrual.conventions[asset.id]
            for year in tax_years(asset, policy, book.zone, book.step, convention):
                yield (
                    asset.id, "macrs_5_year", convention, year.year, policy.tax_year_start, asset.cost,
                    year.share, year.amount,
                )  # fmt: skip

    return Table(
        "tax_depreciation", "Tax depreciation",
        "MACRS, 5-year property, by the tax year it ends in; Share is of the cost before a sale cuts the "
        "year. Bonus depreciation and section 179 are left out.",
        columns(
            AssetId="text", Method="text", Convention="text", TaxYear="integer",
            TaxYearStartMonth="integer", Cost="money", Share="number", Depreciation="money",
        ),
        rows,
    )  # fmt: skip


def residual_disposal(accrual: Accrual) -> Table:
    def rows() -> Iterator[Row]:
        for asset in accrual.capitalised:
            months = [row for row in accrual.schedule if row.asset.id == asset.id]
            lost = money.total(row.depreciation for row in months)
            sale: AssetMonth | None = months[-1] if asset.sold is not None else None
            yield (
                asset.id, asset.hardware, asset.count, asset.cost,
                asset.in_service.astimezone(accrual.book.zone).date(),
                None if asset.sold is None else asset.sold.astimezone(accrual.book.zone).date(), lost,
                None if sale is None else sale.disposal, None if sale is None else asset.proceeds,
                None if sale is None else sale.gain, months[-1].closing,
            )  # fmt: skip

    return Table(
        "residual_disposal", "Residual and disposal",
        "What each asset cost, lost and fetched; empty where it is kept, as ResidualNBV at the end of life.",
        columns(
            AssetId="text", Hardware="text", Count="integer", Cost="money", InServiceDate="date",
            SoldDate="date", AccumulatedDepreciation="money", NBVAtDisposal="money", Proceeds="money",
            GainLoss="money", ResidualNBV="money",
        ),
        rows,
    )  # fmt: skip
