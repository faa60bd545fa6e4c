"""What was billed, out of a seller's export: AWS CUR 2.0 or FOCUS rows, as CSV, gzipped or not."""

from __future__ import annotations

import csv
import gzip
import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TextIO, cast

from planner.errors import UsageError

Cells = Mapping[str, str]
_CUR = "line_item_unblended_cost"
_FOCUS = "BilledCost"


@dataclass(frozen=True, slots=True)
class Billed:
    """One row of a bill. at: when what it is for began. category: ChargeCategory of FOCUS.

    amount: as invoiced, without amortisation. [currency] quantity: in hours of machines; None for all else.
    region, hardware: "" where the bill does not tell.
    """

    at: datetime
    provider: str
    region: str
    hardware: str
    category: str
    amount: Decimal
    currency: str
    quantity: Decimal | None


def read_actual(path: str | Path) -> Iterator[Billed]:
    """The rows of a file; one at a time, for bills are long.

    Raises UsageError, naming file and row, for what is neither CUR 2.0 nor FOCUS or does not read.
    """
    file = Path(path)
    number = 1
    try:
        with _opened(file) as text:
            rows = csv.DictReader(text, strict=True)
            names = rows.fieldnames or []
            read = _reader(names, file)
            for row in rows:
                number = rows.line_num
                if None in row or None in row.values():
                    raise ValueError("has more or fewer cells than the header")
                yield read(row)
    except OSError as error:
        raise UsageError(f'cannot read "{file}": {error.strerror or error}', "actual") from error
    except UnicodeDecodeError as error:
        raise UsageError(f'"{file}" is not UTF-8 (byte {error.start})', "actual") from error
    except (csv.Error, ValueError, InvalidOperation, EOFError) as error:
        raise UsageError(f'"{file}", line {number}: {error or "a number does not read"}', "actual") from error


def _opened(file: Path) -> TextIO:
    if file.suffix == ".gz":
        return cast(TextIO, gzip.open(file, "rt", encoding="utf-8-sig", newline=""))
    return file.open(encoding="utf-8-sig", newline="")


def _reader(names: Any, file: Path) -> Callable[[Cells], Billed]:
    if _CUR in names:
        needed: tuple[str, ...] = (_CUR, "line_item_usage_start_date", "line_item_currency_code",
                                   "line_item_line_item_type")  # fmt: skip
        read = _of_cur
    elif _FOCUS in names:
        needed, read = (_FOCUS, "ChargePeriodStart", "BillingCurrency", "ChargeCategory"), _of_focus
    else:
        raise UsageError(
            f'"{file}" is no bill: a column {_CUR} (AWS CUR 2.0) or {_FOCUS} (FOCUS) is looked for; '
            "Parquet is not read, export CSV",
            "actual",
        )
    missing = [name for name in needed if name not in names]
    if missing:
        raise UsageError(f'"{file}" lacks the column {missing[0]}', "actual")
    return read


def _of_cur(row: Cells) -> Billed:
    """Source: AWS Data Exports, table dictionary of CUR 2.0."""
    kind = row["line_item_line_item_type"]
    category = _tables()["cur_categories"].get(kind)
    if category is None:
        raise ValueError(f'line_item_line_item_type "{kind}" is not known')
    hours = kind in _tables()["cur_hours"] and row.get("pricing_unit", "").lower() in ("hrs", "hours", "hour")
    used = row.get("line_item_usage_amount") or ""
    return Billed(
        at=_instant(row["line_item_usage_start_date"]),
        provider="aws",
        region=row.get("product_region_code") or row.get("product_region") or "",
        hardware=row.get("product_instance_type") or _of_map(row.get("product"), "instance_type"),
        category=category,
        amount=Decimal(row[_CUR]),
        currency=row["line_item_currency_code"],
        quantity=Decimal(used) if hours and used else None,
    )


def _of_focus(row: Cells) -> Billed:
    """Source: FOCUS 1.2 and 1.4, Cost and Usage. A forecast of ours is refused: it is no bill."""
    if row.get("x_RecordType") == "Forecast":
        raise ValueError("x_RecordType says Forecast: a plan, not a bill")
    name = row.get("ProviderName") or row.get("ServiceProviderName") or ""
    used, unit = row.get("ConsumedQuantity") or "", (row.get("ConsumedUnit") or "").lower()
    return Billed(
        at=_instant(row["ChargePeriodStart"]),
        provider=_tables()["seller_ids"].get(name.lower(), name.lower()),
        region=row.get("RegionId") or "",
        hardware=_of_map(row.get("SkuPriceDetails"), "InstanceType"),
        category=row["ChargeCategory"],
        amount=Decimal(row[_FOCUS]),
        currency=row["BillingCurrency"],
        quantity=Decimal(used) if used and unit in ("hour", "hours", "hrs", "instance-hours") else None,
    )


def _of_map(text: str | None, key: str) -> str:
    """A value of a map column; "" where there is none."""
    if not text:
        return ""
    try:
        found = json.loads(text)
    except ValueError:
        return ""
    value = found.get(key) or found.get(f"x_{key}") if isinstance(found, dict) else ""
    return value if isinstance(value, str) else ""


def _instant(text: str) -> datetime:
    found = datetime.fromisoformat(text.strip().replace(" UTC", ""))
    return found if found.tzinfo else found.replace(tzinfo=UTC)


@cache
def _tables() -> Mapping[str, Any]:
    return tomllib.loads((files(__package__) / "data" / "bills.toml").read_text(encoding="utf-8"))
