"""Electricity prices: the monthly figures of the US Energy Information Administration (EIA)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from ..errors import BadOffer, BadPriceFile
from ..import_files import FileResult
from ..offer import Offer
from . import FetchContext, source
from .answers import UnreadableRow, load_json, member, money_of, text_of
from .csv_import import text_of as file_text
from .csv_rows import CsvRows
from .errors import SourceUnavailable
from .http import Http
from .page import ParseResult, RawPage, Tally

NAME = "electricity"
FORM = "eia-csv"
KEY = "EIA_API_KEY"
BASE = "https://api.eia.gov/v2/electricity/retail-sales/data/"
_SECTORS = {"COM": "commercial", "IND": "industrial", "RES": "residential"}
_MONTHS = 3
_LARGEST_BYTES = 2**21
_CENTS = Decimal(100)
_PERIOD = re.compile(r"\d{4}-\d{2}")


@source(NAME, provider="eia", needs=f"a free key of the EIA in {KEY} (eia.gov/opendata)")
class Electricity:
    """Mean retail prices of electricity by US state and kind of customer, of the latest months.

    Other countries: a CSV file of kind "electricity" through `planner prices import`.
    """

    def fetch(self, context: FetchContext) -> Iterator[RawPage]:
        """One answer for all states. Raises SourceUnavailable without the key, SourceFailed."""
        key = os.environ.get(KEY, "").strip()
        if not key:
            raise SourceUnavailable(f"a free key of the EIA in {KEY} (eia.gov/opendata)")
        question = {
            "frequency": "monthly",
            "data[0]": "price",
            "sort[0][column]": "period",
            "sort[0][direction]": "desc",
            "length": str(62 * len(_SECTORS) * _MONTHS),
            **{f"facets[sectorid][{number}]": sector for number, sector in enumerate(_SECTORS)},
        }
        with Http(context) as http:
            # The EIA takes the key as a parameter only; messages and references leave parameters out.
            answer = http.get(
                context.base_urls.get(NAME, BASE),
                params={**question, "api_key": key},
                limit_bytes=_LARGEST_BYTES,
            )
            yield RawPage(answer.body, ref=answer.ref)

    def parse(
        self, pages: Iterable[RawPage], *, fetched_at: datetime, observed_at: datetime | None = None
    ) -> ParseResult:
        """One offer a state, sector and month, dated at the start of the month. Raises BadAnswer."""
        tally = Tally(NAME)
        offers: list[Offer] = []
        for page in pages:
            response = member(load_json(page), "response", Mapping, page.ref)
            for row in member(response, "data", list, page.ref):
                tally.row()
                try:
                    offers += _of_api(row, page, fetched_at, tally)
                except UnreadableRow as error:
                    tally.spoilt(str(error), str(row)[:80])
        return tally.result(offers)


def _of_api(row: object, page: RawPage, fetched_at: datetime, tally: Tally) -> Iterator[Offer]:
    if not isinstance(row, Mapping):
        raise UnreadableRow("a row that is no object")
    sector = _SECTORS.get(str(row.get("sectorid")))
    if sector is None:
        tally.skip("another kind of customer")
        return
    if row.get("price") is None:
        tally.skip("no price")
        return
    if "cents" not in str(row.get("price-units", "cents per kilowatt-hour")):
        raise UnreadableRow("not in cents per kWh")
    period = text_of(row, "period")
    if not _PERIOD.fullmatch(period) or not 1 <= int(period[5:]) <= 12:
        raise UnreadableRow("period is no month")
    state = text_of(row, "stateDescription")
    region = "us" if state in ("U.S. Total", "United States") else _region(state)
    cents = money_of(row["price"], "price")
    month = datetime(int(period[:4]), int(period[5:]), 1, tzinfo=UTC)
    yield _offer(region, sector, cents, month, page, fetched_at, f'dated "{period}" by its source')


def looks_like(head: str) -> bool:
    """Whether a file begins with columns such as commercial_cents_per_kwh."""
    first = head.partition("\n")[0]
    return first.startswith("area,") and "_cents_per_kwh" in first


def read_file(page: RawPage, fetched_at: datetime, observed_at: datetime | None) -> FileResult:
    """Tariffs by area: columns area, then SECTOR_cents_per_kwh. Raises BadPriceFile without a date."""
    if observed_at is None:
        raise BadPriceFile(f"{page.ref}: this form says no date; say when it held: --observed-at 2026-07-01")
    reader = CsvRows(file_text(page), page.ref)
    offers: list[Offer] = []
    bad: list[tuple[str, str]] = []
    suffix = "_cents_per_kwh"
    for row in reader:
        for column, text in row.items():
            if not isinstance(column, str) or not column.endswith(suffix) or not (text or "").strip():
                continue
            try:
                area = text_of(row, "area")
                region = "us" if area in ("U.S. Total", "United States") else _region(area)
                cents = money_of(text, column)
                sector = column.removesuffix(suffix)
                offers.append(_offer(region, sector, cents, observed_at, page, fetched_at, None))
            except UnreadableRow as error:
                bad.append((str(reader.line), str(error)))
    return FileResult(FORM, tuple(offers), {}, tuple(bad))


def _offer(
    region: str,
    sector: str,
    cents: Decimal,
    when: datetime,
    page: RawPage,
    fetched_at: datetime,
    note: str | None,
) -> Offer:
    values: dict[str, Any] = {"amount": cents / _CENTS} if cents else {"amount": None}
    try:
        return Offer(
            kind="electricity",
            provider="eia",
            item=f"electricity-{sector}",
            region=region,
            contract="purchase",
            unit="kwh",
            currency="USD",
            tax="unknown",
            source=NAME,
            source_ref=page.ref,
            raw_sha256=page.sha256,
            observed_at=when,
            fetched_at=fetched_at,
            note=note,
            **values,
        )
    except BadOffer as error:
        raise UnreadableRow(str(error)) from None


def _region(area: str) -> str:
    """An area of the EIA as our region.

    >>> _region("New England")
    'us-new-england'
    """
    return "us-" + re.sub(r"[^a-z]+", "-", area.lower()).strip("-")
