"""EC2 offer files as CSV: a gigabyte of lines, of which a few thousand are prices of GPU instances.

Five lines of preamble, then a header, then one line per rate. Parsing each line as CSV would take most of
the time, so a line is first searched for the quoted words that any wanted row holds; only what passes is
split. Memory holds one line and the rows kept, whatever the size of the file.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO, Literal

from ..errors import BadOffer
from ..offer import parse_time
from .aws_offer_rows import Keep, Listed, OfferFile
from .aws_rows import FAMILY, Product, Rate, Term, normal
from .errors import BadAnswer
from .page import Tally

PREAMBLE_LINES = 5
# A line is about 1,000 bytes; this is a file without line ends, not a long line.
_LONGEST_LINE_BYTES = 2**16
_NOT_ATTRIBUTES = frozenset({
    "sku", "offertermcode", "ratecode", "termtype", "pricedescription", "effectivedate", "startingrange",
    "endingrange", "unit", "priceperunit", "currency", "relatedto", "leasecontractlength", "purchaseoption",
    "offeringclass", "productfamily",
})  # fmt: skip
_NEEDED = (
    "sku", "offertermcode", "ratecode", "termtype", "unit", "priceperunit", "currency", "productfamily",
    "instancetype", "operatingsystem", "tenancy", "preinstalledsw", "capacitystatus", "regioncode",
)  # fmt: skip


@dataclass(slots=True)
class _Gathered:
    """The rates of one term of one product, which the file spreads over lines."""

    product: Product
    row: Mapping[str, str]
    rates: list[Rate] = field(default_factory=list)


def read_csv(file: BinaryIO, ref: str, tally: Tally, keep: Keep) -> OfferFile:
    """The publication date at once, the rows as they are asked for.

    keep: asked once for each product that the quoted words let pass; what it turns down is forgotten.
    Raises BadAnswer, also while rows are read.
    """
    preamble = [_line(file, ref) for _ in range(PREAMBLE_LINES)]
    published = None
    for line in preamble:
        name, value = (*_cells(line, ref), "", "")[:2]
        if name == "Publication Date":
            published = _time(value, ref)
    names = [normal(name) for name in _cells(_line(file, ref), ref)]
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        raise BadAnswer(f'{ref}: line 6 names no column "{missing[0]}"; it is no EC2 offer file')
    return OfferFile(published, _rows(file, names, ref, tally, keep))


def _cells(line: str, ref: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error as error:
        raise BadAnswer(f"{ref}: the head of the file is not CSV ({error})") from None


def _rows(file: BinaryIO, names: list[str], ref: str, tally: Tally, keep: Keep) -> Iterator[Listed]:
    gathered: dict[tuple[str, str], _Gathered] = {}
    products: dict[str, Product | None] = {}
    width = len(names)
    lines = read = 0
    for line in file:
        lines += 1
        # In the order that drops most lines soonest: half of the lines are of dedicated tenancy.
        if b'"Shared"' not in line or b'"Used"' not in line or _FAMILY not in line:
            continue
        if len(line) > _LONGEST_LINE_BYTES:
            raise BadAnswer(f"{ref}: a line of {len(line):,} bytes")
        read += 1
        try:
            cells = next(csv.reader([line.decode("utf-8", "replace")]))
        except csv.Error:
            cells = []
        if len(cells) != width:
            tally.row()
            tally.spoilt("cut off or of another width", f"line {lines + PREAMBLE_LINES + 1}")
            continue
        row = dict(zip(names, cells, strict=True))
        sku = row["sku"]
        if sku not in products:
            product = _product(row)
            products[sku] = product if keep(product) else None
        found = products[sku]
        if found is not None:
            _gather(gathered, found, row)
    tally.pass_over("other tenancy, capacity state or product", lines - read)
    for each in gathered.values():
        yield Listed(each.product, (_term(each),))


_FAMILY = f'"{FAMILY}"'.encode()


def _product(row: Mapping[str, str]) -> Product:
    # An empty cell is an attribute that the row does not have.
    attributes = {name: value for name, value in row.items() if value and name not in _NOT_ATTRIBUTES}
    return Product(row["sku"], row["productfamily"], attributes)


def _gather(gathered: dict[tuple[str, str], _Gathered], product: Product, row: Mapping[str, str]) -> None:
    key = (row["sku"], row["offertermcode"])
    found = gathered.setdefault(key, _Gathered(product, row))
    found.rates.append(
        Rate(
            code=row["ratecode"],
            unit=row["unit"],
            currency=row["currency"],
            amount=row["priceperunit"],
            begins=row.get("startingrange", ""),
            ends=row.get("endingrange", ""),
        )
    )


def _term(each: _Gathered) -> Term:
    kind: Literal["OnDemand", "Reserved"] = "Reserved" if each.row["termtype"] == "Reserved" else "OnDemand"
    return Term(
        kind=kind,
        effective=each.row.get("effectivedate") or None,
        rates=tuple(each.rates),
        length=each.row.get("leasecontractlength", ""),
        payment=each.row.get("purchaseoption", ""),
        offering_class=each.row.get("offeringclass", ""),
    )


def _line(file: BinaryIO, ref: str) -> str:
    line = file.readline(_LONGEST_LINE_BYTES)
    if not line.endswith(b"\n"):
        raise BadAnswer(f"{ref}: ends, or has no line end, within the first {PREAMBLE_LINES + 1} lines")
    return line.decode("utf-8-sig", "replace")


def _time(value: str, ref: str) -> datetime:
    try:
        return parse_time("Publication Date", value)
    except BadOffer as error:
        raise BadAnswer(f"{ref}: {error}") from None
