"""Fit everything and write the profile: what `make profiles` runs.

    python -m planner.models.calibration.make_profiles --date 2026-12-01 [--folds 6]

One GPU, then links, then the folds of the nested score (parameters fitted again without the scored groups,
from the priors), then profiles/parameters.json and profiles/fitted.json. Needs scipy and torch; about ten
minutes on two cores. Nothing is fitted while planning.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from . import parameters
from .dataset import Table, table_of
from .fit import Fit, fit
from .fit_links import fit_links
from .make_profile import profile_body
from .parameters import Fold, Parameters, inflation_of
from .posterior import Model
from .rows import read, scored

HERE = Path(__file__).parent
PROFILE = HERE / "profiles/fitted.json"
FOLD_ITERATIONS = 40
LINK_ITERATIONS = 20


def main() -> None:
    """Fit and write. Prints what it is at; the fits take minutes."""
    asked = argparse.ArgumentParser(description="Fit the profile that plans read")
    asked.add_argument("--date", required=True, help="written into the files as the day of the fit")
    asked.add_argument(
        "--folds", type=int, default=6, help="folds of GPU types for the nested score; 0: none"
    )
    arguments = asked.parse_args()
    table = table_of(scored(read(HERE / parameters.DATA)))
    one = table.take(table.gpu_count == 1)
    print(f"one GPU: {len(one)} rows", flush=True)
    best = fit(one)
    inflation = _inflation(one, best)
    print(f"several GPUs: {len(table)} rows", flush=True)
    links = fit_links(Model(best.vector), table, inflation_of(inflation, table.index), LINK_ITERATIONS)
    found = Parameters(
        made=arguments.date,
        data_sha256=parameters.data_sha256(),
        vector=best.vector,
        links=links,
        inflation=inflation,
        folds=folds(one, arguments.folds) if arguments.folds else {},
    )
    write(found, one)


def write(found: Parameters, one: Table) -> None:
    """Both files, the same bytes for the same parameters."""
    text = json.dumps(parameters.to_json(found), indent=1, sort_keys=True)
    (HERE / parameters.FILE).write_text(text + "\n", encoding="utf-8")
    # What is on file is rounded: the profile is made from that, as `validate` is.
    again = parameters.read(text, parameters.FILE)
    body = json.dumps(profile_body(again, one), separators=(",", ":"), sort_keys=True)
    PROFILE.write_text(body + "\n", encoding="utf-8")


def folds(one: Table, count: int) -> Mapping[str, tuple[Fold, ...]]:
    """GPU types in `count` folds, and each family in one of its own."""
    cards = sorted(set(one.labels["gpu"]))
    groups = {
        "gpu": [tuple(cards[i::count]) for i in range(count)],
        "family": [(name,) for name in sorted(set(one.labels["family"]))],
    }
    # Each fit runs on one thread, so that it repeats exactly; two at a time halve the wait.
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        asked = {
            key: [pool.submit(_fold, one, key, names) for names in lists] for key, lists in groups.items()
        }
        return {key: tuple(each.result() for each in folds) for key, folds in asked.items()}


def _fold(one: Table, key: str, names: tuple[str, ...]) -> Fold:
    print(f"fold without {key} {', '.join(names)}", flush=True)
    rest = one.take(~np.isin(one.labels[key], names))
    best = fit(rest, iterations=FOLD_ITERATIONS)
    return Fold(names, best.vector, _inflation(rest, best))


def _inflation(table: Table, best: Fit) -> dict[int, float]:
    return {int(i): round(float(v), 3) for i, v in zip(table.index, best.inflation, strict=True) if v > 1}


if __name__ == "__main__":
    main()
