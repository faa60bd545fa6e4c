"""What a shop's words mean: a price text, a state of stock, a title that is not the thing itself."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Literal

from ..checks import _CURRENCIES as CURRENCIES
from ..offer import Availability, Condition, Tax
from .answers import UnreadableRow
from .errors import SourceUnavailable

PACKAGE = "extruct and price-parser: pip install 'training-planner[retail]'"
# A "$" or "kr" is several currencies; the seller's country tells which.
_DOLLARS = {"us": "USD", "ca": "CAD", "au": "AUD", "nz": "NZD", "sg": "SGD", "hk": "HKD", "mx": "MXN"}
_KRONER = {"dk": "DKK", "no": "NOK", "se": "SEK"}
_SIGNS = {
    "US$": "USD", "€": "EUR", "£": "GBP", "zł": "PLN", "Kč": "CZK", "Ft": "HUF", "₹": "INR", "₩": "KRW",
    "R$": "BRL", "CHF": "CHF", "₺": "TRY", "₪": "ILS", "₫": "VND", "฿": "THB", "руб.": "RUB", "₽": "RUB",
    "грн.": "UAH", "грн": "UAH", "C$": "CAD", "CA$": "CAD", "A$": "AUD", "AU$": "AUD", "NZ$": "NZD",
    "S$": "SGD", "HK$": "HKD",
}  # fmt: skip
_EURO_AREA = frozenset({
    "at", "be", "cy", "de", "ee", "es", "fi", "fr", "gr", "hr", "ie", "it", "lt", "lu", "lv", "mt", "nl",
    "pt", "si", "sk",
})  # fmt: skip
_TAX_INCLUDED = _EURO_AREA | {
    "uk", "gb", "pl", "cz", "se", "dk", "no", "ch", "hu", "ro", "bg", "au", "nz", "eu",
}  # fmt: skip
_TAX_EXCLUDED = frozenset({"us", "ca"})
# Where a comma marks the decimals, so that "1.599" is a thousand and more.
_COMMA_CURRENCIES = frozenset({
    "EUR", "PLN", "CZK", "HUF", "SEK", "NOK", "DKK", "BRL", "TRY", "RUB", "UAH", "RON", "BGN", "IDR", "VND",
    "ARS", "CLP", "COP",
})  # fmt: skip
# Currencies of a thousand parts (ISO 4217): "423.923 KD" has three decimals.
_THOUSANDTHS = re.compile(r"\b(KD|KWD|OMR|BD|BHD|JD|JOD|DT|TND|LD|LYD|IQD)\b")
_ONE_POINT_THREE_DIGITS = re.compile(r"(?<![\d.,])\d{1,3}\.\d{3}(?![\d.,])")
_NUMBER = re.compile(r"\d[\d.,'\s]*")
# Words that turn a number into something else than the price.
_NOT_A_PRICE = re.compile(
    r"\b(from|ab|starting at|as low as|up to|call|on request|auf anfrage|per month|/mo|monthly)\b", re.I
)
_RANGE = re.compile(r"\d\s*(?:-|–|—|\bto\b|\bbis\b)\s*\D{0,3}\d", re.I)
_OTHER_GOODS = re.compile(
    r"\b(laptop|notebook|gaming pc|desktop pc|prebuilt|workstation pc|bundle|combo|water ?block|backplate|"
    r"waterkühler|bracket|riser|box only|empty box|for parts|defekt|broken|sticker|fan replacement)\b",
    re.I,
)
_REFURBISHED = re.compile(r"\b(refurbished|renewed|generalüberholt|recertified|reconditionné)\b", re.I)
_USED = re.compile(r"\b(used|gebraucht|pre-owned|preowned|occasion)\b", re.I)
_MODIFIED_MEMORY = re.compile(r"\b(\d{2,3})\s?GB\b", re.I)


def parse_price_text(text: str, currency_hint: str | None = None) -> tuple[Decimal | None, str | None]:
    """The first amount and currency sign of a text, as price-parser reads them.

    >>> parse_price_text("€ 1.599,00")
    (Decimal('1599.00'), '€')
    """
    try:
        from price_parser import Price
    except ImportError:
        raise SourceUnavailable(PACKAGE) from None
    point = "." if _THOUSANDTHS.search(f"{text} {currency_hint or ''}") else None
    found = Price.fromstring(text, currency_hint=currency_hint, decimal_separator=point)
    return found.amount, found.currency


def one_price(text: str, country: str, currency: str | None = None) -> tuple[Decimal, str]:
    """The one price that a text states, and its ISO currency.

    country: of the seller, "us" or "de"; tells dollars and crowns apart. currency: stated beside the text.
    Raises UnreadableRow for a range, a lower bound, two currencies, or a text that can be read two ways.
    """
    if _NOT_A_PRICE.search(text) or _RANGE.search(text):
        raise UnreadableRow("a range or a lower bound, not a price")
    signs = {sign for sign in ("€", "$", "£", "zł") if sign in text}
    numbers = _NUMBER.findall(text)
    if len(signs) > 1 or (len(numbers) > 1 and any(text.count(sign) > 1 for sign in signs)):
        raise UnreadableRow("two prices in one text")
    stated = currency.strip().upper() if currency else None
    if stated is not None and stated not in CURRENCIES:
        raise UnreadableRow("unknown currency")
    amount, sign = parse_price_text(text, currency)
    if amount is None:
        raise UnreadableRow("no price")
    said = currency_of_sign(sign, country) if sign and sign.upper() != stated else None
    if stated is not None and sign is not None and said not in (None, stated) and sign in text:
        raise UnreadableRow("two currencies")
    code = stated or said
    if code is None:
        raise UnreadableRow("no currency")
    if _ONE_POINT_THREE_DIGITS.search(text) and code not in _COMMA_CURRENCIES:
        raise UnreadableRow("a number that can be read as a thousand or as decimals")
    if not 0 < amount < 10**9:
        raise UnreadableRow("no plausible price")
    return amount, code


def currency_of_sign(sign: str, country: str) -> str | None:
    """ISO code of a sign in a country; None when that does not tell.

    >>> currency_of_sign("$", "ca"), currency_of_sign("kr", "se"), currency_of_sign("$", "xx")
    ('CAD', 'SEK', None)
    """
    if sign.upper() in CURRENCIES:
        return sign.upper()
    if sign == "$":
        return _DOLLARS.get(country)
    if sign.lower().rstrip(".") == "kr":
        return _KRONER.get(country)
    return _SIGNS.get(sign)


def tax_of(country: str) -> Tax:
    """Whether prices shown to buyers of a country hold its sales tax: not in the US, always in Europe."""
    if country in _TAX_EXCLUDED:
        return "excluded"
    return "included" if country in _TAX_INCLUDED else "unknown"


def availability_of(text: object) -> Availability:
    """schema.org's ItemAvailability as our word."""
    name = str(text or "").strip().rpartition("/")[2].lower()
    if name in ("instock", "onlineonly", "instoreonly", "limitedavailability"):
        return "in_stock"
    if name in ("outofstock", "soldout", "discontinued"):
        return "out_of_stock"
    return "listed_only" if name in ("preorder", "presale", "backorder", "madetoorder") else "unknown"


def condition_of(text: object, title: str) -> Condition | None:
    """Condition by schema.org's OfferItemCondition or by words of the title; None when neither says."""
    name = str(text or "").strip().rpartition("/")[2].lower()
    told: dict[str, Condition] = {
        "newcondition": "new", "refurbishedcondition": "refurbished", "usedcondition": "used",
        "damagedcondition": "used",
    }  # fmt: skip
    if _REFURBISHED.search(title):
        return "refurbished"
    if _USED.search(title):
        return "used"
    return told.get(name)


def why_not_the_item(title: str, item: str, kind: str, words: str) -> str | None:
    """Why a listing is not the wanted thing itself; None when it may be.

    words: what the title must hold, as the user wrote them beside the page.
    """
    lower = title.lower()
    missing = [word for word in words.lower().split() if word not in lower]
    if missing:
        return f'the title lacks "{missing[0]}"'
    if kind != "gpu_retail":
        return None
    if _OTHER_GOODS.search(title):
        return "a bundle, a computer or an accessory"
    memory = re.search(r"-(\d+)gb$", item)
    stated = {int(found) for found in _MODIFIED_MEMORY.findall(title)}
    if memory and stated and int(memory[1]) not in stated:
        return "another amount of memory"
    return None


Goods = Literal["gpu_retail", "part_retail", "system_retail", "resale"]
