"""gpuhunt's price catalogue: one CSV file a provider, from a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from ..errors import BadOffer, BadPriceFile
from ..import_files import FileResult
from ..offer import Offer
from . import FetchContext, source
from .answers import UnreadableRow, money_of
from .catalog_gpus import CatalogGpu, catalog_gpu, slug
from .csv_import import text_of
from .csv_rows import CsvRows
from .errors import BadAnswer, SourceUnavailable
from .page import ParseResult, RawPage, Tally
from .settings import path_of

NAME = "gpuhunt-catalog"
FORM = "gpuhunt-csv"
NEEDS = f'a folder of gpuhunt CSV files: [{NAME}] folder = "…" in price_sources.toml'
_NEEDED = frozenset({"instance_name", "location", "price", "gpu_count", "gpu_name", "gpu_memory", "spot"})
# Sellers whose machines have no names: the item is count and card, as in our own prices.
_UNNAMED = frozenset({"runpod", "vastai", "vast"})
_OURS = {"vastai": "vast", "lambdalabs": "lambda"}
_REGION_BLIND = frozenset({"lambda", "runpod"})
_MIB_PER_GB = 1024


@source(NAME, provider="gpuhunt", needs=NEEDS, default=False)
class GpuhuntCatalog:
    """Offers of a folder of gpuhunt CSV files, PROVIDER.csv each.

    The files name no date, currency or system: a row is dated when it was read, in USD, with Linux.
    """

    def fetch(self, context: FetchContext) -> Iterator[RawPage]:
        """Each CSV file of the folder. Raises SourceUnavailable without one."""
        folder = path_of(context.settings.get(NAME, {}), "folder")
        files = sorted(folder.glob("*.csv")) if folder is not None and folder.is_dir() else []
        if not files:
            raise SourceUnavailable(NEEDS)
        for path in files:
            yield RawPage(path=path, ref=path.name, request={"provider": path.stem})

    def parse(
        self, pages: Iterable[RawPage], *, fetched_at: datetime, observed_at: datetime | None = None
    ) -> ParseResult:
        """On-demand and spot offers. Raises BadAnswer for a file that is none, TooManyBadRows."""
        tally = Tally(NAME)
        offers: dict[str, Offer] = {}
        for page in pages:
            try:
                _add(page, page.request.get("provider", ""), fetched_at, observed_at, tally, offers, [])
            except BadPriceFile as error:
                raise BadAnswer(str(error)) from None
        return tally.result(list(offers.values()))


def looks_like(head: str) -> bool:
    """Whether a file begins with gpuhunt's columns."""
    return set(head.partition("\n")[0].strip().split(",")) >= _NEEDED


def read_file(page: RawPage, fetched_at: datetime, observed_at: datetime | None) -> FileResult:
    """The offers of a file; its name tells the provider. Raises BadPriceFile without a date."""
    if observed_at is None:
        raise BadPriceFile(f"{page.ref}: this form says no date; say when it held: --observed-at 2026-11-30")
    tally = Tally(NAME, limit=1.0)
    offers: dict[str, Offer] = {}
    bad: list[tuple[str, str]] = []
    provider = page.ref.rpartition("/")[2].removesuffix(".csv")
    _add(page, provider, fetched_at, observed_at, tally, offers, bad)
    return FileResult(FORM, tuple(offers.values()), dict(tally.skipped), tuple(bad))


def _add(
    page: RawPage,
    provider: str,
    fetched_at: datetime,
    observed_at: datetime | None,
    tally: Tally,
    offers: dict[str, Offer],
    bad: list[tuple[str, str]],
) -> None:
    reader = CsvRows(text_of(page), page.ref)
    if not set(reader.names) >= _NEEDED:
        raise BadPriceFile(f"{page.ref}: not gpuhunt's columns ({', '.join(sorted(_NEEDED))})")
    provider = _OURS.get(provider, provider)
    for row in reader:
        tally.row()
        try:
            offer = _offer(row, provider, page, fetched_at, observed_at or fetched_at, tally)
        except UnreadableRow as error:
            tally.spoilt(str(error), f"row {reader.line}")
            bad.append((str(reader.line), str(error)))
            continue
        if offer is not None:
            _keep(offer, offers, tally)


def _keep(offer: Offer, offers: dict[str, Offer], tally: Tally) -> None:
    """The dearest of several hosts that offer one thing: a marketplace's cheapest may be gone in a minute."""
    known = offers.get(offer.price_id)
    if known is not None:
        tally.skip("another host's offer of the same")
        if (known.amount or 0) >= (offer.amount or 0):
            return
    offers[offer.price_id] = offer


def _offer(
    row: Mapping[str, Any],
    provider: str,
    page: RawPage,
    fetched_at: datetime,
    observed_at: datetime,
    tally: Tally,
) -> Offer | None:
    count = int(money_of(_text(row, "gpu_count") or "0", "gpu_count"))
    if not count:
        tally.skip("no GPU")
        return None
    instance = _text(row, "instance_name")
    memory = money_of(_text(row, "gpu_memory") or "0", "gpu_memory")
    gpu = catalog_gpu(
        _text(row, "gpu_name"),
        provider=provider,
        instance=instance,
        memory_mib=float(memory) * _MIB_PER_GB,
        count=1,
    )
    if gpu is None:
        tally.skip(f"a GPU not known here: {_text(row, 'gpu_name')[:40]}")
        return None
    amount = money_of(_text(row, "price") or "0", "price")
    if not amount:
        tally.skip("no price (empty or 0)")
        return None
    spot = _text(row, "spot").lower()
    if spot not in ("true", "false"):
        raise UnreadableRow("spot is neither True nor False")
    location = _text(row, "location")
    try:
        return Offer(
            kind="cloud_instance",
            provider=provider,
            item=_item(provider, instance, gpu, count),
            region="all" if provider in _REGION_BLIND or not location else location,
            contract="spot" if spot == "true" else "on_demand",
            unit="instance_hour",
            os="linux",
            tenancy="shared" if provider in ("aws", "azure") else None,
            amount=amount,
            currency="USD",
            tax="excluded",
            gpu_model=gpu.id,
            gpu_count=count,
            gpu_mem_mib=gpu.memory_mib,
            gpu_form=gpu.form,
            vcpu=money_of(_text(row, "cpu"), "cpu") if _text(row, "cpu") else None,
            ram_gib=money_of(_text(row, "memory"), "memory") if _text(row, "memory") else None,
            sku=instance or None,
            note="the catalogue says neither date nor stock",
            source=NAME,
            source_ref=page.ref,
            raw_sha256=page.sha256,
            observed_at=observed_at,
            fetched_at=fetched_at,
        )
    except BadOffer as error:
        raise UnreadableRow(str(error)) from None


def _item(provider: str, instance: str, gpu: CatalogGpu, count: int) -> str:
    if provider in _UNNAMED or not instance:
        return f"{provider}.{count}x_{slug(gpu)}"
    return f"{provider}.{instance}" if provider == "lambda" else instance


def _text(row: Mapping[str, Any], name: str) -> str:
    return str(row.get(name) or "").strip()
