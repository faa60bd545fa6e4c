"""What used cards fetch: sold-price series, and the value a card may have at a later day, with a band.

Values do not only fall (an RTX 4090 rose from 1,460 to 3,089 USD between 2024-06 and 2025-07), so the curve
is measured, and its band is as wide as the series was unsteady.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import combinations
from statistics import median, quantiles

from ..errors import BadOffer, BadPriceFile
from ..import_files import FileResult
from ..offer import Offer
from .answers import UnreadableRow
from .catalog_gpus import catalog_gpu
from .csv_import import text_of
from .csv_rows import CsvRows
from .page import RawPage
from .retail_text import one_price

FORM = "sold-csv"
NAME = "sold-prices"
_DAYS_PER_YEAR = 365.25
# A series of fewer points says where a price was, not where it goes.
FEWEST_SALES = 4
# Value per year beyond these has not been seen in any series of ours; a fit to few points can leave them.
_STEEPEST_FALL, _STEEPEST_RISE = math.log(0.35), math.log(1.6)
# Assumption: no series is long enough to measure over how many years a trend fades.
_FADES_YEARS = 1.5
_RECENT_DAYS = 548
_SHORTEST_DAYS = 56
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


@dataclass(frozen=True, slots=True)
class Sale:
    """The mean or median price of what was sold around a day. count: how many; None when not told."""

    day: date
    amount: Decimal
    count: int | None = None


@dataclass(frozen=True, slots=True)
class ResaleCurve:
    """Value over time: a damped trend of its logarithm, with a band.

    last, last_value: the day of the last sale and the middle on it.
    per_year: the factor by which the middle changes in a year, at first. [1]
    unsteadiness: half the 10..90 % range of the logarithm around the trend.
    slope_spread: half the 10..90 % range of the slopes that the series has had. [1/year]
    """

    last: date
    last_value: float
    per_year: float
    unsteadiness: float
    slope_spread: float
    sales: int

    def at(self, day: date) -> tuple[Decimal, Decimal, Decimal]:
        """Low, middle and high value (10, 50 and 90 %) on a day, rounded to whole cents.

        No fall or rise goes on at its pace: the trend fades with _FADES_YEARS (damped trend, Gardner and
        McKenzie, Management Science 31, 1985). The band is what the series scattered by, and what its slope
        has been at other times, carried on for as long.
        """
        years = (day - self.last).days / _DAYS_PER_YEAR
        ahead = _FADES_YEARS * (1 - math.exp(-years / _FADES_YEARS)) if years > 0 else years
        middle = self.last_value * self.per_year**ahead
        width = math.hypot(self.unsteadiness, self.slope_spread * ahead if years > 0 else 0.0)
        low, high = middle * math.exp(-width), middle * math.exp(width)
        return (_cents(low), _cents(middle), _cents(high))


def resale_curve(sales: Sequence[Sale]) -> ResaleCurve | None:
    """The curve of a series of sales; None when there are too few to say anything.

    The slope is the median of all pairwise slopes of the logarithm (Theil-Sen, Journal of the American
    Statistical Association 63, 1968), so that one odd month does not turn it. It is taken over the last year
    and a half where that has enough sales: prices of 2021 say little on how those of 2024 fall. Bounded to
    what any series of ours has shown.
    """
    known = sorted((sale.day.toordinal(), math.log(sale.amount)) for sale in sales if sale.amount > 0)
    if len(known) < FEWEST_SALES:
        return None
    last = known[-1][0]
    recent = [point for point in known if last - point[0] <= _RECENT_DAYS]
    every, late = _slopes(known), _slopes(recent) if len(recent) >= FEWEST_SALES else []
    if not every:
        return None
    slope = min(max(median(late or every), _STEEPEST_FALL), _STEEPEST_RISE)
    window = recent if late else known
    levels = [height - slope * (day - last) / _DAYS_PER_YEAR for day, height in window]
    return ResaleCurve(
        last=date.fromordinal(last),
        last_value=math.exp(median(levels)),
        per_year=math.exp(slope),
        # Never certain: at least five per cent, and a tenth a year.
        unsteadiness=max(_half_range(levels), 0.05),
        slope_spread=min(max(_half_range(every), 0.1), 1.0),
        sales=len(known),
    )


def _slopes(points: Sequence[tuple[int, float]]) -> list[float]:
    """Slopes of all pairs at least two months apart. [1/year]"""
    return [
        (end_height - height) / (end - begin) * _DAYS_PER_YEAR
        for (begin, height), (end, end_height) in combinations(points, 2)
        if end - begin >= _SHORTEST_DAYS
    ]


def _half_range(values: Sequence[float]) -> float:
    """Half the distance from the first to the last decile."""
    if len(values) < 2:
        return 0.0
    deciles = quantiles(values, n=10, method="inclusive")
    return (deciles[-1] - deciles[0]) / 2


def sales_of(offers: Sequence[Offer], currency: str = "USD") -> tuple[Sale, ...]:
    """The sales among stored offers of one item: kind resale, of known amount, in one currency."""
    return tuple(
        Sale(offer.observed_at.date(), offer.amount, offer.sample_n)
        for offer in offers
        if offer.kind == "resale" and offer.amount is not None and offer.currency == currency
        and offer.quality != "suspect"
    )  # fmt: skip


# --- monthly sold prices as a file


def looks_like(head: str) -> bool:
    """Whether a file begins with the columns of a monthly series of sold prices."""
    columns = {column.strip().lower() for column in head.partition("\n")[0].split(",")}
    return {"gpu", "month"} <= columns and any("price" in column for column in columns)


def read_file(page: RawPage, fetched_at: datetime, observed_at: datetime | None) -> FileResult:
    """Monthly means of completed sales: columns GPU, … Price, QTY Sold, Month ("April 2022"), in US dollars.

    A month is filed under its first day. observed_at is not needed: the rows are dated.
    """
    reader = CsvRows(text_of(page), page.ref)
    names = {(name or "").strip().lower(): name for name in reader.names}
    price = next((name for lower, name in names.items() if "price" in lower), None)
    if price is None or not {"gpu", "month"} <= set(names):
        raise BadPriceFile(f"{page.ref}, row 1: columns GPU, Price and Month are meant")
    sold = next((name for lower, name in names.items() if "qty" in lower or "sold" in lower), None)
    offers: dict[tuple[str, str], Offer] = {}
    bad: list[tuple[str, str]] = []
    skipped: dict[str, int] = {}
    for row in reader:
        card = str(row.get(names["gpu"]) or "").strip()
        gpu = catalog_gpu(card) if card else None
        if gpu is None or gpu.form == "unknown":
            skipped["a card not known here"] = skipped.get("a card not known here", 0) + 1
            continue
        try:
            offer = _sold(row, gpu.id, gpu.memory_mib, price, names["month"], sold, page, fetched_at)
            offers.setdefault((offer.item, offer.observed_at.isoformat()), offer)
        except UnreadableRow as error:
            bad.append((str(reader.line), str(error)))
    return FileResult(FORM, tuple(offers.values()), skipped, tuple(bad))


def _sold(
    row: dict[str, str | None],
    item: str,
    memory_mib: int,
    price: str,
    month: str,
    sold: str | None,
    page: RawPage,
    fetched_at: datetime,
) -> Offer:
    amount, currency = one_price(str(row.get(price) or ""), "us", "USD")
    count = str(row.get(sold) or "").strip() if sold else ""
    try:
        return Offer(
            kind="resale",
            provider="ebay",
            item=item,
            region="us",
            contract="purchase",
            unit="each",
            condition="used",
            amount=amount,
            currency=currency,
            tax="excluded",
            gpu_model=item,
            gpu_count=1,
            gpu_mem_mib=memory_mib,
            gpu_form="pcie",
            sample_n=int(count) if count.isdecimal() and len(count) < 9 else None,
            source=NAME,
            source_ref=page.ref,
            raw_sha256=page.sha256,
            observed_at=_month(str(row.get(month) or "")),
            fetched_at=fetched_at,
            note="mean of the completed sales of the month, filed under its first day",
        )
    except BadOffer as error:
        raise UnreadableRow(str(error)) from None


def _month(text: str) -> datetime:
    word, _, year = text.strip().partition(" ")
    if word[:3].lower() not in _MONTHS or not (year.isdecimal() and len(year) == 4):
        raise UnreadableRow("no month such as April 2022")
    return datetime(int(year), _MONTHS.index(word[:3].lower()) + 1, 1, tzinfo=UTC)


def _cents(value: float) -> Decimal:
    return Decimal(str(round(value, 2)))
