"""Azure's Retail Prices API: public, paged, one row a meter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from ..errors import BadOffer
from ..offer import Offer
from . import FetchContext, source
from .answers import UnreadableRow, currency_of, load_json, member, row_of, text_of, time_of
from .azure_rows import REGION, TYPE, Price, Size, effective_hourly, feed_names, left_out, prices, size_of
from .errors import AmbiguousRows, BadAnswer
from .http import Http, same_server
from .page import ParseResult, RawPage, Tally

NAME = "azure-retail"
_ADDRESS = "https://prices.azure.com/api/retail/prices"
# The preview version lists savings-plan rates as well; its filter values are case-sensitive.
_VERSION = "2023-01-01-preview"
DEFAULT_REGIONS = ("eastus",)
# A region has about 4,000 rows of virtual machines, 100 to 1,000 a page; only sizes with GPUs are asked for.
_MOST_PAGES = 1000
_SIZES_PER_QUESTION = 15


@source(NAME, provider="azure")
class AzureRetail:
    """Retail prices of sizes with GPUs: pay-as-you-go, spot, reservations and savings plans, without account.

    Regions: eastus unless others are asked for. A reservation's fee for the term is `upfront`.
    """

    def fetch(self, context: FetchContext) -> Iterator[RawPage]:
        """Every page of the feed for the wanted sizes in each region. Raises SourceFailed, BadAnswer."""
        names = _feed_names(context.types_of(TYPE, feed_names()))
        address = context.base_urls.get(NAME, _ADDRESS)
        with Http(context) as http:
            for region in context.regions_of(REGION, DEFAULT_REGIONS):
                for sizes in _batches(names):
                    yield from _pages(http, address, odata_filter(region, sizes), {"region": region})

    def parse(
        self, pages: Iterable[RawPage], *, fetched_at: datetime, observed_at: datetime | None = None
    ) -> ParseResult:
        """One offer per size, region, system and contract. Raises AmbiguousRows, BadAnswer."""
        tally = Tally(NAME)
        found: dict[str, list[Offer]] = {}
        for page in pages:
            for row in member(load_json(page), "Items", list, page.ref):
                tally.row()
                try:
                    for offer in _offers(row_of(row), page, tally, observed_at or fetched_at, fetched_at):
                        found.setdefault(offer.price_id, []).append(offer)
                except (UnreadableRow, BadOffer) as error:
                    tally.spoilt(str(error).partition(" of ")[0], str(row))
        return tally.result([_one(offers, tally) for offers in found.values()])


def odata_filter(region: str, sizes: Iterable[str]) -> str:
    """The question in OData.

    >>> odata_filter("eastus", ["Standard_ND96asr_v4"])[:75]
    "serviceName eq 'Virtual Machines' and armRegionName eq 'eastus' and (armSku"
    """
    named = " or ".join(f"armSkuName eq '{_quoted(size)}'" for size in sizes)
    return f"serviceName eq 'Virtual Machines' and armRegionName eq '{_quoted(region)}' and ({named})"


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def _feed_names(wanted: Iterable[str]) -> list[str]:
    """Every name under which the feed may list the wanted sizes; a name that nobody knows is left out."""
    sizes = {size_of(name) for name in wanted}
    return sorted(name for name, size in feed_names().items() if size in sizes)


def _batches(names: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(names), _SIZES_PER_QUESTION):
        yield names[start : start + _SIZES_PER_QUESTION]


def _pages(http: Http, address: str, question: str, request: Mapping[str, str]) -> Iterator[RawPage]:
    """Pages until one names no next one. Raises BadAnswer for a link that repeats or leads elsewhere."""
    params: dict[str, str] | None = {
        "api-version": _VERSION,
        "meterRegion": "'primary'",
        "$filter": question,
    }
    url, seen = address, {address}
    for _ in range(_MOST_PAGES):
        answer = http.get(url, params=params)
        page = RawPage(answer.body, ref=answer.ref, request=request)
        following = _next_link(page)
        yield page
        if following is None:
            return
        if following in seen:
            raise BadAnswer(f"{page.ref}: page {len(seen)} links to a page that was read; stopped")
        if not same_server(following, address):
            raise BadAnswer(f"{page.ref}: the next page is said to be on another host; stopped")
        seen.add(following)
        # The link holds the whole question.
        url, params = following, None
    raise BadAnswer(f"{address}: more than {_MOST_PAGES:,} pages; stopped")


def _next_link(page: RawPage) -> str | None:
    answer = load_json(page)
    member(answer, "Items", list, page.ref)
    following = answer.get("NextPageLink")
    return following if isinstance(following, str) and following else None


def _offers(
    row: Mapping[str, Any], page: RawPage, tally: Tally, observed_at: datetime, fetched_at: datetime
) -> Iterator[Offer]:
    reason, size = left_out(row, observed_at), size_of(row.get("armSkuName"))
    if reason is not None or size is None:
        tally.skip(reason or "unknown size")
        return
    for price in prices(row):
        yield _offer(row, size, price, page, observed_at, fetched_at)


def _offer(
    row: Mapping[str, Any],
    size: Size,
    price: Price,
    page: RawPage,
    observed_at: datetime,
    fetched_at: datetime,
) -> Offer:
    start = row.get("effectiveStartDate")
    return Offer(
        kind="cloud_instance",
        provider="azure",
        item=size.name,
        region=text_of(row, "armRegionName"),
        contract=price.contract,
        term_months=price.term_months,
        payment=price.payment,
        os=price.os,
        tenancy="shared",
        unit="instance_hour",
        amount=price.amount,
        upfront=price.upfront,
        currency=currency_of(row.get("currencyCode")),
        tax="excluded",
        sku=text_of(row, "skuId"),
        source=NAME,
        source_ref=page.ref,
        raw_sha256=page.sha256,
        valid_from=time_of(start, "effectiveStartDate") if start else None,
        observed_at=observed_at,
        fetched_at=fetched_at,
        note=_note(price),
        **size.fields(),
    )


def _note(price: Price) -> str | None:
    if price.upfront is not None and price.term_months is not None:
        return f"fee for the whole term, {effective_hourly(price.upfront, price.term_months)} an hour"
    if price.amount is None:
        return "the feed says 0, which is no price"
    # The feed's spot price has been seen at a sixth of what the portal showed.
    return "spot by the retail feed; the portal may show another" if price.contract == "spot" else None


def _one(offers: list[Offer], tally: Tally) -> Offer:
    """Of rows for one price (aliases, placeholders at 0) the one; several that differ are refused."""
    known = [offer for offer in offers if offer.amount is not None or offer.upfront is not None]
    if len(offers) > 1:
        tally.skip("repeated: an alias, or 0 beside a price", len(offers) - 1)
    if not known:
        return offers[0]
    if len({(offer.amount, offer.upfront) for offer in known}) > 1:
        ids = ", ".join(f"{offer.sku} ({offer.amount or offer.upfront})" for offer in known)
        raise AmbiguousRows(
            f"{len(known)} rows are left for {known[0].where}, {known[0].os}: {ids}. "
            "Exactly one is meant, and none is picked."
        )
    return known[0]
