"""One catalogue record as JSON values and as a page: every figure beside its unit, source and date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

from planner.reports.lists import listing
from planner.reports.look import Look
from planner.reports.tabular import Cell


def plain_values(value: Any) -> Any:
    """`value` as JSON values: records become objects, money text, dates ISO 8601, moments RFC 3339."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_values(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain_values(item) for item in value]
    if isinstance(value, Enum):
        return plain_values(value.value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else value


def record_rows(document: Mapping[str, Any]) -> list[dict[str, Cell]]:
    """A record as key and value, inner records by dotted keys; figures carry unit, source and date."""
    rows: list[dict[str, Cell]] = []
    _collect(document, "", rows)
    return rows


def record_page(document: Mapping[str, Any], look: Look) -> str:
    """`record_rows` for a reader."""
    columns = {"key": "WHAT", "value": "VALUE", "unit": "UNIT", "source": "SOURCE", "checked": "CHECKED"}
    return listing(record_rows(document), columns, look, drop=("checked", "source"))


def _collect(value: Any, key: str, rows: list[dict[str, Cell]]) -> None:
    if isinstance(value, Mapping) and {"value", "unit", "source"} <= value.keys():
        shown = value["value"] if value["value"] is not None else f"unknown: {value.get('reason')}"
        rows.append(
            {
                "key": key,
                "value": shown,
                "unit": value["unit"],
                "source": value["source"],
                "checked": value.get("checked"),
            }
        )
    elif isinstance(value, Mapping):
        for name, item in value.items():
            _collect(item, f"{key}.{name}" if key else str(name), rows)
    elif isinstance(value, list):
        texts = [item for item in value if not isinstance(item, Mapping | list)]
        if texts:
            rows.append({"key": key, "value": ", ".join(str(item) for item in texts)})
        for i, item in enumerate(item for item in value if isinstance(item, Mapping | list)):
            _collect(item, f"{key}.{i + 1}", rows)
    elif value is not None:
        rows.append({"key": key, "value": value})
