"""CSV of others, row by row: what is wrong with it, at the first line or the last, is a BadPriceFile."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from ..errors import BadPriceFile

Row = dict[str, str | None]


class CsvRows:
    """The rows of a CSV text. names: of its columns, () where it is empty. ref: how complaints call it."""

    def __init__(self, text: str, ref: str) -> None:
        self._reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        self._ref = ref
        try:
            self.names: Sequence[str] = tuple(self._reader.fieldnames or ())
        except csv.Error as error:
            raise self._bad(error) from None

    @property
    def line(self) -> int:
        """Of the row that came last; the header is line 1."""
        return self._reader.line_num

    def __iter__(self) -> Iterator[Row]:
        try:
            yield from self._reader
        except csv.Error as error:
            raise self._bad(error) from None

    def _bad(self, error: csv.Error) -> BadPriceFile:
        return BadPriceFile(f"{self._ref}, row {max(self._reader.line_num, 1)}: not CSV ({error})")
