"""What the list commands list: hardware, workloads, prices, as rows of plain values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from . import money
from .answer import moment
from .listings import Listing
from .models.hardware import catalogue

if TYPE_CHECKING:
    from .models.workloads.zoo import Workload
    from .pricing.offer import Offer

_GIB = 2**30


def hardware_list(kind: str | None) -> Listing:
    """Every GPU, instance and rig, or only those of one kind."""
    rows: list[Mapping[str, Any]] = []
    if kind in (None, "gpu"):
        rows += [_gpu(card) for card in catalogue.gpus()]
    if kind in (None, "instance"):
        rows += [_machine(machine, "instance", machine.provider) for machine in catalogue.instances()]
    if kind in (None, "rig"):
        rows += [_machine(machine, "rig", "own") for machine in catalogue.rigs()]
    return Listing("hardware", tuple(rows))


def _gpu(card: catalogue.Gpu) -> Mapping[str, Any]:
    return {
        "id": card.id,
        "kind": "gpu",
        "name": card.name,
        "provider": None,
        "gpu": card.id,
        "gpu_count": 1,
        "memory_gib": round(card.memory_bytes / _GIB, 3),
        "year": card.year,
        "link": None,
        "network": None,
        "aliases": list(card.aliases),
    }


def _machine(machine: catalogue.Instance | catalogue.Rig, kind: str, provider: str) -> Mapping[str, Any]:
    card = catalogue.gpu(machine.gpu)
    return {
        "id": machine.id,
        "kind": kind,
        "name": machine.id,
        "provider": provider,
        "gpu": machine.gpu,
        "gpu_count": machine.gpu_count,
        "memory_gib": round(card.memory_bytes / _GIB, 3),
        "year": card.year,
        "link": machine.link,
        "network": machine.network,
        "aliases": list(machine.aliases),
    }


def workload_list(workloads: tuple[Workload, ...]) -> Listing:
    """Every named workload with its reference run."""
    return Listing("workloads", tuple(_workload(found) for found in workloads))


def _workload(found: Workload) -> Mapping[str, Any]:
    reference = found.reference
    return {
        "id": found.id,
        "title": found.title,
        "aliases": list(found.aliases),
        "family": found.family,
        "kind": found.kind,
        "parameters": found.parameters,
        "trained_parameters": found.trained_parameters,
        "size": found.default_size,
        "size_unit": reference.size_unit if reference else None,
        "reference": reference.text if reference else None,
    }


def price_list(offers: tuple[Offer, ...], as_of: datetime) -> Listing:
    """Stored offers; an unknown amount is None."""
    return Listing("offers", tuple(_offer(offer, as_of) for offer in offers))


def _offer(offer: Offer, as_of: datetime) -> Mapping[str, Any]:
    def text(amount: Any) -> str | None:
        return None if amount is None else money.text(amount)

    per_gpu = offer.amount_per_gpu
    return {
        "id": offer.price_id,
        "kind": offer.kind,
        "provider": offer.provider,
        "item": offer.item,
        "region": offer.region,
        "zone": offer.zone,
        "contract": offer.contract,
        "term_months": offer.term_months,
        "payment": offer.payment,
        "condition": offer.condition,
        "amount": text(offer.amount),
        "amount_low": text(offer.amount_low),
        "amount_high": text(offer.amount_high),
        "upfront": text(offer.upfront),
        "currency": offer.currency,
        "unit": offer.unit,
        "amount_per_gpu": None if per_gpu is None else text(money.price(per_gpu)),
        "gpu_model": offer.gpu_model,
        "gpu_count": offer.gpu_count,
        "tax": offer.tax,
        "availability": offer.availability,
        "observed_at": moment(offer.observed_at),
        "age_days": max(0, (as_of.date() - offer.observed_at.date()).days),
        "source": offer.source,
        "source_ref": offer.source_ref,
        "sku": offer.sku,
        "quality": offer.quality,
        "reason": offer.reason,
        "note": offer.note,
    }
