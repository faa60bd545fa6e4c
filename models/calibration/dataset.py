"""Rows as arrays: the work of a step, the sheet of its card, and the labels rows are alike by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import scaling
from ..errors import ModelsError
from ..hardware.catalogue import gpu as find_gpu
from . import physics
from .achieved import achieved
from .features import features_of, load
from .profile import Floats
from .rows import Row
from .sheet import REWRITE_LAUNCHES, CardRow, card_row

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


@dataclass(frozen=True, slots=True)
class Table:
    """N rows. flops (N, F) [FLOP], bytes (N, C) [B], launches, host_ops (N,): one step on one GPU.

    log_step: log of measured seconds per optimizer step, NaN where the row has none.
    busy: 1 where the host has more to do than to launch.
    volume: bytes each rank sends; link_bandwidth: the link's prior effective one [B/s].
    labels: name -> (N,) texts.
    """

    index: Ints
    flops: Floats
    bytes: Floats
    launches: Floats
    host_ops: Floats
    samples: Floats
    peak_flops: Floats
    sheet: physics.Sheet
    year: Floats
    busy: Floats
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
                *("flops", "bytes", "launches", "host_ops", "samples", "peak_flops", "year"),
                *("busy", "specs", "log_batch", "log_step", "gpu_count", "volume", "link_bandwidth"),
            )
        },
        sheet=physics.Sheet(**{name: np.array([b[name] for b in built]) for name in sheet_fields}),
        labels={name: np.array([b["labels"][name] for b in built]) for name in LABELS},
    )


def usable(rows: Sequence[Row]) -> list[Row]:
    """The same rows; those whose op list, rate or link is not known are turned into uncovered ones."""
    return [replace(row, reason=_obstacle(row)) if row.covered else row for row in rows]


def _obstacle(row: Row) -> str:
    assert row.recipe is not None
    if row.recipe.trace_key not in load():
        return f"op list not traced: {row.recipe.model} at size {row.recipe.size}"
    try:
        _columns(row)
    except ModelsError as error:
        return str(error)
    return ""


def specs_of(sheet: CardRow) -> list[float]:
    """The first of SPECS: those that depend on the precision's units."""
    log_rate = np.log(sheet.rate_flops)
    return [
        log_rate,
        np.log(sheet.bandwidth),
        np.log(sheet.sm_clock),
        np.log(sheet.watts) - 0.5 * log_rate,
        np.log(sheet.l2_bytes),
    ]


def _columns(row: Row) -> dict[str, Any]:
    assert row.recipe is not None
    recipe = row.recipe
    card = find_gpu(row.gpu)
    sheet = card_row(card, row.precision, achieved()[card.id].flops, layout=recipe.layout)
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
    recipe_model = f"{recipe.id} {recipe.model}"
    precision = sheet.unit
    return {
        "flops": work.flops,
        "bytes": work.bytes,
        "launches": work.launches + (REWRITE_LAUNCHES * work.conv_launches if any(sheet.rewrites) else 0),
        "host_ops": work.host_ops,
        "samples": samples,
        "peak_flops": sheet.peak_flops,
        "year": row.year,
        "busy": float(recipe.busy_host),
        "specs": [
            *specs_of(sheet),
            float(card.year),
            float(card.product_class == "geforce"),
        ],
        "log_batch": np.log(recipe.batch),
        "log_step": np.log(seconds),
        "gpu_count": float(row.gpu_count),
        "volume": sent.bytes,
        "link_bandwidth": sent.bandwidth_bytes_per_second,
        "bandwidth": sheet.bandwidth,
        "rate_flops": sheet.rate_flops,
        "l2_bytes": sheet.l2_bytes,
        "sm_clock": sheet.sm_clock,
        "log_power": sheet.log_power,
        "unit": sheet.unit_index,
        "rewrites": sheet.rewrites,
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
