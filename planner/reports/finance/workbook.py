"""The tables as one workbook: numbers as numbers, dates as dates, text never run as a formula."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from planner.errors import UsageError

from .book import Book
from .table import Table

_FORMATS = {"money": "#,##0.00", "number": "#,##0.00####", "integer": "0", "date": "yyyy-mm-dd",
            "moment": "yyyy-mm-dd hh:mm:ss"}  # fmt: skip


def workbook(tables: Sequence[Table], book: Book) -> bytes:
    """A sheet for each table that is not wide. Cells hold 15 digits: the CSV files hold every one."""
    try:
        import xlsxwriter
    except ImportError as error:
        raise UsageError(
            "report.xlsx needs XlsxWriter: pip install 'training-planner[reports]'", "reports"
        ) from error

    out = io.BytesIO()
    safe = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with xlsxwriter.Workbook(out, {"in_memory": True, "constant_memory": False, **safe}) as made:
        made.set_properties({"created": book.as_of.replace(tzinfo=None)})
        formats = {kind: made.add_format({"num_format": code}) for kind, code in _FORMATS.items()}
        head = made.add_format({"bold": True})
        for table in tables:
            if not table.wide:
                _sheet(made.add_worksheet(table.title), table, formats, head)
    return out.getvalue()


def _sheet(sheet: Any, table: Table, formats: dict[str, Any], head: Any) -> None:
    sheet.freeze_panes(1, 0)
    sheet.write_row(0, 0, [column.name for column in table.columns], head)
    for number, row in enumerate(table.rows(), 1):
        for at, (column, cell) in enumerate(zip(table.columns, row, strict=True)):
            if cell is None:
                continue
            if isinstance(cell, str):
                sheet.write_string(number, at, cell)
            elif isinstance(cell, bool):
                sheet.write_boolean(number, at, cell)
            elif isinstance(cell, Decimal | int):
                sheet.write_number(number, at, cell, formats[column.kind])
            else:
                value = cell.replace(tzinfo=None) if isinstance(cell, datetime) else cell
                sheet.write_datetime(number, at, value, formats[column.kind])
