"""Read a price file of any form we know, and say which rows did not read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from pathlib import Path

from .errors import BadPriceFile
from .offer import Offer
from .sources.page import LARGEST_PAGE_BYTES, RawPage


@dataclass(frozen=True, slots=True)
class FileResult:
    """What a file holds. form: which form it was read as. bad: (row, reason) of each that did not read."""

    form: str
    offers: tuple[Offer, ...]
    skipped: Mapping[str, int]
    bad: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...] = ()


Read = Callable[[RawPage, datetime, datetime | None], FileResult]

# form -> module in sources/ with looks_like(head) and read_file(page, fetched_at, observed_at).
# The first that recognises the start of a file reads it.
FORMS = {
    "planner-csv": "csv_import",
    "vantage-json": "vantage_json",
    "gpuhunt-csv": "gpuhunt_catalog",
    "skypilot-csv": "skypilot_catalog",
    "eia-csv": "electricity",
    "sold-csv": "resale",
}
_HEAD_BYTES = 4096


def read_price_file(
    path: Path, *, fetched_at: datetime, observed_at: datetime | None = None, form: str | None = None
) -> FileResult:
    """The offers of a file. observed_at: when its prices held; needed for forms that do not say it.

    Raises BadPriceFile for a file of no known form, of more than 64 MiB, or without the date it needs.
    """
    try:
        size = path.stat().st_size
        body = path.read_bytes() if size <= LARGEST_PAGE_BYTES else b""
    except OSError as error:
        raise BadPriceFile(
            f"{path}: {error.strerror or error}. Check the path and its permissions."
        ) from None
    if size > LARGEST_PAGE_BYTES:
        raise BadPriceFile(
            f"{path}: {size:,} bytes; at most {LARGEST_PAGE_BYTES:,} are read. Split the file."
        )
    name = form or _form_of(path, body)
    if name not in FORMS:
        raise BadPriceFile(f'no form "{name}" of price file; forms: {", ".join(FORMS)}')
    # The folder's name tells the cloud in some catalogues; more of the path is nobody's business.
    page = RawPage(body, ref="/".join(path.absolute().parts[-2:]))
    read: Read = import_module(f".sources.{FORMS[name]}", __package__).read_file
    return read(page, fetched_at, observed_at)


def _form_of(path: Path, body: bytes) -> str:
    head = body[:_HEAD_BYTES].decode("utf-8-sig", "replace")
    for form, module in FORMS.items():
        looks_like: Callable[[str], bool] = import_module(f".sources.{module}", __package__).looks_like
        if looks_like(head):
            return form
    raise BadPriceFile(
        f"{path}: not a price file of a form known here ({', '.join(FORMS)}). "
        "Its first line must name the columns; or say --form"
    )
