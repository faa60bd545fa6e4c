"""The instances file of Vantage's ec2instances.info: EC2 types with prices by region and system, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from ..errors import BadOffer, BadPriceFile
from ..import_files import FileResult
from ..offer import Offer
from .answers import UnreadableRow, load_json, money_of
from .aws_shapes import known_gpus
from .errors import BadAnswer
from .page import RawPage, Tally

NAME = "vantage-instances"
FORM = "vantage-json"
# What a term's key means: contract, months, payment. Convertible terms and partial upfront are left out: the
# first cannot be told from standard ones by an Offer, of the second the file gives a blend without the fee.
_TERMS = {
    "yrTerm1Standard.noUpfront": ("reserved_1y", 12, "none"),
    "yrTerm1Standard.allUpfront": ("reserved_1y", 12, "all_upfront"),
    "yrTerm3Standard.noUpfront": ("reserved_3y", 36, "none"),
    "yrTerm3Standard.allUpfront": ("reserved_3y", 36, "all_upfront"),
}
# The file writes this where a price is not known.
_UNKNOWN = frozenset({"", "N/A", "unavailable", "0", "0.0"})


def looks_like(head: str) -> bool:
    """Whether a file begins as a list of Vantage's instances."""
    return head.lstrip().startswith("[") and '"' in head and ("instance_type" in head or "pricing" in head)


def read_file(page: RawPage, fetched_at: datetime, observed_at: datetime | None) -> FileResult:
    """On-demand, spot and reserved offers of Linux machines with GPUs. Raises BadPriceFile without a date."""
    if observed_at is None:
        raise BadPriceFile(f"{page.ref}: this form says no date; say when it held: --observed-at 2026-11-30")
    tally = Tally(NAME, limit=1.0)
    bad: list[tuple[str, str]] = []
    offers: list[Offer] = []
    try:
        rows = load_json(page)
    except BadAnswer as error:
        raise BadPriceFile(str(error)) from None
    if not isinstance(rows, list):
        raise BadPriceFile(f"{page.ref}: a list of instances is meant")
    for number, row in enumerate(rows, start=1):
        tally.row()
        try:
            offers += _instance(row, page, fetched_at, observed_at, tally)
        except UnreadableRow as error:
            bad.append((str(number), str(error)))
    return FileResult(FORM, tuple(offers), dict(tally.skipped), tuple(bad))


def _instance(
    row: object, page: RawPage, fetched_at: datetime, observed_at: datetime, tally: Tally
) -> Iterator[Offer]:
    if not isinstance(row, Mapping) or not isinstance(row.get("instance_type"), str):
        raise UnreadableRow("no instance_type")
    gpus = known_gpus().get(row["instance_type"])
    if gpus is None:
        tally.skip("no GPU, or an instance type not known here")
        return
    for region, systems in _items(row.get("pricing")):
        prices = systems.get("linux") if isinstance(systems, Mapping) else None
        if not isinstance(prices, Mapping):
            tally.skip("no Linux price in a region")
            continue
        plain: dict[str, Any] = {
            "kind": "cloud_instance",
            "provider": "aws",
            "item": row["instance_type"],
            "region": region,
            "unit": "instance_hour",
            "os": "linux",
            "tenancy": "shared",
            "currency": "USD",
            "tax": "excluded",
            "source": NAME,
            "source_ref": page.ref,
            "raw_sha256": page.sha256,
            "observed_at": observed_at,
            "fetched_at": fetched_at,
            **gpus.fields(),
        }
        try:
            yield from _prices(prices, plain, tally)
        except BadOffer as error:
            raise UnreadableRow(str(error)) from None


def _prices(prices: Mapping[str, Any], plain: dict[str, Any], tally: Tally) -> Iterator[Offer]:
    on_demand = _amount(prices.get("ondemand"))
    if on_demand is None:
        tally.skip("no on-demand price")
    else:
        yield Offer(contract="on_demand", amount=on_demand, **plain)
    mean = _amount(prices.get("spot_avg"))
    if mean is not None:
        low, high = _amount(prices.get("spot_min")), _amount(prices.get("spot_max"))
        if low is None or high is None or not low <= mean <= high:
            low = high = None
        yield Offer(
            contract="spot",
            amount=mean,
            amount_low=low,
            amount_high=high,
            note="mean over zones and time",
            **plain,
        )
    elif _amount(prices.get("spot_min")) is not None:
        tally.skip("a spot minimum without its mean")
    for term, value in _items(prices.get("reserved")):
        amount = _amount(value)
        if term not in _TERMS or amount is None:
            tally.skip("a term that is convertible, partly upfront or without a price")
            continue
        contract, months, payment = _TERMS[term]
        note = "effective hourly rate of the whole term" + (", paid in advance" * (payment == "all_upfront"))
        yield Offer(
            contract=contract,  # type: ignore[arg-type]
            term_months=months,
            payment=payment,  # type: ignore[arg-type]
            amount=amount,
            note=note,
            **plain,
        )


def _amount(value: object) -> Decimal | None:
    if value is None or str(value).strip() in _UNKNOWN:
        return None
    return money_of(value, "a price") or None


def _items(value: object) -> list[tuple[str, Any]]:
    return [(str(key), each) for key, each in value.items()] if isinstance(value, Mapping) else []
