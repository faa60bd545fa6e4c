"""Writes docs/accuracy.md and planner/data/accuracy.json, every figure of how right the speeds are.

    make accuracy
    python tools/accuracy_page.py docs/accuracy.md 2026-12-01

All from `validate_throughput` on the packaged throughput.csv; nothing is chosen, and nothing left out but
what the table itself marks.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from planner.decisions import validate_decisions
from planner.models import validation
from planner.models.calibration import parameters
from planner.models.validation import RowResult, ThroughputReport, scores
from planner.reports import decisions_page
from planner.reports.tabular import Cell, to_markdown
from planner.request import instant

DATA = Path(__file__).resolve().parents[1] / "planner" / "data" / "accuracy.json"
ONE, SEVERAL = "one GPU", "several GPUs"
# What we set out to reach: median, mean, 90th percentile of the absolute error, in per cent.
BARS = {"gpu": "5.5 / 9 / 20", "family": "9 / 12 / 26", "host": "– / 12 / –"}
DECISIONS_BAR = "mean 0.5 %, wrong 5 %"
RULES = {
    "flops_ratio": "the same recipe on another card, by the ratio of datasheet FLOPS",
    "bandwidth_ratio": "the same, by the ratio of memory bandwidth",
    "roofline": "datasheet roofline",
}
BY: dict[str, Callable[[RowResult], str]] = {
    "GPU": lambda r: r.row.gpu,
    "family": lambda r: r.row.family,
    "precision": lambda r: r.row.precision,
    "source": lambda r: r.row.source,
}


def sections(date: str) -> dict[str, list[dict[str, Cell]]]:
    """Every table of the page under its title."""
    file = parameters.data_path()
    runs = {key: validation.validate_throughput(file, leave_out=key) for key in ("gpu", "family", "host")}
    nested = {
        key: validation.validate_throughput(file, leave_out=key, nested=True).body["nested"]
        for key in ("gpu", "family")
    }
    return {
        "One GPU and several": _headline(runs, nested),
        "Simpler rules on the same rows": _baselines(runs["gpu"]),
        "Which of two GPUs is faster": _pairs(runs, nested),
        "Which of two GPUs is cheaper per sample": _decisions(date),
        "Several GPUs": _several(runs),
        **{f"One GPU, by {name}": _by(runs, key, name) for name, key in BY.items()},
        "Not predicted": _reasons(runs["gpu"]),
    }


def about(date: str) -> str:
    """What the tables are, and how far they may be believed."""
    return (
        f"Made {date} by `make accuracy`, from a fit of {parameters.shipped().made}. Rows are "
        "published training runs (`models/calibration/data/throughput.csv`); each is predicted without "
        "looking at what was measured. An error is |predicted / measured − 1|, as median / mean / 90th "
        "percentile in per cent. *Left out*: the model is conditioned without any row of that GPU type, "
        "family of workloads or host type. *Nested*: what all rows share is fitted again without them as "
        "well, as an unknown card or workload is met; believe this figure. Even so, what each script ran "
        "and the centres of the priors were written down with these rows in view."
    )


MISSED = "Bars that the figures above miss are missed; the residuals below say where."


def page(about: str, tables: dict[str, list[dict[str, Cell]]]) -> str:
    """The whole page."""
    lines = ["# How right the speeds are", "", about, ""]
    for number, (title, rows) in enumerate(tables.items()):
        lines += [f"## {title}", "", to_markdown(rows), ""]
        lines += [f"{MISSED}\n"] if number == 0 else []
    return "\n".join(lines)


def _good(report: ThroughputReport, where: str | None = None) -> list[RowResult]:
    rows = [r for r in report.rows if r.ape is not None]
    return [r for r in rows if where is None or (r.row.gpu_count == 1) == (where == ONE)]


def _errors(score: dict[str, float | None]) -> str:
    if not score["scored"]:
        return "–"
    return " / ".join(f"{100 * (score[key] or 0):.1f}" for key in ("median_ape", "mean_ape", "p90_ape"))


def _headline(
    runs: dict[str, ThroughputReport], nested: dict[str, dict[str, dict[str, dict[str, float | None]]]]
) -> list[dict[str, Cell]]:
    rows: list[dict[str, Cell]] = []
    for where, kind in ((ONE, "one_gpu"), (SEVERAL, "several_gpus")):
        for key, report in runs.items():
            score = scores(_good(report, where))
            again = nested.get(key, {}).get("by_kind", {}).get(kind)
            bar = BARS[key] if (where == ONE) == (key != "host") else ""
            rows.append(
                {
                    "rows": f"{where} ({score['scored']})",
                    "left out": key,
                    "error": _errors(score),
                    "bar": bar,
                    "nested": _errors(again) if again else "",
                    "80 % band holds": _percent(score["interval_coverage"]),
                    "nested band holds": _percent(again["interval_coverage"]) if again else "",
                    "band": f"±{_percent(score['median_band_width'])}",
                }
            )
    return rows


def _baselines(report: ThroughputReport) -> list[dict[str, Cell]]:
    rows: list[dict[str, Cell]] = [
        {"rule": "ours, GPU left out", "rows": report.body["scored"], "error": _errors(report.body)}
    ]
    for key, score in report.body["baselines"].items():
        rows.append({"rule": RULES[key], "rows": score["scored"], "error": _errors(score)})
    return rows


def _pairs(
    runs: dict[str, ThroughputReport], nested: dict[str, dict[str, dict[str, int]]]
) -> list[dict[str, Cell]]:
    rows: list[dict[str, Cell]] = []
    for name, key in (
        ("over 3 % apart", "pairs_over_3_percent"),
        ("over 10 % apart", "pairs_over_10_percent"),
    ):
        for how, body in (("GPU left out", runs["gpu"].body), ("nested", nested["gpu"])):
            found = body[key]
            rows.append(
                {
                    "pairs": name,
                    "how": how,
                    "compared": found["compared"],
                    "in the right order": _percent(found["ordered"] / found["compared"]),
                }
            )
    return rows


def _decisions(date: str) -> list[dict[str, Cell]]:
    """Regret in money of picking the cheaper of two cards, at the packaged prices as of `date`."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PLANNER_STORE_URL"] = f"sqlite:///{folder}/prices.sqlite"
        document = validate_decisions(parameters.data_path(), instant(date)).to_json()
    return [
        {
            "picked by": decisions_page.RULES[str(row["by"])],
            "pairs": row["pairs"],
            "mean regret": _percent(row["mean_regret"], 2),
            "worst": _percent(row["worst_regret"]),
            "wrong picks": _percent(row["wrong_share"]),
            "bar": DECISIONS_BAR if row["by"] == "ours" else "",
        }
        for row in decisions_page.rule_rows(document)
    ]


def _several(runs: dict[str, ThroughputReport]) -> list[dict[str, Cell]]:
    fsdp = [r for r in _good(runs["gpu"]) if r.row.source == "mosaicml/llm-foundry"]
    scaling = runs["host"].body["scaling"]
    return [
        {"what": "llm-foundry under FSDP, GPU left out", "rows": len(fsdp), "error": _errors(scores(fsdp))},
        {
            "what": "scaling efficiency, host left out, mean points off",
            "rows": scaling["compared"],
            "error": round(scaling["mean_abs_points"], 1),
        },
    ]


def _by(
    runs: dict[str, ThroughputReport], key: Callable[[RowResult], str], name: str
) -> list[dict[str, Cell]]:
    names = sorted({key(r) for r in _good(runs["gpu"], ONE)})
    rows: list[dict[str, Cell]] = []
    for each in names:
        found = {
            how: scores([r for r in _good(runs[how], ONE) if key(r) == each]) for how in ("gpu", "family")
        }
        rows.append(
            {
                name: each,
                "rows": found["gpu"]["scored"],
                "GPU left out": _errors(found["gpu"]),
                "family left out": _errors(found["family"]),
                "80 % band holds": _percent(found["gpu"]["interval_coverage"]),
            }
        )
    return rows


def _reasons(report: ThroughputReport) -> list[dict[str, Cell]]:
    counted: Iterable[tuple[str, int]] = Counter(r.reason for r in report.rows if r.ape is None).most_common()
    return [{"why": reason, "rows": count} for reason, count in counted]


def _percent(share: Any, places: int = 1) -> str:
    return "–" if share is None else f"{100 * share:.{places}f} %"


if __name__ == "__main__":
    said, tables = about(sys.argv[2]), sections(sys.argv[2])
    Path(sys.argv[1]).write_text(page(said, tables).rstrip() + "\n", encoding="utf-8")
    # The same for the service's page, which must not take half a minute.
    DATA.write_text(
        json.dumps({"about": said, "missed": MISSED, "tables": tables}, ensure_ascii=False, indent=1) + "\n",
        encoding="utf-8",
    )
