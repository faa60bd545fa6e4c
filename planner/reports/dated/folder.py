"""The report of one date: the plan, its page and its finance tables in one folder with one manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from planner.errors import UsageError
from planner.reports import tabular
from planner.reports.finance.csv_files import PLAIN, Dialect
from planner.reports.finance.directory import MANIFEST, WholeFolder
from planner.reports.finance.policy import Policy
from planner.reports.finance.report import book_of, fill, tables_of
from planner.reports.html.page import page
from planner.reports.plan_file import read_document


@dataclass(frozen=True, slots=True)
class Asked:
    """What a dated report is made with. point: which plan of the file; None: the one to book."""

    point: int | None = None
    cents: bool = False
    dialect: Dialect = PLAIN
    policy: Policy = field(default_factory=Policy)


def day_of(written: str | None) -> date:
    """None: today, UTC. Raises UsageError."""
    try:
        return datetime.now(UTC).date() if written is None else date.fromisoformat(written)
    except ValueError as error:
        raise UsageError(f"--date {written}: a date such as 2027-01-31 is meant", "date") from error


def document_of(source: Path) -> Mapping[str, Any]:
    """A plan file as it is; a schedule (.yaml, .yml) planned now from the stored prices.

    Raises UsageError, and what planning raises.
    """
    if source.suffix.lower() in (".yaml", ".yml"):
        from planner.api import optimize_schedule

        return optimize_schedule(source).to_json()
    return read_document(source)


def write_dated(document: Mapping[str, Any], root: Path, day: date, asked: Asked) -> Path:
    """root/2027-01-31, replaced if it is there. Raises UsageError where another's files stand there.

    A run that is killed at any moment leaves the folder that was there, or none.
    """
    root.mkdir(parents=True, exist_ok=True)
    target = root / day.isoformat()
    if target.exists() and not (target / MANIFEST).is_file():
        raise UsageError(f'"{target}" holds files that no report wrote; choose another folder')
    folder = WholeFolder(target)
    try:
        folder.write("plan.json", [tabular.to_json(document).encode()])
        folder.write("plan.html", [page(document, asked.point).encode()])
        book = book_of(document, asked.point, cents=asked.cents)
        folder.finish(fill(folder, book, tables_of(book, asked.policy), asked.dialect))
    except BaseException:
        folder.abandon()
        raise
    return target
