"""Writes README's tables of predicted against published runs: `make accuracy`.

The rows are those of accuracy_rows.toml. A speed is predicted from the fit without any row of the same card;
a memory peak from the trace and constants that were not read off the row's own source.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.models import validation, validation_memory
from planner.reports.tabular import Cell, to_markdown
from planner.reports.validation_page import report_body, report_rows

HERE = Path(__file__).parent
DATA = Path(validation.__file__).parent / "calibration" / "data"
_BETWEEN = re.compile(r"(<!-- accuracy: begin -->\n).*?(<!-- accuracy: end -->)", re.DOTALL)


def chosen(rows: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, str]]) -> list[Mapping[str, Any]]:
    """The one row that each choice describes. Raises SystemExit where there is none, or more than one."""
    found = []
    for choice in wanted:
        hits = [row for row in rows if all(str(row[key]) == value for key, value in choice.items())]
        if len(hits) != 1:
            raise SystemExit(f"{len(hits)} rows are {dict(choice)}; accuracy_rows.toml must describe one")
        found.append(hits[0])
    return found


def throughput_table(wanted: Sequence[Mapping[str, str]]) -> str:
    """Published and predicted speed of each chosen row, and what all rows together say."""
    file = DATA / "throughput.csv"
    report = validation.validate_throughput(file, leave_out="gpu", nested=True)
    rows: list[dict[str, Cell]] = [
        {
            "workload": row["model"],
            "on": f"{row['n_gpus']}× {row['gpu']}" if row["n_gpus"] != "1" else row["gpu"],
            "precision": row["precision"],
            "batch per GPU": row["batch_per_gpu"],
            "published": row["throughput"].removesuffix(".0"),
            "predicted": _figure(row["predicted"]),
            "80 % band": _band(row),
            "unit": row["unit"],
            "error": _error(row["predicted"], row["throughput"], row["not_covered"]),
            "source": row["source_repo"],
        }
        for row in chosen(report_rows(file, report), wanted)
    ]
    body = report_body(report)
    again = body["nested"]
    nested = (
        "With what all cards share fitted again without the card as well, the median error is "
        f"{_percent(again['median_ape'])}, nine of ten within {_percent(again['p90_ape'])}.\n\n"
    )
    return (
        _headline("Speed", body, "each card predicted without its own rows", "throughput", file, "gpu")
        + nested
        + to_markdown(rows)
    )


def memory_table(wanted: Sequence[Mapping[str, str]]) -> str:
    """Published and predicted peaks; where only batches were tried, the largest that fits."""
    file = DATA / "vram.csv"
    report = validation_memory.validate_memory(file, leave_out="source")
    rows: list[dict[str, Cell]] = []
    for row in chosen(report_rows(file, report), wanted):
        measured = row["peak_GiB_measured"]
        rows.append(
            {
                "workload": row["model"],
                "on": row["gpu"],
                "precision": row["precision"],
                "trained by": _trained_by(row),
                "batch": row["batch_per_gpu"] if measured else "largest",
                "size": row["seq_or_image"],
                "published": f"{measured} GiB" if measured else row["fits"],
                "predicted": f"{_figure(row['predicted'])}{' GiB' if measured else ''}",
                "90 % band": _band(row),
                "error": _error(row["predicted"], measured, row["not_covered"])
                if measured
                else f"in bracket: {row['inside']}",
                "source": row["source_repo"],
            }
        )
    body = report_body(report)
    adapters = body["groups"]["adapters"]
    measured = sum(
        bool(row["peak_GiB_measured"]) and row["predicted"] not in (None, "") and not _adapts(row)
        for row in report_rows(file, report)
    )
    return (
        _headline(
            "Memory", body, "no constant read off the row's own source", "memory", file, "source", measured
        )
        + f"Those train all weights. LoRA, QLoRA and Adapter ({adapters['scored']} rows): median error "
        f"{_percent(adapters['median_ape'])}, nine of ten within {_percent(adapters['p90_ape'])}, "
        f"{_percent(adapters['inside'])} of the runs out of memory foreseen.\n\n" + to_markdown(rows)
    )


def _adapts(row: Mapping[str, str]) -> bool:
    return row["method"].startswith(("LoRA", "Adapter"))


def _trained_by(row: Mapping[str, str]) -> str:
    """Optimizer and, where only adapters are trained, their kind and the GPUs it takes."""
    if not _adapts(row):
        return row["optimizer"]
    gpus = "" if row["parallelism"] == "1 GPU" else f", {row['parallelism']}"
    return f"{row['optimizer'].partition(' (')[0]}, {row['method'].partition(' (')[0]}{gpus}"


def _headline(
    what: str,
    body: Mapping[str, Any],
    how: str,
    verb: str,
    file: Path,
    left_out: str,
    measured: int | None = None,
) -> str:
    """measured: how many of the predicted rows state a figure; None: all of them do."""
    over = "those" if measured is None else f"the {measured} of them with a measured figure"
    command = f"planner validate {verb} models/calibration/data/{file.name} --leave-out {left_out}"
    return (
        f"**{what}**, {how}. {body['scored']:,} of {body['rows']:,} published rows could be predicted "
        f"(`{command}` lists the rest with reasons); over {over}: median error "
        f"{_percent(body['median_ape'])}, nine of ten within {_percent(body['p90_ape'])}, inside the band "
        f"{_percent(body['interval_coverage'])}.\n\n"
    )


def _figure(value: Any) -> str:
    if value in (None, ""):
        return "not covered"
    number = float(value)
    return f"{number:,.0f}" if number >= 1000 else f"{number:.4g}"


def _band(row: Mapping[str, Any]) -> str:
    return "" if row["low"] in (None, "") else f"{_figure(row['low'])}–{_figure(row['high'])}"


def _error(predicted: Any, published: Any, reason: str) -> str:
    if predicted in (None, ""):
        return reason
    return f"{float(predicted) / float(published) - 1:+.1%}".replace("%", " %").replace("-", "−")


def _percent(share: float | None) -> str:
    return "not known" if share is None else f"{share:.1%}".replace("%", " %")


def main() -> int:
    readme = Path(sys.argv[1])
    wanted = tomllib.loads((HERE / "accuracy_rows.toml").read_text(encoding="utf-8"))
    tables = throughput_table(wanted["throughput"]) + "\n" + memory_table(wanted["memory"])
    text, times = _BETWEEN.subn(
        lambda match: match[1] + tables + match[2], readme.read_text(encoding="utf-8")
    )
    if times != 1:
        raise SystemExit(f"{readme} needs the lines <!-- accuracy: begin --> and <!-- accuracy: end --> once")
    readme.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
