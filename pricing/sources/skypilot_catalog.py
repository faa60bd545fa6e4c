"""SkyPilot's price catalogue: one CSV file a cloud, kept by that project."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from ..errors import BadOffer, BadPriceFile
from ..import_files import FileResult
from ..offer import Contract, Offer
from . import FetchContext, source
from .answers import UnreadableRow, money_of
from .catalog_gpus import CatalogGpu, catalog_gpu, slug
from .csv_import import text_of
from .csv_rows import CsvRows
from .errors import BadAnswer
from .http import Http
from .page import ParseResult, RawPage, Tally

NAME = "skypilot-catalog"
FORM = "skypilot-csv"
BASE = "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/v8"
PROVIDERS = ("lambda", "runpod", "vast")
# Sellers that ask one price wherever the machine stands.
_REGION_BLIND = frozenset({"lambda", "runpod"})
# Sellers without machine names of their own: the item is count and card.
_UNNAMED = frozenset({"runpod", "vast"})
_CLOUDS = frozenset({
    "aws", "azure", "gcp", "lambda", "runpod", "vast", "oci", "cudo", "do", "fluidstack", "hyperbolic", "ibm",
    "nebius", "paperspace", "scp", "seeweb", "vsphere", "primeintellect", "shadeform", "mithril",
})  # fmt: skip
# Local copies are small; the largest file (azure) has 20 MB.
_LARGEST_BYTES = 32 * 2**20


@source(NAME, provider="skypilot")
class SkyPilotCatalog:
    """List prices of Lambda, RunPod and Vast, as SkyPilot's catalogue has them.

    The catalogue names no date, currency or system: a row is dated when it was read, in USD, with Linux.
    Google's rows are parts of a machine and its local SSD is missing there, so they are left out.
    Clouds: lambda, runpod, vast unless [skypilot-catalog] providers = "…" in price_sources.toml says others.
    """

    def fetch(self, context: FetchContext) -> Iterator[RawPage]:
        """One file a cloud. Raises SourceFailed, BadAnswer."""
        named = context.settings.get(NAME, {}).get("providers", "")
        providers = tuple(name.strip() for name in named.split(",") if name.strip()) or PROVIDERS
        base = context.base_urls.get(NAME, BASE)
        with Http(context) as http:
            for provider in providers:
                answer = http.get(f"{base}/{provider}/vms.csv", limit_bytes=_LARGEST_BYTES)
                yield RawPage(answer.body, ref=answer.ref, request={"provider": provider})

    def parse(
        self, pages: Iterable[RawPage], *, fetched_at: datetime, observed_at: datetime | None = None
    ) -> ParseResult:
        """On-demand and spot offers. Raises BadAnswer for a file that is none, TooManyBadRows."""
        tally = Tally(NAME)
        offers: list[Offer] = []
        for page in pages:
            try:
                offers += _offers(page, page.request.get("provider", ""), fetched_at, observed_at, tally)
            except BadPriceFile as error:
                raise BadAnswer(str(error)) from None
        return tally.result(offers)


def looks_like(head: str) -> bool:
    """Whether a file begins with SkyPilot's columns."""
    return {"InstanceType", "AcceleratorName", "Price"} <= set(head.partition("\n")[0].strip().split(","))


def read_file(page: RawPage, fetched_at: datetime, observed_at: datetime | None) -> FileResult:
    """The offers of a file. The cloud is told by a column "provider" or by the folder the file lies in.

    Raises BadPriceFile without a date: the form has none.
    """
    if observed_at is None:
        raise BadPriceFile(f"{page.ref}: this form says no date; say when it held: --observed-at 2026-11-30")
    tally = Tally(NAME, limit=1.0)
    folder = page.ref.rpartition("/")[0].rpartition("/")[2]
    bad: list[tuple[str, str]] = []
    offers = _offers(page, folder if folder in _CLOUDS else "", fetched_at, observed_at, tally, bad)
    return FileResult(FORM, tuple(offers), dict(tally.skipped), tuple(bad), tally.result([]).warnings)


def _offers(
    page: RawPage,
    provider: str,
    fetched_at: datetime,
    observed_at: datetime | None,
    tally: Tally,
    bad: list[tuple[str, str]] | None = None,
) -> list[Offer]:
    reader = CsvRows(text_of(page), page.ref)
    if not {"InstanceType", "AcceleratorName", "Price"} <= set(reader.names):
        raise BadPriceFile(f"{page.ref}: not SkyPilot's columns (InstanceType, AcceleratorName, Price, …)")
    plain: list[Offer] = []
    for row in reader:
        tally.row()
        try:
            plain += _row(row, provider, page, fetched_at, observed_at or fetched_at, tally)
        except UnreadableRow as error:
            tally.spoilt(str(error), f"row {reader.line}")
            if bad is not None:
                bad.append((str(reader.line), str(error)))
    return _one_each(plain, tally)


def _row(
    row: Mapping[str, Any],
    provider: str,
    page: RawPage,
    fetched_at: datetime,
    observed_at: datetime,
    tally: Tally,
) -> Iterator[Offer]:
    """The on-demand and the spot offer of a row; what is left out is counted."""
    provider = str(row.get("provider") or "").strip() or provider
    instance = str(row.get("InstanceType") or "").strip()
    name = str(row.get("AcceleratorName") or "").strip()
    if provider not in _CLOUDS:
        raise UnreadableRow("no provider: put the file in a folder named as the cloud, or add a column")
    if provider == "gcp":
        tally.skip("parts of Google's machines: host and GPU are apart, local SSD is missing")
        return
    if not name or not instance:
        tally.skip("no GPU")
        return
    count = _count(row.get("AcceleratorCount"))
    gpu = catalog_gpu(name, provider=provider, instance=instance, memory_mib=_memory(row), count=count)
    if gpu is None:
        tally.skip(f"a GPU not known here: {name[:40]}")
        return
    price, spot = _price(row.get("Price")), _price(row.get("SpotPrice"))
    if price is None:
        tally.skip("no price (empty or 0)")
    if spot is not None and spot == price:
        # The catalogue fills the column so that every row has one (RunPod).
        tally.skip("a spot price that repeats the price")
        spot = None
    base = _offer(row, provider, instance, gpu, count, page, fetched_at, observed_at)
    contract: Contract = "community" if instance.upper().endswith("_COMMUNITY") else "on_demand"
    for kind, amount in ((contract, price), ("spot", spot)):
        if amount is not None:
            yield replace(base, contract=kind, amount=amount)


def _offer(
    row: Mapping[str, Any],
    provider: str,
    instance: str,
    gpu: CatalogGpu,
    count: int,
    page: RawPage,
    fetched_at: datetime,
    observed_at: datetime,
) -> Offer:
    item = instance if provider not in ("lambda", *_UNNAMED) else f"{provider}.{instance}"
    if provider in _UNNAMED:
        item = f"{provider}.{count}x_{slug(gpu)}"
    region = str(row.get("Region") or "").strip()
    try:
        return Offer(
            kind="cloud_instance",
            provider=provider,
            item=item,
            region="all" if provider in _REGION_BLIND or not region else region,
            zone=str(row.get("AvailabilityZone") or "").strip() or None,
            contract="on_demand",
            unit="instance_hour",
            os="linux",
            tenancy="shared" if provider in ("aws", "azure") else None,
            amount=None,
            currency="USD",
            tax="excluded",
            gpu_model=gpu.id,
            gpu_count=count,
            gpu_mem_mib=gpu.memory_mib,
            gpu_form=gpu.form,
            vcpu=_quantity(row.get("vCPUs")),
            ram_gib=_quantity(row.get("MemoryGiB")),
            sku=instance,
            note="the catalogue says neither date nor stock",
            source=NAME,
            source_ref=page.ref,
            raw_sha256=page.sha256,
            observed_at=observed_at,
            fetched_at=fetched_at,
        )
    except BadOffer as error:
        raise UnreadableRow(str(error)) from None


def _one_each(offers: list[Offer], tally: Tally) -> list[Offer]:
    """One offer a price: repeated rows (a region-blind seller lists 17 regions) fold into one.

    Where they disagree the dearer holds, and it is said: an average is nobody's price, and the cheapest
    one may be a machine in a place where there is none.
    """
    found: dict[str, Offer] = {}
    for offer in offers:
        first = found.setdefault(offer.price_id, offer)
        if first is offer:
            continue
        tally.skip("the same price again")
        if first.amount != offer.amount:
            tally.warn(f"{offer.where}: listed at {first.amount} and at {offer.amount}; the dearer is taken")
            found[offer.price_id] = max(first, offer, key=lambda each: each.amount or Decimal(0))
    return list(found.values())


def _price(value: object) -> Decimal | None:
    """An amount; None for an empty cell and for 0, which this catalogue writes when it knows none."""
    text = str(value or "").strip()
    return (money_of(text, "price") or None) if text else None


def _count(value: object) -> int:
    amount = money_of(str(value or "").strip(), "AcceleratorCount")
    if amount != int(amount) or not 0 < amount <= 1024:
        raise UnreadableRow("a part of a GPU, or an implausible number of them")
    return int(amount)


def _quantity(value: object) -> Decimal | None:
    text = str(value or "").strip()
    return money_of(text, "a quantity") if text else None


def _memory(row: Mapping[str, Any]) -> float | None:
    """Memory as the file says it, in whatever unit, of one card or all: catalog_gpus.py sorts it out."""
    text = str(row.get("GpuInfo.SizeInMiB") or "").strip()
    if not text:
        info = str(row.get("GpuInfo") or "").strip()
        if not info or len(info) > 2000:
            return None
        try:
            gpus = ast.literal_eval(info)["Gpus"]
            text = str(gpus[0]["MemoryInfo"]["SizeInMiB"])
        except (ValueError, SyntaxError, TypeError, KeyError, IndexError, RecursionError, MemoryError):
            return None
    try:
        return float(money_of(text, "memory")) or None
    except UnreadableRow:
        return None
