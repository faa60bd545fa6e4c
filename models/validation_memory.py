"""Predicted peak memory against published measurements: every row scored, or listed with the reason why not.

Measured rows are held to the kind of figure their source states (allocated, reserved, device use by NVML), so
that nobody's cache is compared with somebody's tensors. A bracket row (ran at one batch, failed at the next
rung) asks for the largest batch. No row's measured column is looked at while it is predicted.
"""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from . import memory_terms
from .errors import BadData, ModelsError
from .memory_baselines import baseline_bytes
from .memory_features import feature
from .memory_runs import NotCovered, Run, read_run
from .vram import MemoryEstimate, estimate_memory, max_micro_batch

SHIPPED_ROWS = Path(__file__).parent / "calibration" / "data" / "vram.csv"
GIB = 2**30
MEASURED = ("allocated", "reserved", "nvml")
KINDS = (*MEASURED, "bracket", "fits", "oom")

_COLUMNS = (
    *("row_id", "source_group", "kind", "model", "gpu", "framework", "precision", "optimizer"),
    *("batch_per_gpu", "seq_or_image", "grad_checkpointing", "parallelism", "method", "peak_GiB_measured"),
    *("fits", "what_is_measured", "notes"),
)
_PEERS = ("xMem", "DNNMem", "SchedTune", "LLMem")


@dataclass(frozen=True, slots=True)
class Scored:
    """One row and what became of it.

    predicted, low, high: GiB of the figure the source states; for a bracket, the largest batch on P50 and the
        ones on P95. low to high is meant to hold nine of ten.
    ape: |predicted - measured| / measured, measured rows only.   inside: the verdict of the other kinds.
    reason: why the row is not covered; then all else is empty.
    baselines: other estimates of the same figure, GiB. said_yes: for a batch that failed (the next rung of a
        bracket, an out-of-memory report), whether we ("ours") and each rule said that it fits.
    adapters: whether it trains adapters only.
    """

    row: Mapping[str, str]
    figure: str = ""
    predicted: float | None = None
    low: float | None = None
    high: float | None = None
    measured: float | None = None
    ape: float | None = None
    inside: bool | None = None
    said_no: bool | None = None
    baselines: Mapping[str, float] | None = None
    said_yes: Mapping[str, bool] | None = None
    tier: str = ""
    reason: str = ""
    adapters: bool = False


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """All rows, and their errors as fractions."""

    scored: tuple[Scored, ...]

    def to_json(self) -> dict[str, Any]:
        """The answer of `planner validate memory`.

        The headline errors are over measured rows that train all weights; those of adapters stand in
        `groups` ("adapters") and, by what was measured, in `by_kind`.
        """
        full = [row for row in self.scored if row.ape is not None and not row.adapters]
        by_kind: dict[str, list[Scored]] = {kind: [] for kind in KINDS}
        groups: dict[str, list[Scored]] = defaultdict(list)
        for row in self.scored:
            if not row.reason:
                by_kind[row.figure].append(row)
            groups[row.row["source_group"]].append(row)
            if not row.reason:
                groups["adapters" if row.adapters else "full training"].append(row)
        return {
            **_figures(self.scored),
            **_errors(full),
            "groups": {name: _figures(rows) for name, rows in sorted(groups.items())},
            "by_kind": {name: _figures(rows) for name, rows in sorted(by_kind.items())},
            "baselines": _baselines(full, self.scored),
        }

    def rows(self) -> list[dict[str, str]]:
        """Each input row with predicted, low, high, tier, ape, inside, or the reason it was not covered."""
        return [
            {
                **row.row,
                "predicted": _text(row.predicted),
                "low": _text(row.low),
                "high": _text(row.high),
                "tier": row.tier,
                "ape": _text(row.ape),
                "inside": "" if row.inside is None else ("yes" if row.inside else "no"),
                "not_covered": row.reason,
            }
            for row in self.scored
        ]


def validate_memory(
    csv_path: str | Path = SHIPPED_ROWS, leave_out: Literal["source"] | None = None
) -> MemoryReport:
    """Score every row of a file with the columns of vram.csv; extra columns are ignored.

    leave_out: "source" takes every constant that was read off a row's own source group out of the table
        before that row is predicted.
    Raises BadData where the file cannot be read or lacks a column. Rows whose model is not in the shipped
    features are traced (needs torch, seconds each) and kept for the next time.
    """
    return MemoryReport(tuple(_score(row, leave_out) for row in read_rows(Path(csv_path))))


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a file with the columns of vram.csv. Raises BadData naming file and column."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            rows = [{name: value or "" for name, value in row.items() if name} for row in reader]
            columns = reader.fieldnames or ()
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadData(f"{path}: not readable as CSV ({error})") from error
    missing = [name for name in _COLUMNS if name not in columns]
    if missing:
        raise BadData(f"{path}: no column {', '.join(missing)}; it needs {', '.join(_COLUMNS)}")
    return rows


def _score(row: Mapping[str, str], leave_out: str | None) -> Scored:
    try:
        run = read_run(row)
        without = row["source_group"] if leave_out == "source" else ""
        return _scored(row, run, without)
    except NotCovered as reason:
        return Scored(row=row, reason=str(reason))
    except ModelsError as error:
        return Scored(row=row, reason=f"no estimate: {error}")


def _scored(row: Mapping[str, str], run: Run, without: str) -> Scored:
    from .hardware.catalogue import gpu

    summary, card = feature(run), gpu(run.gpu)
    terms = memory_terms.card_terms(card, run.gpu_count, run.cuda, without)
    settings: dict[str, Any] = {
        "precision": run.precision,
        "gpu_count": run.gpu_count,
        "strategy": run.strategy,
        "accumulation": 2 if run.keeps_gradients else 1,
        "terms": terms,
    }
    estimate = estimate_memory(summary, card, micro_batch=run.batch, **settings)
    base = Scored(row=row, figure=run.figure, tier=estimate.tier, said_no=estimate.fits == "no")
    base = replace(base, adapters=run.adapters)
    rules = baseline_bytes(run, summary.parameters)
    if run.figure in MEASURED:
        return _measured(base, run, estimate, rules)
    if run.figure == "bracket" and run.failed_batch is not None:
        p50 = max_micro_batch(summary, card, quantile="p50", **settings)
        p95 = max_micro_batch(summary, card, **settings)
        inside = run.batch <= p50 < run.failed_batch
        said_yes = _said_yes(rules, terms.capacity_bytes, p95 >= run.failed_batch)
        return replace(
            base, predicted=float(p50), low=float(p95), high=float(p50), inside=inside, said_yes=said_yes
        )
    low, predicted, high = _interval(estimate, "nvml")
    base = replace(base, predicted=predicted, low=low, high=high)
    if run.figure == "oom":
        said_yes = _said_yes(rules, terms.capacity_bytes, estimate.fits == "yes")
        return replace(base, inside=estimate.fits != "yes", said_yes=said_yes)
    return replace(base, inside=estimate.fits != "no")


def _said_yes(rules: Mapping[str, int], capacity_bytes: int, ours: bool) -> dict[str, bool]:
    """Whether each rule calls fitting what has failed. They know no batch, so it is the same for all."""
    return {"ours": ours, **{name: size <= capacity_bytes for name, size in rules.items()}}


def _measured(base: Scored, run: Run, estimate: MemoryEstimate, rules: Mapping[str, int]) -> Scored:
    try:
        measured = float(base.row["peak_GiB_measured"])
    except ValueError as error:
        raise NotCovered("measured row without a figure in GiB") from error
    if not 0 < measured < float("inf"):
        raise NotCovered("measured row without a figure in GiB")
    low, predicted, high = _interval(estimate, run.figure)
    baselines = {name: size / GIB for name, size in rules.items()}
    for peer in _PEERS:
        found = re.search(rf"{peer} ([\d.]+) GiB", base.row["notes"])
        if found:
            baselines[peer] = float(found[1])
    return replace(
        base,
        predicted=predicted,
        low=low,
        high=high,
        measured=measured,
        ape=abs(predicted - measured) / measured,
        baselines=baselines,
    )


def _interval(estimate: MemoryEstimate, figure: str) -> tuple[float, float, float]:
    """(low, P50, high) in GiB; the band is as wide below as P95 is above."""
    quantiles = {
        "allocated": estimate.allocated_bytes,
        "reserved": estimate.reserved_bytes,
        "nvml": estimate.process_bytes,
    }[figure]
    p50, p95 = quantiles.p50 / GIB, quantiles.p95 / GIB
    return p50 * p50 / p95, p50, p95


def _errors(rows: Sequence[Scored]) -> dict[str, float | None]:
    apes = [row.ape for row in rows if row.ape is not None]
    if not apes:
        names = ("median_ape", "mean_ape", "p90_ape", "interval_coverage", "median_band_width")
        return dict.fromkeys((*names, "under_by_5_percent"))
    known = [
        (row.low, row.predicted, row.high, row.measured)
        for row in rows
        if row.low is not None and row.predicted and row.high is not None and row.measured
    ]
    return {
        "median_ape": _quantile(apes, 0.5),
        "mean_ape": sum(apes) / len(apes),
        "p90_ape": _quantile(apes, 0.9),
        "interval_coverage": sum(low <= m <= high for low, _, high, m in known) / len(known),
        "median_band_width": _quantile(
            ((high - low) / (2 * predicted) for low, predicted, high, _ in known), 0.5
        ),
        "under_by_5_percent": sum(predicted < 0.95 * m for _, predicted, _, m in known) / len(known),
    }


def _figures(rows: Sequence[Scored]) -> dict[str, Any]:
    """Coverage, errors of the measured rows among `rows`, and how often the verdicts on the others hold."""
    verdicts = [row for row in rows if row.inside is not None]
    ran = [row for row in verdicts if row.figure != "oom"]
    return {
        "rows": len(rows),
        "scored": sum(not row.reason for row in rows),
        "not_covered": dict(Counter(row.reason for row in rows if row.reason).most_common()),
        **_errors([row for row in rows if row.ape is not None]),
        "inside": sum(bool(row.inside) for row in verdicts) / len(verdicts) if verdicts else None,
        "said_no_but_ran": sum(bool(row.said_no) for row in ran) / len(ran) if ran else None,
    }


def _baselines(full: Sequence[Scored], scored: Sequence[Scored]) -> dict[str, Any]:
    """Other estimates on the rows that state or have them, ours beside them on the same rows.

    Errors are over measured full-training rows. failed: batches that ran out of memory, of which each rule
    said "fits" in a share of said_yes_but_failed (None where it says nothing of them).
    """
    found: dict[str, list[tuple[float, Scored]]] = defaultdict(list)
    for row in full:
        for name, value in (row.baselines or {}).items():
            found[name].append((value, row))
    answer: dict[str, Any] = {}
    for name, pairs in found.items():
        theirs = [
            replace(row, predicted=value, low=value, high=value, ape=abs(value - row.measured) / row.measured)
            for value, row in pairs
            if row.measured
        ]
        ours = _errors([row for _, row in pairs])
        said = [row.said_yes for row in scored if row.said_yes is not None and name in row.said_yes]
        answer[name] = {
            "rows": len(theirs),
            "scored": len(theirs),
            **_errors(theirs),
            **{
                f"ours_{key}": ours[key]
                for key in ("median_ape", "mean_ape", "p90_ape", "under_by_5_percent")
            },
            "failed": len(said),
            "said_yes_but_failed": _share(one[name] for one in said),
            "ours_said_yes_but_failed": _share(one["ours"] for one in said),
        }
    return answer


def _share(flags: Iterable[bool]) -> float | None:
    known = list(flags)
    return sum(known) / len(known) if known else None


def _quantile(values: Iterable[float], share: float) -> float:
    import numpy as np

    return float(np.quantile(list(values), share))


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def accuracy_rows(limit: int | None = None) -> list[dict[str, Any]]:
    """Well-known measured rows for a table: label, card, kind of figure, measured and predicted GiB, error.

    error: (predicted - measured) / measured, signed; the row's source names repository and path.
    """
    rows = [row for row in validate_memory().scored if row.ape is not None]
    return [_accuracy_row(row) for row in rows[:limit]]


def _accuracy_row(scored: Scored) -> dict[str, Any]:
    row = scored.row
    assert scored.predicted is not None
    assert scored.measured is not None
    accumulation = ", accumulating" if "accumulation" in row["notes"] else ""
    checkpointing = ", checkpointing" if row["grad_checkpointing"] == "yes" else ""
    method = f", {row['method'].split(' (')[0]}" if scored.adapters else ""
    how = f"{row['precision']}, {row['optimizer']}{method}{checkpointing}{accumulation}"
    return {
        "row_id": row["row_id"],
        "workload": f"{row['model']}, {how}",
        "batch": row["batch_per_gpu"],
        "size": row["seq_or_image"],
        "gpu": row["gpu"],
        "figure": scored.figure,
        "measured_gib": scored.measured,
        "predicted_gib": round(scored.predicted, 2),
        "error": scored.predicted / scored.measured - 1,
        "source": f"{row.get('source_repo', '')} {row.get('source_path', '')}".strip(),
    }


def runs_of(rows: Iterable[Mapping[str, str]]) -> list[Run]:
    """The runs behind all rows that are in scope; what the shipped features are made for."""
    runs = []
    for row in rows:
        try:
            runs.append(read_run(row))
        except NotCovered:
            continue
    return runs
