"""Prices of Google Compute Engine machines with GPUs, composed of the parts that the catalog prices."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from ..errors import BadOffer
from ..offer import Component, Contract, Offer
from . import FetchContext, source
from .answers import load_json, member
from .errors import SourceFailed, SourceUnavailable
from .gcp_shapes import REGION, TYPE, MachineTypes, Shape, known_shapes
from .gcp_skus import SSD_NAMES, Sku, Skus
from .page import ParseResult, RawPage, Tally

NAME = "gcp-catalog"
NEEDS = "Google credentials: gcloud auth application-default login, or GOOGLE_APPLICATION_CREDENTIALS"
PACKAGE = "google-cloud-billing and google-cloud-compute: pip install 'training-planner[gcp]'"
# Compute Engine, in the catalog of services.
SERVICE = "services/6F81-5844-456A"
_ROWS_PER_PAGE = 5000
_TERM_MONTHS: dict[Contract, int] = {"reserved_1y": 12, "reserved_3y": 36}
_CONTRACTS: tuple[Contract, ...] = ("on_demand", "spot", "reserved_1y", "reserved_3y")

Pages = Callable[[FetchContext], Iterator[Mapping[str, Any]]]


def catalog_pages(context: FetchContext) -> Iterator[Mapping[str, Any]]:
    """Pages of cloudbilling list_skus, each SKU as the library writes it in JSON.

    Raises SourceUnavailable, SourceFailed.
    """
    try:
        from google.api_core.exceptions import GoogleAPIError
        from google.auth.exceptions import GoogleAuthError
        from google.cloud import billing_v1
    except ImportError:
        raise SourceUnavailable(PACKAGE) from None
    try:
        deadline = context.deadline()
        client = billing_v1.CloudCatalogClient()
        request = billing_v1.ListSkusRequest(parent=SERVICE, page_size=_ROWS_PER_PAGE)
        pager = client.list_skus(request=request, timeout=context.read_seconds)
        for page in pager.pages:
            deadline.check("cloudbilling list_skus")
            yield {"skus": [sku_to_json(sku) for sku in page.skus]}
    except GoogleAuthError as error:
        raise SourceUnavailable(f"{NEEDS} ({type(error).__name__})") from None
    except GoogleAPIError as error:
        raise SourceFailed(f"cloudbilling list_skus: {type(error).__name__}") from None


def sku_to_json(sku: Any) -> Any:
    """A google.cloud.billing_v1 Sku as the plain values of the REST API."""
    return json.loads(type(sku).to_json(sku, use_integers_for_enums=False))


def machine_pages(context: FetchContext) -> Iterator[Mapping[str, Any]]:
    """Pages of compute machineTypes over all zones; none without a project to ask from.

    Raises SourceUnavailable, SourceFailed.
    """
    try:
        import google.auth
        import requests
        from google.api_core.exceptions import GoogleAPIError
        from google.auth.exceptions import GoogleAuthError
    except ImportError:
        raise SourceUnavailable(PACKAGE) from None
    what = "compute machineTypes"
    families = "|".join(sorted({name.partition("-")[0] for name in known_shapes()}))
    try:
        _, project = google.auth.default()
        if not project:
            return
        compute_v1 = _compute()
        deadline = context.deadline()
        client = compute_v1.MachineTypesClient()
        request = compute_v1.AggregatedListMachineTypesRequest(
            project=project, filter=f"name eq '({families})-.*'"
        )
        for page in client.aggregated_list(request=request, timeout=context.read_seconds).pages:
            deadline.check(what)
            yield json.loads(type(page).to_json(page, use_integers_for_enums=False))
    except GoogleAuthError as error:
        raise SourceUnavailable(f"{NEEDS} ({type(error).__name__})") from None
    except (GoogleAPIError, requests.RequestException) as error:
        raise SourceFailed(f"{what}: {type(error).__name__}") from None


def _compute() -> Any:
    """The compute library: about 1.9 s of CPU to import, so only once it is known that it can be asked."""
    try:
        from google.cloud import compute_v1
    except ImportError:
        raise SourceUnavailable(PACKAGE) from None
    return compute_v1


@source(NAME, provider="gcp", needs=NEEDS)
class GcpCatalog:
    """On-demand, spot and committed prices of machines with GPUs, each the exact sum of its parts.

    Local SSD is included where it is bundled. Regions: all that the catalog names unless some are asked for.
    Permissions: none beyond an account for prices; compute.machineTypes.list to learn what is offered where.
    """

    def __init__(self, catalog: Pages = catalog_pages, machines: Pages = machine_pages) -> None:
        self._catalog = catalog
        self._machines = machines

    def fetch(self, context: FetchContext) -> Iterator[RawPage]:
        """Pages of machine types where they may be asked for, then pages of SKUs."""
        request = {
            "regions": ",".join(context.regions_of(REGION, ())),
            "types": ",".join(context.types_of(TYPE, ())),
        }
        try:
            for page in self._machines(context):
                yield RawPage(_bytes(page), ref="compute machineTypes.aggregatedList", request=request)
        except SourceFailed:
            # The catalog prices a machine as well; only where it is offered stays unknown.
            pass
        for page in self._catalog(context):
            yield RawPage(_bytes(page), ref=f"cloudbilling {SERVICE} skus.list", request=request)

    def parse(
        self, pages: Iterable[RawPage], *, fetched_at: datetime, observed_at: datetime | None = None
    ) -> ParseResult:
        """One offer per machine, region and contract whose every part has one price. Raises BadAnswer."""
        tally = Tally(NAME)
        machines = MachineTypes(tally)
        shapes = known_shapes()
        names = {name for shape in shapes.values() for name in _names(shape)}
        skus = Skus(frozenset(names), tally)
        asked: Mapping[str, str] = {}
        for page in pages:
            answer = load_json(page)
            if isinstance(answer, Mapping) and "items" in answer:
                machines.add(answer, page.ref)
                continue
            asked = page.request
            for row in member(answer, "skus", list, page.ref):
                skus.add(row, page)
        composer = _Composer(skus, machines, tally, asked, observed_at or fetched_at, fetched_at)
        return tally.result(composer.offers())


def _names(shape: Shape) -> tuple[str, ...]:
    return (*shape.gpu_skus, *shape.core_skus, *shape.ram_skus)


def _bytes(page: Mapping[str, Any]) -> bytes:
    return json.dumps(page, sort_keys=True).encode()


class _Composer:
    """Adds parts up to machines."""

    def __init__(
        self,
        skus: Skus,
        machines: MachineTypes,
        tally: Tally,
        asked: Mapping[str, str],
        observed_at: datetime,
        fetched_at: datetime,
    ) -> None:
        self._skus = skus
        self._machines = machines
        self._tally = tally
        self._observed_at = observed_at
        self._fetched_at = fetched_at
        self._wanted_regions = frozenset(filter(None, asked.get("regions", "").split(",")))
        self._wanted_types = frozenset(filter(None, asked.get("types", "").split(",")))

    def offers(self) -> list[Offer]:
        """Every machine that can be composed."""
        found = []
        for shape in self._machines.shapes().values():
            if self._wanted_types and shape.name not in self._wanted_types:
                continue
            for contract in _CONTRACTS:
                regions = self._skus.regions(shape.gpu_skus, contract)
                for region in sorted(regions & self._wanted_regions if self._wanted_regions else regions):
                    offer = self._offer(shape, region, contract)
                    if offer is not None:
                        found.append(offer)
        return found

    def _offer(self, shape: Shape, region: str, contract: Contract) -> Offer | None:
        if not self._machines.offered(shape.name, region):
            self._tally.skip("machine not offered in the region")
            return None
        parts = self._parts(shape, region, contract)
        if parts is None:
            return None
        skus = [sku for sku, _ in parts]
        if len({sku.currency for sku in skus}) > 1:
            self._tally.skip("parts in several currencies")
            return None
        components = tuple(Component(sku.id, quantity, sku.unit, sku.amount) for sku, quantity in parts)
        amount = sum((part.quantity * part.amount for part in components), Decimal(0))
        dates = [sku.effective for sku in skus if sku.effective is not None]
        listed_only = shape.listed_only and contract == "on_demand"
        try:
            return Offer(
                kind="cloud_instance",
                provider="gcp",
                item=shape.name,
                region=region,
                contract=contract,
                term_months=_TERM_MONTHS.get(contract),
                payment="none" if contract in _TERM_MONTHS else None,
                os="linux",
                tenancy="shared",
                unit="instance_hour",
                amount=amount,
                currency=skus[0].currency,
                tax="excluded",
                components=components,
                sku=skus[0].id,
                source=NAME,
                source_ref=skus[0].page.ref,
                raw_sha256=skus[0].page.sha256,
                valid_from=max(dates) if len(dates) == len(skus) else None,
                observed_at=self._observed_at,
                fetched_at=self._fetched_at,
                gpu_model=shape.gpu,
                gpu_count=shape.gpus,
                gpu_mem_mib=shape.gpu_memory_mib,
                gpu_form=shape.form,
                vcpu=Decimal(shape.vcpus),
                ram_gib=shape.ram_gib,
                local_ssd_gib=Decimal(shape.ssd_gib),
                availability="listed_only" if listed_only else "unknown",
                note="list price of the parts; the machine is not sold on demand" if listed_only else None,
            )
        except BadOffer as error:
            self._tally.spoilt("not an offer", str(error))
            return None

    def _parts(self, shape: Shape, region: str, contract: Contract) -> list[tuple[Sku, Decimal]] | None:
        """Every part with its quantity; None when one has no price, or has several."""
        wanted = [
            ("GPU", shape.gpu_skus, Decimal(shape.gpus)),
            ("core", shape.core_skus, Decimal(shape.vcpus)),
            ("memory", shape.ram_skus, shape.ram_gib),
            ("local SSD", tuple(sorted(SSD_NAMES)), Decimal(shape.ssd_gib)),
        ]
        parts = []
        for what, names, quantity in wanted:
            if not quantity:
                continue
            sku = self._skus.one(names, region, contract)
            if sku is None:
                self._tally.skip(f"{contract}: no single price of the {what}")
                return None
            parts.append((sku, quantity))
        return parts
