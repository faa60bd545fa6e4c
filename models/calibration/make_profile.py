"""From fitted parameters to the profile that planning reads: each card's multipliers, and bands.

A card is conditioned on all measured rows, as a new recipe on a new host with today's software.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import scaling
from ..errors import UnknownFigure
from ..hardware.catalogue import gpus
from ..hardware.records import Gpu
from ..precision import PRECISIONS, PrecisionUnsupported
from . import communication, physics
from .achieved import achieved
from .dataset import LABELS, Table, specs_of
from .parameters import Parameters, inflation_of
from .posterior import Model, Posterior
from .profile import SCHEMA_VERSION, Floats
from .sheet import CardRow, card_row

# The stack plans are made for: the newest of which there are rows.
SOFTWARE_YEAR = 2025.5
NEW = "planned"
Z_80 = 1.2815515655446004

Mask = NDArray[np.bool_]


def profile_body(p: Parameters, one: Table) -> dict[str, Any]:
    """The profile's JSON. one: the measured one-GPU rows."""
    model = p.model
    posterior = Posterior(model, one, inflation_of(p.inflation, one.index))
    measured = set(one.labels["gpu"])
    architectures = set(one.labels["architecture"])
    cards = {}
    for gpu in gpus():
        tier = (
            "measured_card"
            if gpu.id in measured
            else "measured_architecture"
            if gpu.architecture in architectures
            else "datasheet"
        )
        cards[gpu.id] = {
            "tier": tier,
            "achieved_flops": {u: round(v) for u, v in achieved()[gpu.id].flops.items()},
            "achieved_source": dict(achieved()[gpu.id].source),
            "multipliers": _multipliers(gpu, posterior, one),
        }
    links = model.communication
    prior = scaling.links()
    named = model.hyper.named
    offsets = sum(float(v) ** 2 for name, v in named.items() if name.startswith("o_"))
    return {
        "schema_version": SCHEMA_VERSION,
        "made": p.made,
        "data_sha256": p.data_sha256,
        "software_year": SOFTWARE_YEAR,
        "coefficients": _coefficients(model),
        "cards": cards,
        "recipe_sd": round(float(np.sqrt(offsets + float(named["noise_other"]) ** 2)), 4),
        "hidden_by": {name: round(float(links.hidden[i]), 4) for i, name in enumerate(communication.HIDDEN)},
        "links": {
            name: round(prior[name].bandwidth_bytes_per_second * float(np.exp(links.log_factor[i])))
            for i, name in enumerate(communication.LINKS)
        },
        "band_factors": band_factors(p, one),
    }


def _coefficients(model: Model) -> dict[str, Any]:
    c = model.coefficients
    return {
        name: np.asarray(getattr(c, name)).round(9).tolist()
        if np.ndim(getattr(c, name))
        else float(np.format_float_scientific(getattr(c, name), 6))
        for name in physics.PRIOR
    }


def _multipliers(gpu: Gpu, posterior: Posterior, one: Table) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for precision in PRECISIONS:
        try:
            row = card_row(gpu, precision, achieved()[gpu.id].flops)
        except (UnknownFigure, PrecisionUnsupported):
            continue
        if row.unit in found:
            continue
        kernels = posterior.kernels(_planned(gpu, row, one))
        covariance = posterior.multiplier_covariance(kernels, 0)
        found[row.unit] = {
            "log_multiplier": posterior.multipliers(kernels)[0].round(5).tolist(),
            "covariance_lower": covariance[np.tril_indices(len(covariance))].round(6).tolist(),
        }
    return found


def _planned(gpu: Gpu, row: CardRow, like: Table) -> Table:
    """One row of a plan on that card; only what kernels compare is filled in."""
    labels: Mapping[str, str] = {
        **dict.fromkeys(LABELS, NEW),
        "precision": row.unit,
        "architecture": gpu.architecture,
        "silicon": gpu.silicon,
        "gpu": gpu.id,
    }
    specs: Floats = np.array([[*specs_of(row), float(gpu.year), float(gpu.product_class == "geforce")]])
    return replace(
        like.take(np.array([0])),
        specs=specs,
        year=np.array([SOFTWARE_YEAR]),
        labels={name: np.array([value]) for name, value in labels.items()},
    )


def band_factors(p: Parameters, one: Table) -> dict[str, float]:
    """Factor on the sd that makes the 80 % band hold 80 % of rows left out as a plan would be.

    A measured card in a plan is a card with an unseen family; any other card is unseen as well. Nested: each
    family with the parameters fitted without it.
    """
    known, unknown = (_calibration(p, one, keys) for keys in (("family",), ("family", "gpu")))
    # A card nobody measured cannot be known better than one that was.
    unknown = max(known, unknown)
    return {"measured_card": known, "measured_architecture": unknown, "datasheet": unknown}


def _calibration(p: Parameters, one: Table, keys: tuple[str, ...]) -> float:
    """Quantile of |z| over rows whose groups are all left out, in units of the normal's."""
    z = np.empty(len(one))
    for family in sorted(set(one.labels["family"])):
        model, inflation = _without_family(p, str(family))
        whole = Posterior(model, one, inflation_of(inflation, one.index))
        in_family = one.labels["family"] == family
        for gone, chosen in _held_out(one, in_family, keys):
            target = one.take(chosen)
            predicted = whole.without(gone).predict(target)
            noise = model.noise(target, np.ones(len(target)))
            z[chosen] = np.abs(predicted.log_step - target.log_step) / np.sqrt(predicted.sd**2 + noise)
    return round(max(1.0, float(np.quantile(z, 0.8)) / Z_80), 4)


def _without_family(p: Parameters, family: str) -> tuple[Model, Mapping[int, float]]:
    for fold in p.folds.get("family", ()):
        if family in fold.groups:
            return Model(fold.vector, p.links), fold.inflation
    return p.model, p.inflation


def _held_out(one: Table, in_family: Mask, keys: tuple[str, ...]) -> list[tuple[Mask, Mask]]:
    """(rows to do without, rows to predict) of one family: all at once, or card by card."""
    if "gpu" not in keys:
        return [(in_family, in_family)]
    cards = one.labels["gpu"]
    return [
        (in_family | (cards == card), in_family & (cards == card)) for card in sorted(set(cards[in_family]))
    ]
