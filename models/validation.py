"""Predicted against published: how right the step-time estimates are, on rows like those of throughput.csv.

    validate_throughput(path)                      the shipped fit
    validate_throughput(path, leave_out="gpu")     each card predicted without its rows
    validate_throughput(path, leave_out="gpu", nested=True)    and with parameters fitted without them

Answers in the keys of the `planner validate throughput` contract. A row is predicted without its measured
column; every row is scored or listed with a reason. Memory has its own module, validation_memory.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .calibration import baselines, parameters
from .calibration.dataset import Table, table_of, usable
from .calibration.parameters import Fold, Parameters, inflation_of
from .calibration.posterior import Model, Posterior
from .calibration.profile import Floats
from .calibration.rows import Row, read, scored
from .errors import BadData
from .throughput import Z_80

LeaveOut = Literal["gpu", "family", "host", "source"]
LEAVE_OUT: tuple[LeaveOut, ...] = ("gpu", "family", "host", "source")
# Pairs of cards that measure closer than this are not compared: a fraction of the slower one.
PAIR_GAPS = {"pairs_over_3_percent": 0.03, "pairs_over_10_percent": 0.10}


@dataclass(frozen=True, slots=True)
class RowResult:
    """One row of the file. throughputs in the row's own unit; `reason` where it was not covered."""

    row: Row
    predicted: float | None
    low: float | None
    high: float | None
    tier: str
    ape: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class ThroughputReport:
    """`body`: the contract's keys, JSON-ready. `rows`: one result for each row of the file, in order."""

    body: dict[str, Any]
    rows: tuple[RowResult, ...]


def validate_throughput(
    path: Path | str, leave_out: LeaveOut | None = None, nested: bool = False
) -> ThroughputReport:
    """Predict every row of `path` and score those with a measured value.

    leave_out: condition the fit without the rows of the same card, family, host type or source.
    nested: predict also with the parameters fitted without the scored groups ("gpu" or "family").
    Raises OSError and BadData for a file that is no such table, ValueError for nested without its folds.
    """
    try:
        rows = usable(read(Path(path)))
    except (KeyError, UnicodeDecodeError) as error:
        raise BadData(f"{path}: not a table of throughput rows (column {error} is missing)") from error
    covered = [row for row in rows if row.covered]
    if not covered:
        return _report(rows, covered, np.empty(0), np.empty(0), None)
    target, fit = table_of(covered), parameters.shipped()
    log_step, sd = predict(fit.model, fit.inflation, target, leave_out)
    report = _report(rows, covered, log_step, sd, target)
    if nested:
        if leave_out is None or leave_out not in fit.folds:
            raise ValueError(f'nested needs leave_out to be one of {", ".join(fit.folds)}; got "{leave_out}"')
        log_step, sd = _nested(fit, target, leave_out)
        report.body["nested"] = _report(rows, covered, log_step, sd, target).body
    return report


def predict(
    model: Model, inflation: Mapping[int, float], target: Table, leave_out: str | None
) -> tuple[Floats, Floats]:
    """(log step seconds, sd with noise) of each row of `target`, whose measured values are not looked at.

    Rows on one GPU learn from rows on one GPU; rows on several from all.
    """
    train = _train()
    log_step, sd = np.empty(len(target)), np.empty(len(target))
    for several in (False, True):
        asked = (target.gpu_count > 1) == several
        if not asked.any():
            continue
        known = train if several else train.take(train.gpu_count == 1)
        whole = Posterior(model, known, inflation_of(inflation, known.index))
        for chosen, gone in _groups(target, known, asked, leave_out):
            rows = target.take(chosen)
            found = whole.without(gone).predict(rows)
            noise = model.noise(rows, np.ones(len(rows)))
            log_step[chosen], sd[chosen] = found.log_step, np.sqrt(found.sd**2 + noise)
    return log_step, sd


@cache
def _train() -> Table:
    """The packaged rows that were measured."""
    return table_of(scored(read(parameters.data_path())))


Mask = NDArray[np.bool_]


def _groups(target: Table, known: Table, asked: Mask, leave_out: str | None) -> list[tuple[Mask, Mask]]:
    """(rows to predict, known rows to do without), one for each group."""
    if leave_out is None:
        return [(asked, np.zeros(len(known), dtype=bool))]
    labels = target.labels[leave_out]
    return [
        (asked & (labels == name), known.labels[leave_out] == name) for name in sorted(set(labels[asked]))
    ]


def _nested(fit: Parameters, target: Table, leave_out: str) -> tuple[Floats, Floats]:
    """As `predict`, each fold's rows with the parameters fitted without them."""
    log_step, sd = predict(fit.model, fit.inflation, target, leave_out)
    for fold in fit.folds[leave_out]:
        chosen = np.isin(target.labels[leave_out], fold.groups)
        if chosen.any():
            log_step[chosen], sd[chosen] = predict(
                _fold_model(fit, fold), fold.inflation, target.take(chosen), leave_out
            )
    return log_step, sd


def _fold_model(fit: Parameters, fold: Fold) -> Model:
    return Model(fold.vector, fit.links)


def _report(
    rows: Sequence[Row], covered: Sequence[Row], log_step: Floats, sd: Floats, target: Table | None
) -> ThroughputReport:
    results = _results(rows, covered, log_step, sd, target)
    good = [r for r in results if r.ape is not None]
    reasons = Counter(r.reason for r in results if r.ape is None)
    body: dict[str, Any] = {
        "rows": len(rows),
        "scored": len(good),
        "not_covered": dict(sorted(reasons.items())),
        **scores(good),
        "groups": {
            f"{key}:{name}": scores([r for r in good if getattr(r.row, key) == name])
            for key in ("gpu", "family", "source", "model", "precision")
            for name in sorted({getattr(r.row, key) for r in good})
        },
        "by_kind": {
            name: scores([r for r in good if (r.row.gpu_count == 1) == one])
            for name, one in (("one_gpu", True), ("several_gpus", False))
        },
    }
    if target is not None:
        body["baselines"] = _baselines(results, covered, target)
    body.update({name: _pairs(good, gap) for name, gap in PAIR_GAPS.items()})
    body["scaling"] = _scaling(good)
    return ThroughputReport(body, tuple(results))


def _results(
    rows: Sequence[Row], covered: Sequence[Row], log_step: Floats, sd: Floats, target: Table | None
) -> list[RowResult]:
    at = {id(row): i for i, row in enumerate(covered)}
    found = []
    for row in rows:
        i = at.get(id(row))
        if i is None or target is None:
            found.append(RowResult(row, None, None, None, "", None, row.reason))
            continue
        predicted = float(target.samples[i] / np.exp(log_step[i]) / row.samples_per_unit)
        spread = float(np.exp(Z_80 * sd[i]))
        ape = abs(predicted - row.throughput) / row.throughput if row.throughput else None
        found.append(
            RowResult(
                *(row, predicted, predicted / spread, predicted * spread, "published_runs", ape),
                "" if ape is not None else "no measured value",
            )
        )
    return found


def scores(results: Sequence[RowResult]) -> dict[str, Any]:
    """Errors of scored rows as fractions; None where there are none."""
    if not results:
        names = ("median_ape", "mean_ape", "p90_ape", "interval_coverage", "median_band_width")
        return {"scored": 0, **dict.fromkeys(names)}
    ape = np.array([r.ape for r in results], dtype=np.float64)
    held = [_low(r) <= _measured(r) <= _high(r) for r in results]
    width = [(_high(r) - _low(r)) / (2 * _predicted(r)) for r in results]
    return {
        "scored": len(results),
        "median_ape": _rounded(np.median(ape)),
        "mean_ape": _rounded(ape.mean()),
        "p90_ape": _rounded(np.quantile(ape, 0.9)),
        "interval_coverage": _rounded(np.mean(held)),
        "median_band_width": _rounded(np.median(width)),
    }


def _baselines(results: Sequence[RowResult], covered: Sequence[Row], target: Table) -> dict[str, Any]:
    """The same rows by three simpler rules; see calibration/baselines.py."""
    by_row = {id(r.row): r for r in results}
    answer: dict[str, Any] = {}
    for name, log_step in baselines.predictions(target).items():
        apes = []
        for i, row in enumerate(covered):
            measured = by_row[id(row)].row.throughput
            if measured and np.isfinite(log_step[i]):
                predicted = target.samples[i] / np.exp(log_step[i]) / row.samples_per_unit
                apes.append(abs(predicted - measured) / measured)
        values = np.array(apes)
        answer[name] = {
            "scored": len(values),
            **{
                key: _rounded(value) if len(values) else None
                for key, value in (
                    ("median_ape", np.median(values) if len(values) else 0.0),
                    ("mean_ape", values.mean() if len(values) else 0.0),
                    ("p90_ape", np.quantile(values, 0.9) if len(values) else 0.0),
                )
            },
        }
    return answer


def _pairs(good: Sequence[RowResult], gap: float) -> dict[str, int]:
    """Pairs of cards on the same workload, precision and stack, and how many are put in the right order."""
    same: dict[tuple[object, ...], list[RowResult]] = {}
    for r in good:
        if r.row.gpu_count == 1 and r.row.recipe is not None:
            key = (r.row.recipe.id, r.row.model, r.row.recipe.size, r.row.precision, r.row.year)
            same.setdefault(key, []).append(r)
    compared = ordered = 0
    for results in same.values():
        for i, a in enumerate(results):
            for b in results[i + 1 :]:
                ratio = _measured(a) / _measured(b)
                if a.row.gpu == b.row.gpu or max(ratio, 1 / ratio) < 1 + gap:
                    continue
                compared += 1
                ordered += (_predicted(a) > _predicted(b)) == (ratio > 1)
    return {"compared": compared, "ordered": ordered}


def _scaling(good: Sequence[RowResult]) -> dict[str, Any]:
    """Efficiency of n GPUs against one of the same host, predicted minus measured, in points."""
    one: dict[tuple[object, ...], RowResult] = {}
    for r in good:
        if r.row.gpu_count == 1:
            one[_scaling_key(r.row)] = r
    points = []
    for r in good:
        base = one.get(_scaling_key(r.row)) if r.row.gpu_count > 1 else None
        if base is not None:
            measured = _measured(r) / _measured(base) / r.row.gpu_count
            predicted = _predicted(r) / _predicted(base) / r.row.gpu_count
            points.append(abs(predicted - measured) * 100)
    return {"compared": len(points), "mean_abs_points": _rounded(np.mean(points)) if points else None}


def _scaling_key(row: Row) -> tuple[object, ...]:
    return (row.host, row.model, row.precision, row.batch, row.recipe and row.recipe.size)


def _measured(r: RowResult) -> float:
    assert r.row.throughput is not None
    return r.row.throughput


def _predicted(r: RowResult) -> float:
    assert r.predicted is not None
    return r.predicted


def _low(r: RowResult) -> float:
    assert r.low is not None
    return r.low


def _high(r: RowResult) -> float:
    assert r.high is not None
    return r.high


def _rounded(value: Any) -> float:
    return round(float(value), 4)
