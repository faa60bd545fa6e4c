"""Price feeds of shops and market places: eBay-style search answers, and plain JSON or CSV lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from statistics import median_high
from typing import Any, NamedTuple

from ..errors import BadOffer, BadPriceFile
from ..offer import Availability, Offer
from . import FetchContext, source
from .answers import UnreadableRow, load_json
from .csv_rows import CsvRows
from .errors import BadAnswer, SourceError, SourceUnavailable
from .guarded_transport import guarded_transport
from .http import Http, without_query
from .page import ParseResult, RawPage, Tally
from .retail_pages import gpu_fields, read_list
from .retail_text import availability_of, condition_of, one_price, tax_of, why_not_the_item
from .settings import path_of

NAME = "retail-feeds"
NEEDS = (
    f'a list of feeds: [{NAME}] feeds = "feeds.csv" in price_sources.toml, a CSV file with the columns of '
    "the list of retail pages"
)
_LARGEST_BYTES = 5 * 2**20
_MOST_LISTINGS = 10_000


class Listing(NamedTuple):
    """One listing of a feed, as text."""

    title: str
    price: str
    currency: str
    condition: str
    availability: str
    seller: str


@source(NAME, provider="retail", needs=NEEDS)
class RetailFeeds:
    """The median of a feed's listings of one item: what sellers ask, not what is paid.

    A feed is a https address or a file: the answer of eBay's Browse search (itemSummaries), a JSON list of
    objects, or a CSV list, with title, price, currency, condition, availability, seller.
    """

    separate_pages = True

    def fetch(self, context: FetchContext) -> Iterator[RawPage]:
        """Each listed feed; one that fails comes as an empty page that says why."""
        path = path_of(context.settings.get(NAME, {}), "feeds")
        if path is None:
            raise SourceUnavailable(NEEDS)
        try:
            listed = read_list(path.read_text(encoding="utf-8-sig"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise SourceUnavailable(f"{path}, which cannot be read ({type(error).__name__})") from None
        for row in listed:
            request = {key: value for key, value in row.items() if key != "url"}
            ref = without_query(row["url"]) if "://" in row["url"] else row["url"]
            try:
                body = _body(row["url"], path.parent, context)
            except SourceUnavailable:
                raise
            except (SourceError, OSError) as error:
                body, request["failure"] = b"", " ".join(str(error).split())
            yield RawPage(body, ref=ref, request=request)

    def parse(
        self, pages: Iterable[RawPage], *, fetched_at: datetime, observed_at: datetime | None = None
    ) -> ParseResult:
        """One offer a feed. Raises BadAnswer when no feed gave one."""
        tally = Tally(NAME, limit=0.99)
        offers = []
        for page in pages:
            tally.row()
            try:
                offers.append(median_offer(page, fetched_at, observed_at or fetched_at, tally))
            except (UnreadableRow, BadAnswer) as error:
                tally.spoilt(str(error), page.ref)
                tally.warn(f"{page.ref}: {error}")
        return tally.result(offers)


def _body(address: str, folder: Any, context: FetchContext) -> bytes:
    if "://" not in address:
        with (folder / address).open("rb") as file:
            return bytes(file.read(_LARGEST_BYTES + 1))[:_LARGEST_BYTES]
    with Http(context, transport=guarded_transport(loopback=context.loopback)) as http:
        return http.get(address, limit_bytes=_LARGEST_BYTES).body


def median_offer(page: RawPage, fetched_at: datetime, observed_at: datetime, tally: Tally) -> Offer:
    """The median over the listings that are the wanted thing, with the cheapest and the dearest as its range.

    Raises UnreadableRow when none is.
    """
    wanted = page.request
    if wanted.get("failure"):
        raise UnreadableRow(wanted["failure"])
    item, kind = wanted.get("item", ""), wanted.get("kind") or "gpu_retail"
    if not item:
        raise UnreadableRow("no item was asked for")
    country = (wanted.get("region") or "us").partition("-")[0].lower()
    amounts: dict[str, list[Decimal]] = {}
    stock: set[Availability] = set()
    for listing in listings_of(page):
        try:
            amount, currency = _fits(listing, wanted, item, kind, country)
        except UnreadableRow as error:
            tally.skip(str(error))
            continue
        amounts.setdefault(currency, []).append(amount)
        stock.add(availability_of(listing.availability))
    if not amounts:
        raise UnreadableRow("no listing is the wanted thing with a price")
    currency = wanted.get("currency", "").upper() or max(sorted(amounts), key=lambda code: len(amounts[code]))
    found = sorted(amounts.get(currency, ()))
    if not found:
        raise UnreadableRow(f"no listing in {currency}")
    try:
        return Offer(
            kind=kind,  # type: ignore[arg-type]
            provider=wanted.get("provider") or "feed",
            item=item,
            region=wanted.get("region") or "us",
            contract="purchase",
            unit="each",
            condition=wanted.get("condition") or "new",  # type: ignore[arg-type]
            amount=median_high(found),
            amount_low=found[0],
            amount_high=found[-1],
            currency=currency,
            tax=tax_of(country),
            availability="in_stock" if "in_stock" in stock else "unknown",
            checked_at=fetched_at,
            sample_n=len(found),
            source=NAME,
            source_ref=page.ref,
            raw_sha256=page.sha256,
            observed_at=observed_at,
            fetched_at=fetched_at,
            quality="estimated",
            reason="what sellers ask, not what is paid",
            **gpu_fields(item, kind),
        )
    except BadOffer as error:
        raise UnreadableRow(str(error)) from None


def _fits(
    listing: Listing, wanted: Mapping[str, str], item: str, kind: str, country: str
) -> tuple[Decimal, str]:
    asked = wanted.get("condition") or "new"
    told = condition_of(listing.condition.replace(" ", "") + "Condition", listing.title)
    if told is not None and told != asked:
        raise UnreadableRow(f"{told}, not {asked}")
    reason = why_not_the_item(listing.title, item, kind, wanted.get("words", ""))
    if reason is not None:
        raise UnreadableRow(reason)
    if availability_of(listing.availability) == "out_of_stock":
        raise UnreadableRow("out of stock")
    return one_price(listing.price, country, listing.currency or None)


def listings_of(page: RawPage) -> list[Listing]:
    """The listings of a feed, whatever its form. Raises BadAnswer for what is none."""
    start = page.body[:64].lstrip(b"\xef\xbb\xbf \t\r\n")
    is_json = start[:1] in (b"{", b"[")
    rows = _json_rows(load_json(page), page.ref) if is_json else _csv_rows(page)
    if len(rows) > _MOST_LISTINGS:
        raise BadAnswer(f"{page.ref}: {len(rows):,} listings; at most {_MOST_LISTINGS:,} are read")
    return [_listing(row) for row in rows]


def _json_rows(answer: Any, ref: str) -> list[Mapping[str, Any]]:
    if isinstance(answer, Mapping):
        answer = next(
            (answer[key] for key in ("itemSummaries", "items", "products", "listings") if key in answer), None
        )
    if not isinstance(answer, list):
        raise BadAnswer(f"{ref}: no list of listings in the answer")
    return [row for row in answer if isinstance(row, Mapping)]


def _csv_rows(page: RawPage) -> list[Mapping[str, Any]]:
    try:
        reader = CsvRows(page.body.decode("utf-8-sig"), page.ref)
        names = {(name or "").strip().lower() for name in reader.names}
        if not {"title", "price"} <= names:
            raise BadAnswer(f"{page.ref}: no columns title and price")
        return [{str(key).strip().lower(): value for key, value in row.items()} for row in reader]
    except (UnicodeDecodeError, BadPriceFile) as error:
        raise BadAnswer(f"{page.ref}: neither JSON nor CSV ({type(error).__name__})") from None


def _listing(row: Mapping[str, Any]) -> Listing:
    price: Any = row.get("price")
    currency: Any = row.get("currency")
    if isinstance(price, Mapping):  # eBay: {"value": "1499.00", "currency": "USD"}
        price, currency = price.get("value"), price.get("currency")
    return Listing(
        title=_text(row.get("title") or row.get("name")),
        price=_text(price),
        currency=_text(currency).upper(),
        condition=_text(row.get("condition")),
        availability=_text(row.get("availability")),
        seller=_text(row.get("seller")),
    )


def _text(value: object) -> str:
    return str(value)[:300].strip() if isinstance(value, str | int | Decimal) else ""
