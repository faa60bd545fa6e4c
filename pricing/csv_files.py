"""Offers as CSV: columns are the fields of Offer, an empty cell means not given.

A file may leave out columns that it does not need. `write_offers` then `read_offers` gives equal offers.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from .errors import BadOffer, BadPriceFile
from .offer import FIELDS, REQUIRED, Offer


def read_offers(path: Path) -> tuple[Offer, ...]:
    """The offers of a CSV file.

    Raises BadPriceFile, naming file, row (the header is row 1) and what is wrong with the column.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            _check_header(path, reader.fieldnames)
            return tuple(_offer(path, reader.line_num, row) for row in reader)
    except OSError as error:
        raise BadPriceFile(
            f"{path}: {error.strerror or error}. Check the path and its permissions."
        ) from None
    except UnicodeDecodeError as error:
        raise BadPriceFile(f"{path}: not UTF-8 (byte {error.start}). Save the file as UTF-8.") from None
    except csv.Error as error:
        raise BadPriceFile(f"{path}, row {reader.line_num}: not CSV ({error}).") from None


def write_offers(path: Path, offers: Iterable[Offer]) -> int:
    """Write all fields of the offers, one a row; returns the number of rows."""
    rows = [[_cell(*pair) for pair in zip(FIELDS, offer.to_record(), strict=True)] for offer in offers]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FIELDS)
        writer.writerows(rows)
    return len(rows)


def _cell(column: str, value: object) -> object:
    """Empty for what is not given; a text may well read "[]"."""
    return "" if value is None or (column == "components" and value == "[]") else value


def _check_header(path: Path, header: Iterable[str] | None) -> None:
    columns = list(header or ())
    for column in columns:
        if column not in FIELDS:
            raise BadPriceFile(f'{path}, row 1: no column "{column}". Columns: {", ".join(FIELDS)}')
    if len(set(columns)) != len(columns):
        raise BadPriceFile(f"{path}, row 1: a column stands there twice")
    missing = [name for name in REQUIRED if name not in columns]
    if missing:
        raise BadPriceFile(f'{path}, row 1: column "{missing[0]}" is missing')


def _offer(path: Path, line: int, row: dict[str, str | None]) -> Offer:
    if None in row:
        raise BadPriceFile(f"{path}, row {line}: more cells than columns; quote texts that hold a comma")
    try:
        return Offer.from_row(row)
    except BadOffer as error:
        raise BadPriceFile(f"{path}, row {line}, column {error}") from None
