"""EC2 offer files as JSON: one object of hundreds of megabytes, read entry by entry.

    {"publicationDate": …, "products": {SKU: {…}, …}, "terms": {"OnDemand": {SKU: {…}, …}, "Reserved": …}}

The standard decoder reads each entry out of a sliding buffer, so speed is that of json.loads and memory is
one buffer and the products kept. (A general streaming parser raises an event per token in Python; for this
shape, whose entries are small, that is several times slower.)
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from json.decoder import JSONDecodeError
from typing import Any, BinaryIO

from ..errors import BadOffer
from ..offer import parse_time
from .answers import UnreadableRow
from .aws_offer_rows import Keep, Listed, OfferFile
from .aws_rows import Product, product_of, terms_of
from .errors import BadAnswer
from .page import Tally

_CHUNK_CHARACTERS = 2**20
# An entry is a few kilobytes; one that does not end within this is no entry.
_LONGEST_ENTRY_CHARACTERS = 8 * 2**20
_BLANK = re.compile(r"[ \t\n\r]*")


def read_json(file: BinaryIO, ref: str, tally: Tally, keep: Keep) -> OfferFile:
    """The publication date at once, the rows as they are asked for.

    keep: asked once for each product, before its terms; what it turns down is forgotten.
    Raises BadAnswer, also while rows are read: for what is no JSON, is cut off, or has terms before products.
    """
    cursor = _Cursor(io.TextIOWrapper(file, encoding="utf-8"), ref)
    members = cursor.members()
    published = None
    for name in members:
        if name == "products":
            return OfferFile(published, _rows(cursor, members, tally, keep))
        if name == "terms":
            raise BadAnswer(f"{ref}: terms stand before products; it is no EC2 offer file")
        value = cursor.value()
        if name == "publicationDate":
            published = _time(value, ref)
    raise BadAnswer(f"{ref}: no products; it is no EC2 offer file")


def _rows(cursor: _Cursor, members: Iterator[str], tally: Tally, keep: Keep) -> Iterator[Listed]:
    kept: dict[str, Product] = {}
    for sku in cursor.members():
        try:
            product = product_of(cursor.value())
        except UnreadableRow as error:
            tally.row()
            tally.spoilt(str(error), sku)
            continue
        if keep(product):
            kept[sku] = product
    for name in members:
        if name != "terms":
            cursor.value()
            continue
        for kind in cursor.members():
            for sku in cursor.members():
                terms = cursor.value()
                if sku in kept:
                    yield from _listed(kept[sku], kind, terms, tally)


def _listed(product: Product, kind: str, terms: object, tally: Tally) -> Iterator[Listed]:
    if not isinstance(terms, Mapping):
        tally.spoilt("terms are no object", product.sku)
        return
    try:
        yield Listed(product, tuple(terms_of({kind: terms})))
    except UnreadableRow as error:
        tally.spoilt(str(error), product.sku)


class _Cursor:
    """A place in a JSON text that does not fit into memory."""

    def __init__(self, text: io.TextIOWrapper, ref: str) -> None:
        self._text = text
        self._ref = ref
        self._buffer = ""
        self._at = 0
        self._ended = False
        self._decode = json.JSONDecoder().raw_decode

    def members(self) -> Iterator[str]:
        """Names of the object that begins here; read or skip each one's value before the next name."""
        self._expect("{")
        if self._peek() == "}":
            self._at += 1
            return
        while True:
            name = self.value()
            if not isinstance(name, str):
                raise self._bad("a name is meant")
            self._expect(":")
            yield name
            if self._peek() == "}":
                self._at += 1
                return
            self._expect(",")

    def value(self) -> Any:
        """The value that begins here."""
        self._peek()
        while True:
            try:
                value, end = self._decode(self._buffer, self._at)
            except JSONDecodeError as error:
                if self._ended or len(self._buffer) - self._at > _LONGEST_ENTRY_CHARACTERS:
                    raise self._bad(error.msg) from None
            except (ValueError, RecursionError):
                raise self._bad("a number or nesting beyond all measure") from None
            else:
                # A number at the end of the buffer may go on in the next chunk.
                if end < len(self._buffer) or self._ended:
                    self._at = end
                    return value
            self._more()

    def _peek(self) -> str:
        """The next character that is not blank."""
        while True:
            match = _BLANK.match(self._buffer, self._at)
            assert match is not None
            self._at = match.end()
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if self._ended:
                raise self._bad("the file is cut off")
            self._more()

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise self._bad(f'"{character}" is meant')
        self._at += 1

    def _more(self) -> None:
        try:
            chunk = self._text.read(_CHUNK_CHARACTERS)
        except UnicodeDecodeError:
            raise BadAnswer(f"{self._ref}: not UTF-8") from None
        self._ended = not chunk
        self._buffer = self._buffer[self._at :] + chunk
        self._at = 0

    def _bad(self, why: str) -> BadAnswer:
        found = self._buffer[self._at : self._at + 40]
        return BadAnswer(f"{self._ref}: not whole JSON ({why}, where {found!r} stands)")


def _time(value: object, ref: str) -> datetime:
    try:
        return parse_time("publicationDate", str(value))
    except BadOffer as error:
        raise BadAnswer(f"{ref}: {error}") from None
