"""Rows as arrays: the work of a step, the sheet of its card, and the labels rows are alike by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from .. import scaling
from ..hardware.catalogue import gpu as find_gpu
from ..precision import peak_flops, unit_of
from . import physics
from .achieved import achieved
from .features import features_of
from .profile import Floats
from .rows import Row

Ints = NDArray[np.int64]

# Columns of Table.specs, standardised by nothing: their length scales are learned in these units.
SPECS = (
    "log_rate",
    "log_bandwidth",
    "log_sm_clock",
    "log_watts_less_half_log_rate",
    "log_l2",
    "year",
    "geforce",
)
LABELS = (
    "precision",
    "architecture",
    "silicon",
    "family",
    "host",
    "source",
    "gpu",
    "recipe",
    "recipe_model",
    "recipe_model_size",
    "link",
    "strategy",
)
# bf16 and fp16 are one class; half on fp32 units is one of its own.
_PRECISION_CLASS = {"fp32": "fp32", "tf32": "tf32", "half": "half", "half_on_fp32": "half_on_fp32"}


@dataclass(frozen=True, slots=True)
class Table:
    """N rows. flops (N, F) [FLOP], bytes (N, C) [B], launches (N,) of one optimizer step on one GPU.

    log_step: log of measured seconds per optimizer step, NaN where the row has none.
    volume: bytes each rank sends; link_bandwidth: the link's prior effective one [B/s].
    labels: name -> (N,) texts.
    """

    index: Ints
    flops: Floats
    bytes: Floats
    launches: Floats
    samples: Floats
    peak_flops: Floats
    sheet: physics.Sheet
    year: Floats
    specs: Floats
    log_batch: Floats
    log_step: Floats
    gpu_count: Floats
    volume: Floats
    link_bandwidth: Floats
    labels: Mapping[str, NDArray[np.str_]]

    def __len__(self) -> int:
        return len(self.index)

    def take(self, chosen: NDArray[np.bool_] | Ints) -> Table:
        """The chosen rows."""
        values = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, physics.Sheet):
                value = physics.Sheet(**{f.name: getattr(value, f.name)[chosen] for f in fields(value)})
            elif isinstance(value, Mapping):
                value = {name: column[chosen] for name, column in value.items()}
            else:
                value = value[chosen]
            values[field.name] = value
        return Table(**values)


def table_of(rows: Sequence[Row]) -> Table:
    """Arrays of covered rows, in order."""
    built = [_columns(row) for row in rows]
    sheet_fields = [f.name for f in fields(physics.Sheet)]
    return Table(
        index=np.array([row.index for row in rows], dtype=np.int64),
        **{
            name: np.array([b[name] for b in built])
            for name in (
                *("flops", "bytes", "launches", "samples", "peak_flops", "year", "specs", "log_batch"),
                *("log_step", "gpu_count", "volume", "link_bandwidth"),
            )
        },
        sheet=physics.Sheet(**{name: np.array([b[name] for b in built]) for name in sheet_fields}),
        labels={name: np.array([b["labels"][name] for b in built]) for name in LABELS},
    )


def _columns(row: Row) -> dict[str, object]:
    assert row.recipe is not None
    recipe = row.recipe
    card = find_gpu(row.gpu)
    unit = unit_of(card, row.precision)
    peak = peak_flops(card, row.precision)
    rates = achieved()[card.id].flops
    rate = rates.get(unit.removesuffix("_on_fp32") if unit != "half_on_fp32" else "fp32", peak)
    shard = 1.0 / row.gpu_count if scaling.shards_optimizer(row.strategy) else 1.0
    work = features_of(recipe, shard)
    sent = scaling.exchange(
        strategy=row.strategy,
        gradient_bytes=work.gradient_bytes,
        parameters=work.parameters,
        gpu_count=row.gpu_count,
        node_count=row.node_count,
        link_name=row.link,
        network_name=row.network,
        accumulation=row.accumulation,
    )
    samples = work.samples * row.gpu_count
    seconds = samples / (row.throughput * row.samples_per_unit) if row.throughput else np.nan
    sm_clock = card.sm_count * card.boost_clock_hz
    log_power = np.log(min(3.0, 0.45 * card.tdp_watts / (peak / 1e12))) if unit in ("tf32", "half") else 0.0
    recipe_model = f"{recipe.id} {recipe.model}"
    precision = _PRECISION_CLASS[unit]
    return {
        "flops": work.flops,
        "bytes": work.bytes,
        "launches": work.launches,
        "samples": samples,
        "peak_flops": peak,
        "year": row.year,
        "specs": [
            np.log(rate),
            np.log(card.bandwidth_bytes_per_second),
            np.log(sm_clock),
            np.log(card.tdp_watts) - 0.5 * np.log(rate),
            np.log(card.l2_bytes),
            float(card.year),
            float(card.product_class == "geforce"),
        ],
        "log_batch": np.log(recipe.batch),
        "log_step": np.log(seconds),
        "gpu_count": float(row.gpu_count),
        "volume": sent.bytes,
        "link_bandwidth": sent.bandwidth_bytes_per_second,
        "bandwidth": card.bandwidth_bytes_per_second,
        "rate_flops": rate,
        "l2_bytes": float(card.l2_bytes),
        "sm_clock": sm_clock,
        "log_power": log_power,
        "unit": physics.UNITS.index(unit),
        "labels": {
            "precision": precision,
            "architecture": card.architecture,
            "silicon": card.silicon,
            "family": row.family,
            "host": row.host,
            "source": row.source,
            "gpu": card.id,
            "recipe": recipe.id,
            "recipe_model": recipe_model,
            "recipe_model_size": f"{recipe_model} {precision} {recipe.size}",
            "link": sent.bottleneck,
            "strategy": "sharded" if row.strategy in ("fsdp", "zero3") else "ddp",
        },
    }
