"""Prices of cards, parts and systems on pages that the user lists: schema.org Product and Offer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from ..errors import BadOffer, BadPriceFile
from ..offer import Offer
from . import FetchContext, source
from .answers import UnreadableRow
from .csv_rows import CsvRows
from .errors import SourceError, SourceFailed, SourceUnavailable
from .guarded_transport import guarded_transport
from .http import Http, without_query
from .page import ParseResult, RawPage, Tally
from .retail_text import (
    PACKAGE,
    availability_of,
    condition_of,
    one_price,
    tax_of,
    why_not_the_item,
)
from .settings import path_of

NAME = "retail-pages"
COLUMNS = ("url", "item", "kind", "region", "condition", "provider", "currency", "words")
NEEDS = (
    f'a list of pages: [{NAME}] pages = "pages.csv" in price_sources.toml, a CSV file with the columns '
    f"{', '.join(COLUMNS)}"
)
# A product page is below 1 MiB; one that is larger or slower is not read to its end.
_LARGEST_BYTES = 5 * 2**20
_SECONDS_A_PAGE = 20.0
_LONGEST_LIST = 500
# Shops write trailing commas and raw line ends into their JSON (extruct#53, #84, #174, #198).
_SCRIPT = re.compile(r"(<script[^>]*application/ld\+json[^>]*>)(.*?)(</script>)", re.S | re.I)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_CONTROL = re.compile(r"[\x00-\x1f]+")


@source(NAME, provider="retail", needs=NEEDS)
class RetailPages:
    """Prices on product pages of shops, from a list of pages that the user keeps.

    Only https, only public addresses, at most three redirects. A page that fails or shows something else than
    the item is counted and named; the others go on. What a site's terms allow is for the user to know.
    """

    # One page is one shop: that one is missing says nothing on the rest.
    separate_pages = True

    def fetch(self, context: FetchContext) -> Iterator[RawPage]:
        """Each listed page; one that fails comes as an empty page that says why."""
        settings = context.settings.get(NAME, {})
        path = path_of(settings, "pages")
        if path is None:
            raise SourceUnavailable(NEEDS)
        try:
            listed = read_list(path.read_text(encoding="utf-8-sig"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise SourceUnavailable(f"{path}, which cannot be read ({type(error).__name__})") from None
        for row in listed:
            yield _page(row, context)

    def parse(
        self, pages: Iterable[RawPage], *, fetched_at: datetime, observed_at: datetime | None = None
    ) -> ParseResult:
        """One offer a page. Raises BadAnswer when no page gave one."""
        tally = Tally(NAME, limit=0.99)
        offers = []
        for page in pages:
            tally.row()
            try:
                offers.append(offer_on(page, fetched_at, observed_at or fetched_at))
            except UnreadableRow as error:
                tally.spoilt(str(error), page.ref)
                tally.warn(f"{page.ref}: {error}")
        return tally.result(offers)


def read_list(text: str, name: str) -> list[dict[str, str]]:
    """The list of pages. Raises BadPriceFile, naming row and column."""
    reader = CsvRows(text, name)
    header = set(reader.names)
    missing = [column for column in ("url", "item") if column not in header]
    if missing or header - set(COLUMNS):
        wrong = missing[0] if missing else sorted(header - set(COLUMNS))[0]
        raise BadPriceFile(f'{name}, row 1: column "{wrong}"; the columns are {", ".join(COLUMNS)}')
    rows = []
    for row in reader:
        found = {key: (value or "").strip() for key, value in row.items() if key in COLUMNS}
        if not found["url"] or not found["item"]:
            raise BadPriceFile(f"{name}, row {reader.line}: url and item are needed")
        rows.append(found)
    if len(rows) > _LONGEST_LIST:
        raise BadPriceFile(f"{name}: {len(rows)} pages; at most {_LONGEST_LIST} are asked for one by one")
    return rows


def _page(row: dict[str, str], context: FetchContext) -> RawPage:
    url = row["url"]
    request = {key: value for key, value in row.items() if key != "url"}
    request.setdefault("provider", "")
    request["provider"] = request["provider"] or (urlsplit(url).hostname or "shop").removeprefix("www.")
    patience = replace(context, deadline_seconds=min(_SECONDS_A_PAGE, context.deadline_seconds))
    try:
        with Http(patience, transport=guarded_transport(loopback=context.loopback)) as http:
            body = http.get(url, headers={"Accept": "text/html"}, limit_bytes=_LARGEST_BYTES).body
    except SourceUnavailable:
        raise
    except SourceError as error:
        reason = str(error).removeprefix(without_query(url)).lstrip(": ")
        return RawPage(b"", ref=without_query(url), request={**request, "failure": reason})
    return RawPage(body, ref=without_query(url), request=request)


# --- one page


@dataclass(frozen=True, slots=True)
class _Listing:
    """A product with one of its offers, as the page has them."""

    product: Mapping[str, Any]
    offer: Mapping[str, Any]

    @property
    def title(self) -> str:
        return _text(self.product.get("name")) or ""


def offer_on(page: RawPage, fetched_at: datetime, observed_at: datetime) -> Offer:
    """The offer of the wanted item on a page. Raises UnreadableRow with the reason why there is none.

    A page that names the product and no price gives an offer of unknown amount: that it is not known is news.
    """
    wanted = page.request
    if wanted.get("failure"):
        raise UnreadableRow(wanted["failure"])
    item = wanted.get("item", "")
    if not item:
        raise UnreadableRow("no item was asked for")
    listing = _the_listing(_listings(page), item, wanted)
    country = (wanted.get("region") or "us").partition("-")[0].lower()
    amount, low, high, currency, note = _amounts(listing.offer, country, wanted.get("currency") or None)
    availability = availability_of(listing.offer.get("availability"))
    out = amount is not None and availability == "out_of_stock"
    quality, reason = ("stale", "out of stock: a price nobody can pay now") if out else ("ok", None)
    if low is not None and low != high:
        quality, reason = "estimated", "the middle of a published range"
    try:
        return Offer(
            kind=wanted.get("kind") or "gpu_retail",  # type: ignore[arg-type]
            provider=wanted.get("provider") or "shop",
            item=item,
            region=wanted.get("region") or "us",
            contract="purchase",
            unit="each",
            condition=_condition(listing, wanted),  # type: ignore[arg-type]
            amount=amount,
            amount_low=low,
            amount_high=high,
            currency=currency,
            tax=_tax(listing.offer, country),  # type: ignore[arg-type]
            availability=availability,
            checked_at=fetched_at,
            sku=_text(listing.product.get("sku") or listing.product.get("mpn")),
            source=NAME,
            source_ref=page.ref,
            observed_at=observed_at,
            fetched_at=fetched_at,
            raw_sha256=page.sha256,
            quality=quality,  # type: ignore[arg-type]
            reason=reason,
            note=note,
            **gpu_fields(item, wanted.get("kind") or "gpu_retail"),
        )
    except BadOffer as error:
        raise UnreadableRow(str(error)) from None


def gpu_fields(item: str, kind: str) -> dict[str, Any]:
    """What our id of a card says of it: memory and form."""
    memory = re.search(r"-(\d{1,4})gb$", item)
    if kind not in ("gpu_retail", "resale") or memory is None:
        return {}
    form = "sxm" if "-sxm" in item else "nvl" if "-nvl" in item else "pcie"
    return {"gpu_model": item, "gpu_count": 1, "gpu_mem_mib": int(memory[1]) * 1024, "gpu_form": form}


def _the_listing(listings: list[_Listing], item: str, wanted: Mapping[str, str]) -> _Listing:
    """The one listing that is the wanted thing. Raises UnreadableRow when none is, or several differ."""
    if not listings:
        raise UnreadableRow("no schema.org product with an offer on the page")
    kind, words = wanted.get("kind") or "gpu_retail", wanted.get("words", "")
    why = [why_not_the_item(listing.title, item, kind, words) for listing in listings]
    fitting = [listing for listing, reason in zip(listings, why, strict=True) if reason is None]
    if not fitting:
        raise UnreadableRow(next(reason for reason in why if reason))
    prices = {(str(each.offer.get("price")), str(each.offer.get("priceCurrency"))) for each in fitting}
    if len(prices) > 1:
        raise UnreadableRow(f"{len(fitting)} products fit; add words of the title to the list")
    return fitting[0]


def _condition(listing: _Listing, wanted: Mapping[str, str]) -> str:
    asked = wanted.get("condition") or "new"
    told = condition_of(listing.offer.get("itemCondition"), listing.title)
    if told is not None and told != asked:
        raise UnreadableRow(f"{told}, not {asked}")
    return asked


def _tax(offer: Mapping[str, Any], country: str) -> str:
    specification = offer.get("priceSpecification")
    for each in specification if isinstance(specification, list) else [specification]:
        included = each.get("valueAddedTaxIncluded") if isinstance(each, Mapping) else None
        if isinstance(included, bool) or str(included).lower() in ("true", "false"):
            return "included" if str(included).lower() == "true" else "excluded"
    return tax_of(country)


def _amounts(
    offer: Mapping[str, Any], country: str, asked_currency: str | None
) -> tuple[Decimal | None, Decimal | None, Decimal | None, str, str | None]:
    """Amount, both ends of a range, currency, note. Raises UnreadableRow for what is no single price."""
    offer = _with_specification(offer)
    currency = _text(offer.get("priceCurrency")) or asked_currency
    price = _number_text(offer.get("price"))
    low, high = _number_text(offer.get("lowPrice")), _number_text(offer.get("highPrice"))
    if price is None and low is not None and high is None and str(offer.get("offerCount")) == "1":
        price = low
    if price is not None:
        amount, code = one_price(price, country, currency)
        return amount, None, None, _as_asked(code, asked_currency), None
    if low is not None and high is not None:
        (least, code), (most, _) = one_price(low, country, currency), one_price(high, country, currency)
        middle = (least + most) / 2
        return middle, least, most, _as_asked(code, asked_currency), "several sellers on one page"
    if low is not None:
        raise UnreadableRow("a lower bound, not a price")
    if currency is None:
        raise UnreadableRow("no price and no currency")
    return None, None, None, _as_asked(currency.upper(), asked_currency), "the page shows no price"


def _as_asked(code: str, asked: str | None) -> str:
    if asked is not None and code != asked.upper():
        raise UnreadableRow(f"in {code}, not in {asked.upper()}")
    return code


def _with_specification(offer: Mapping[str, Any]) -> Mapping[str, Any]:
    specification = offer.get("priceSpecification")
    first = specification[0] if isinstance(specification, list) and specification else specification
    if offer.get("price") is None and isinstance(first, Mapping):
        return {**offer, **{key: first.get(key) for key in ("price", "priceCurrency") if first.get(key)}}
    return offer


# --- reading schema.org


def _listings(page: RawPage) -> list[_Listing]:
    """Every product of the page with each of its offers, from JSON-LD, else from microdata."""
    try:
        import extruct  # type: ignore[import-untyped]
        from lxml.etree import ParserError  # type: ignore[import-untyped]
    except ImportError:
        raise SourceUnavailable(PACKAGE) from None
    text = _SCRIPT.sub(_mended, page.body.decode("utf-8", "replace").replace("\x00", ""))
    if "<" not in text:
        raise UnreadableRow("not a web page")
    try:
        found = extruct.extract(text, syntaxes=["json-ld", "microdata"], errors="ignore", uniform=True)
    except (ParserError, ValueError, RecursionError) as error:
        raise UnreadableRow(f"a page that does not read ({type(error).__name__})") from None
    for syntax in ("json-ld", "microdata"):
        products = [each for root in found.get(syntax, ()) for each in _products(root, 0)]
        listings = [_Listing(product, offer) for product in products for offer in _offers(product)]
        if listings:
            return listings
    return []


def _mended(match: re.Match[str]) -> str:
    """A script of JSON-LD as it was meant; one that does not read goes, or it would take the others along."""
    body = _TRAILING_COMMA.sub(r"\1", _CONTROL.sub(" ", match[2]))
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        # Comments, as some shops have them, are extruct's to remove.
        return match[0] if "//" in body or "/*" in body or "<!--" in body else ""
    return match[1] + body + match[3]


def _products(value: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    """Products anywhere under @graph, mainEntity and lists. Not under "related": those are other things."""
    if depth > 6:
        return
    if isinstance(value, list):
        for each in value:
            yield from _products(each, depth + 1)
    elif isinstance(value, Mapping):
        if "Product" in _types(value):
            yield value
        for key in ("@graph", "mainEntity", "hasVariant", "itemListElement", "item"):
            if key in value:
                yield from _products(value[key], depth + 1)


def _offers(product: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    offers = product.get("offers")
    for each in offers if isinstance(offers, list) else [offers]:
        if not isinstance(each, Mapping):
            continue
        inner = each.get("offers")
        single = [part for part in inner if isinstance(part, Mapping)] if isinstance(inner, list) else []
        # An aggregate that lists one offer is that offer.
        yield single[0] if len(single) == 1 else each


def _types(value: Mapping[str, Any]) -> set[str]:
    types = value.get("@type")
    names = types if isinstance(types, list) else [types]
    return {str(name).rpartition("/")[2] for name in names}


def _text(value: Any) -> str | None:
    if isinstance(value, list):
        value = value[0] if value else None
    if not isinstance(value, str | int):
        return None
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in str(value)).split())
    return text[:200] or None


def _number_text(value: Any) -> str | None:
    """A price as text; a float of the JSON reader is written as short as it was read."""
    if isinstance(value, bool):
        return None
    return repr(value) if isinstance(value, float) else _text(value)


__all__ = ["COLUMNS", "NAME", "RetailPages", "SourceFailed", "offer_on", "read_list"]
