"""Our own CSV form of offers, read row by row: what does not read is named, the rest is kept."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from .. import checks
from ..errors import BadOffer, BadPriceFile
from ..import_files import FileResult
from ..offer import FIELDS, REQUIRED, Offer
from .csv_rows import CsvRows
from .page import RawPage

FORM = "planner-csv"
# An amount may be left out: that it is not known is a fact too. A date may be given for the whole file.
_NEEDED = tuple(name for name in REQUIRED if name not in ("amount", "observed_at", "source"))


def looks_like(head: str) -> bool:
    """Whether a file begins with a line of our columns."""
    columns = head.partition("\n")[0].strip().split(",")
    return {"kind", "item", "contract", "unit"} <= set(columns)


def read_file(page: RawPage, fetched_at: datetime, observed_at: datetime | None) -> FileResult:
    """The offers of a file; columns are fields of Offer, those not named mean not given.

    observed_at: the date of rows that have none. Raises BadPriceFile for a header that is not ours.
    """
    reader = CsvRows(text_of(page), page.ref)
    _check_header(page.ref, reader.names)
    offers: list[Offer] = []
    rows: dict[int, int] = {}
    bad: list[tuple[str, str]] = []
    try:
        for row in reader:
            try:
                offer = _offer(row, page, fetched_at, observed_at)
            except BadOffer as error:
                bad.append((str(reader.line), str(error)))
            else:
                rows[id(offer)] = reader.line
                offers.append(offer)
    except BadPriceFile as error:
        bad.append((str(reader.line), str(error)))
    broken = {id(found.offer): found.message for found in checks.errors(offers) if found.rule != "jump"}
    bad += [(str(rows[key]), message) for key, message in broken.items()]
    kept = tuple(offer for offer in offers if id(offer) not in broken)
    return FileResult(FORM, kept, {}, tuple(sorted(bad, key=lambda entry: int(entry[0]))))


def text_of(page: RawPage) -> str:
    """The file as text. Raises BadPriceFile when it is not UTF-8."""
    try:
        return page.body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadPriceFile(f"{page.ref}: not UTF-8 (byte {error.start}). Save the file as UTF-8.") from None


def _offer(
    row: dict[str, str | None], page: RawPage, fetched_at: datetime, observed_at: datetime | None
) -> Offer:
    if None in row:
        raise BadOffer("more cells than columns; quote texts that hold a comma")
    filled = dict(row)
    if not (filled.get("observed_at") or "").strip():
        if observed_at is None:
            raise BadOffer("observed_at is missing; add the column or say --observed-at DATE")
        filled["observed_at"] = observed_at.isoformat()
    if not (filled.get("source") or "").strip():
        filled["source"] = "import"
        filled["source_ref"] = (filled.get("source_ref") or "").strip() or page.ref
    offer = Offer.from_row(filled)
    return offer if offer.fetched_at is not None else replace(offer, fetched_at=fetched_at)


def _check_header(name: str, header: object) -> None:
    columns = list(header) if isinstance(header, list | tuple) else []
    unknown = [column for column in columns if column not in FIELDS]
    if unknown:
        raise BadPriceFile(f'{name}, row 1: no column "{unknown[0]}". Columns: {", ".join(FIELDS)}')
    missing = [column for column in _NEEDED if column not in columns]
    if missing:
        raise BadPriceFile(f'{name}, row 1: column "{missing[0]}" is missing')
