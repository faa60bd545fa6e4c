"""The fitted profile: what planning reads of all that was learned from measurements.

One JSON file, made by `make profiles` (python -m planner.models.calibration.fit), never edited by hand:
coefficients of `physics.py`, and for each catalogue card its achieved matmul rates and, per unit, a log
multiplier for each group of op classes with their covariance.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BadData
from .physics import GROUPS, Coefficients

SCHEMA_VERSION = 1
FILE = "profiles/fitted.json"

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ClassMultipliers:
    """What one card's units make of each group of op classes, relative to physics.

    log_multiplier: (groups,), natural log of seconds. covariance: (groups, groups).
    """

    log_multiplier: Floats
    covariance: Floats


@dataclass(frozen=True, slots=True)
class CardProfile:
    """achieved_flops: unit ("fp32", "tf32", "half") -> sustained dense rate on large products. [FLOP/s]

    tier: "measured_card" (training runs of this card are in the fit), "measured_architecture" or "datasheet".
    """

    achieved_flops: Mapping[str, float]
    achieved_source: Mapping[str, str]
    tier: str
    multipliers: Mapping[str, ClassMultipliers]


@dataclass(frozen=True, slots=True)
class Profile:
    """software_year: the stack that estimates are made for.

    recipe_sd: spread between recipes of one workload, with noise (natural log). hidden_by: strategy class ->
    how much of a step hides communication. links: class -> fitted effective bandwidth [B/s]. band_factors:
    tier -> factor on the sd that makes the 80 % band hold 80 % of left-out rows.
    """

    made: str
    data_sha256: str
    coefficients: Coefficients
    software_year: float
    cards: Mapping[str, CardProfile]
    recipe_sd: float
    hidden_by: Mapping[str, float]
    links: Mapping[str, float]
    band_factors: Mapping[str, float]


@cache
def fitted() -> Profile:
    """The shipped profile. Raises BadData where it does not read back."""
    return read(files(__package__).joinpath(FILE).read_text(encoding="utf-8"), FILE)


def read(text: str, where: str) -> Profile:
    """Parse a profile; `where` is named in errors. Raises BadData."""
    try:
        body = json.loads(text)
        if body["schema_version"] != SCHEMA_VERSION:
            raise BadData(f"{where}: schema_version {body['schema_version']}; make it again: make profiles")
        return Profile(
            made=body["made"],
            data_sha256=body["data_sha256"],
            coefficients=coefficients(body["coefficients"]),
            software_year=float(body["software_year"]),
            cards={name: _card(card) for name, card in body["cards"].items()},
            recipe_sd=float(body["recipe_sd"]),
            hidden_by={name: float(value) for name, value in body["hidden_by"].items()},
            links={name: float(value) for name, value in body["links"].items()},
            band_factors={name: float(value) for name, value in body["band_factors"].items()},
        )
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise BadData(f"{where}: not a profile ({type(error).__name__}: {error})") from error


def coefficients(body: Mapping[str, Any]) -> Coefficients:
    """Coefficients of plain lists and numbers as numpy values."""
    return Coefficients(**{key: np.asarray(value, dtype=np.float64) for key, value in body.items()})


def _card(body: Mapping[str, Any]) -> CardProfile:
    return CardProfile(
        achieved_flops=body["achieved_flops"],
        achieved_source=body["achieved_source"],
        tier=body["tier"],
        multipliers={unit: _multipliers(row) for unit, row in body["multipliers"].items()},
    )


def _multipliers(row: Mapping[str, Any]) -> ClassMultipliers:
    count = len(GROUPS)
    lower = np.zeros((count, count))
    lower[np.tril_indices(count)] = row["covariance_lower"]
    return ClassMultipliers(np.asarray(row["log_multiplier"], dtype=np.float64), lower + np.tril(lower, -1).T)
