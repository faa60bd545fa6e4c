"""Reports of a plan as one download."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# The same bytes for the same plan: an archive's times would differ otherwise.
_TIME = (1980, 1, 1, 0, 0, 0)


def finance_zip(document: Mapping[str, Any], point: int | None = None) -> bytes:
    """The folder that `planner report finance` writes, as a ZIP archive. Raises UsageError."""
    from planner.reports.finance.csv_files import DIALECTS
    from planner.reports.finance.policy import Policy
    from planner.reports.finance.report import book_of, write

    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "finance"
        write(book_of(document, point), Policy(), folder, DIALECTS["plain"])
        body = io.BytesIO()
        with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(folder.rglob("*")):
                if file.is_file():
                    entry = zipfile.ZipInfo(f"finance/{file.relative_to(folder).as_posix()}", _TIME)
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    archive.writestr(entry, file.read_bytes())
        return body.getvalue()
