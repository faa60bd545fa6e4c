"""The fitted parameters on file: what `validate` conditions with, and the profile is made from.

profiles/parameters.json, made by fit.py. Vectors are those of vector.py and communication.py; inflation
holds the rows of throughput.csv whose noise was raised as outliers, by row number; folds hold vectors fitted
again without groups of cards or families, for the nested score.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BadData
from .dataset import Ints
from .posterior import Model
from .profile import Floats

FILE = "profiles/parameters.json"
DATA = "data/throughput.csv"
FEATURES = "data/features.json.gz"
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Fold:
    """Parameters fitted without the rows of these groups."""

    groups: tuple[str, ...]
    vector: Floats
    inflation: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Parameters:
    """made: date given to the fit. data_sha256: of the tables it read."""

    made: str
    data_sha256: str
    vector: Floats
    links: Floats | None
    inflation: Mapping[int, float]
    folds: Mapping[str, tuple[Fold, ...]]

    @property
    def model(self) -> Model:
        return Model(self.vector, self.links)


def inflation_of(rows: Mapping[int, float], index: Ints) -> Floats:
    """Noise factors of rows by number; 1 where a row is not listed."""
    return np.array([rows.get(int(i), 1.0) for i in index])


def data_sha256() -> str:
    """Of throughput.csv and the features table, in that order."""
    digest = hashlib.sha256()
    for name in (DATA, FEATURES):
        digest.update(files(__package__).joinpath(name).read_bytes())
    return digest.hexdigest()


@cache
def shipped() -> Parameters:
    """The parameters in the package. Raises BadData where they do not read back."""
    return read(files(__package__).joinpath(FILE).read_text(encoding="utf-8"), FILE)


def read(text: str, where: str) -> Parameters:
    """Parse; `where` is named in errors. Raises BadData."""
    try:
        body = json.loads(text)
        if body["schema_version"] != SCHEMA_VERSION:
            raise BadData(f"{where}: schema_version {body['schema_version']}; make it again: make profiles")
        return Parameters(
            made=body["made"],
            data_sha256=body["data_sha256"],
            vector=np.array(body["vector"]),
            links=None if body["links"] is None else np.array(body["links"]),
            inflation=_inflation(body["inflation"]),
            folds={
                key: tuple(
                    Fold(tuple(f["groups"]), np.array(f["vector"]), _inflation(f["inflation"])) for f in folds
                )
                for key, folds in body["folds"].items()
            },
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadData(f"{where}: not fitted parameters ({type(error).__name__}: {error})") from error


def to_json(p: Parameters) -> dict[str, Any]:
    """Plain values, rounded to what matters so that the file is the same on every machine."""
    return {
        "schema_version": SCHEMA_VERSION,
        "made": p.made,
        "data_sha256": p.data_sha256,
        "vector": _rounded(p.vector),
        "links": None if p.links is None else _rounded(p.links),
        "inflation": {str(k): round(v, 3) for k, v in sorted(p.inflation.items())},
        "folds": {
            key: [
                {
                    "groups": list(f.groups),
                    "vector": _rounded(f.vector),
                    "inflation": {str(k): round(v, 3) for k, v in sorted(f.inflation.items())},
                }
                for f in folds
            ]
            for key, folds in sorted(p.folds.items())
        },
    }


def _rounded(values: Floats) -> list[float]:
    return [round(float(v), 6) for v in values]


def _inflation(body: Mapping[str, float]) -> dict[int, float]:
    return {int(k): float(v) for k, v in body.items()}


def data_path() -> Path:
    """The packaged throughput.csv."""
    return Path(__file__).parent / DATA
