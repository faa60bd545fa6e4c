"""Tables as CSV: exact decimals, ISO dates, text that no spreadsheet runs.

What is defused is told by the column, not by the cell: a negative amount is a number and stays one, and a
label that begins with a minus is text and is defused (CWE-1236, OWASP ASVS 1.2.10).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from .table import Kind, Table

# What makes spreadsheets read a cell as a formula; Excel folds the full-width forms, and skips blanks.
_FORMULA = re.compile("^[\\s\x00\ufeff\u200b]*[=+\\-@\t\r\n\x00＝＋－＠]")
_CHUNK_ROWS = 2000


@dataclass(frozen=True, slots=True)
class Dialect:
    """bom: mark the file as UTF-8 for Excel. separator and decimal: one character each."""

    bom: bool = False
    separator: str = ","
    decimal: str = "."


PLAIN = Dialect()
DIALECTS = {
    "plain": PLAIN,
    "excel": Dialect(bom=True),
    "excel-eu": Dialect(bom=True, separator=";", decimal=","),
}


def defused(text: str) -> str:
    """Text as a spreadsheet may safely read it.

    >>> defused('=HYPERLINK("http://x")'), defused("gpt2")
    ('\\'=HYPERLINK("http://x")', 'gpt2')
    """
    return f"'{text}" if _FORMULA.match(text) else text


def cell_writers(dialect: Dialect) -> dict[Kind, Callable[[Any], str]]:
    """Kind of column -> how its known cells are written."""
    point = dialect.decimal == "."
    number = fixed if point else (lambda value: fixed(value).replace(".", dialect.decimal))
    return {
        "text": defused,
        "money": number,
        "number": number,
        "integer": str,
        "date": date.isoformat,
        "moment": moment,
        "flag": lambda value: "true" if value else "false",
    }


def fixed(value: Decimal) -> str:
    """In full, without an exponent, with two decimals or more: nothing is rounded, and 1 is no integer.

    >>> fixed(Decimal("1E+3")), fixed(Decimal("-12.500"))
    ('1000.00', '-12.50')
    """
    whole, _, decimals = format(value, "f").partition(".")
    return f"{whole}.{decimals.rstrip('0'):0<2}"


def moment(value: datetime) -> str:
    return f"{value:%Y-%m-%dT%H:%M:%SZ}"


def encoded(table: Table, dialect: Dialect) -> Iterator[bytes]:
    """The file in pieces: a header line, then the rows; "\\n" ends each line. UTF-8."""
    use = PLAIN if table.interchange else dialect
    writers = [cell_writers(use)[column.kind] for column in table.columns]
    out = io.StringIO()
    lines = csv.writer(out, delimiter=use.separator, lineterminator="\n")
    lines.writerow([column.name for column in table.columns])
    if use.bom:
        yield b"\xef\xbb\xbf"
    for number, row in enumerate(table.rows(), 1):
        lines.writerow(
            ["" if cell is None else write(cell) for write, cell in zip(writers, row, strict=True)]
        )
        if number % _CHUNK_ROWS == 0:
            yield _taken(out)
    yield _taken(out)


def _taken(out: io.StringIO) -> bytes:
    text = out.getvalue()
    out.seek(0)
    out.truncate()
    return text.encode("utf-8")
