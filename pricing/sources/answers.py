"""Reading what sellers send: JSON and numbers as text, with everything odd refused by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, NoReturn

from ..checks import _CURRENCIES as CURRENCIES
from ..errors import BadOffer
from ..offer import parse_decimal, parse_time
from .errors import BadAnswer
from .page import RawPage

# Longer "numbers" are typing errors or attacks: Python refuses an int of 4,300 digits with an exception of
# another kind, and int(Decimal("1e999999")) takes a minute.
_LONGEST_NUMBER = 30


class UnreadableRow(ValueError):
    """One row of an answer does not read; the message is the reason it is counted under."""


def load_json(page: RawPage) -> Any:
    """The page's JSON, numbers with a point as Decimal. Raises BadAnswer, saying what came instead."""
    return parse_json(page.body, page.ref)


def parse_json(body: bytes | str, ref: str) -> Any:
    """JSON from bytes or text, numbers with a point as Decimal. Raises BadAnswer.

    >>> parse_json('{"retailPrice": 3.349088}', "an example")
    {'retailPrice': Decimal('3.349088')}
    """
    try:
        return json.loads(body, parse_float=_decimal, parse_int=_integer, parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise BadAnswer(f"{ref}: not UTF-8") from None
    except RecursionError:
        raise BadAnswer(f"{ref}: JSON nested too deeply to be an answer") from None
    except ValueError as error:
        start = body[:80]
        text = start.decode("utf-8", "replace") if isinstance(start, bytes) else start
        kind = "HTML" if text.lstrip().startswith("<") else "not whole JSON"
        raise BadAnswer(f"{ref}: {kind} ({error}); it begins with {text!r}") from None


def member(value: object, name: str, kind: type[Any], ref: str) -> Any:
    """A member of an answer's top object. Raises BadAnswer when it is missing or of another kind."""
    found = value.get(name) if isinstance(value, Mapping) else None
    if not isinstance(found, kind):
        raise BadAnswer(f'{ref}: no "{name}" in the answer; the format may have changed')
    return found


def row_of(value: object) -> Mapping[str, Any]:
    """A row, which must be an object. Raises UnreadableRow."""
    if not isinstance(value, Mapping):
        raise UnreadableRow("a row that is no object")
    return value


def part_of(row: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object inside a row; empty when it is missing. Raises UnreadableRow for another kind of value."""
    value = row.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UnreadableRow(f"{name} is no object")
    return value


def parts_of(row: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The objects in a list inside a row; none when it is missing. Raises UnreadableRow."""
    value = row.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise UnreadableRow(f"{name} is no list")
    return [row_of(each) for each in value]


def text_of(row: Mapping[str, Any], name: str) -> str:
    """A text that must be there. Raises UnreadableRow."""
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise UnreadableRow(f"no {name}")
    return value.strip()


def money_of(value: object, name: str) -> Decimal:
    """An amount, zero included; the caller decides what zero means there. Raises UnreadableRow.

    value: text or a number of `parse_json`; a float is refused, its digits are lost.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise UnreadableRow(f"no {name}")
    try:
        amount = value if isinstance(value, Decimal) else parse_decimal(name, value)
    except BadOffer:
        raise UnreadableRow(f"{name} is not a number") from None
    if not amount.is_finite() or amount < 0 or (amount and not -12 <= amount.adjusted() <= 12):
        raise UnreadableRow(f"{name} is no plausible amount")
    return amount


def currency_of(code: object) -> str:
    """An ISO 4217 code that the checks know. Raises UnreadableRow."""
    if not isinstance(code, str) or code not in CURRENCIES:
        raise UnreadableRow("unknown currency")
    return code


def time_of(value: object, name: str) -> datetime:
    """An instant in UTC. Raises UnreadableRow."""
    try:
        return parse_time(name, value if isinstance(value, str) else "")
    except BadOffer:
        raise UnreadableRow(f"{name} is no time") from None


def _decimal(text: str) -> Decimal:
    _check_length(text)
    return Decimal(text)


def _integer(text: str) -> int:
    _check_length(text)
    return int(text)


def _check_length(text: str) -> None:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError(f"a number of {len(text)} characters")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
