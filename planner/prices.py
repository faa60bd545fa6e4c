"""The price room's public functions: refresh, verify, history, import and export."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .answer import SCHEMA_VERSION, moment
from .errors import NothingStored, UsageError
from .listings import Listing
from .lists import price_list

if TYPE_CHECKING:
    from .pricing.history import Series, Step
    from .pricing.offer import Offer
    from .pricing.refresh import RefreshReport, SourceReport
    from .pricing.refresh_judge import Move
    from .pricing.sources import FetchContext
    from .pricing.store import PriceStore
    from .pricing.verify import Verified

Filters = Mapping[str, str | None]
_MOVES = ("new", "changed", "waiting", "quarantined", "conflict", "rejected", "gone")


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a refresh did, as scripts read it. warnings: about the store itself (say, in memory only)."""

    report: RefreshReport
    where: str
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "refresh",
            "store": self.where,
            "began_at": moment(self.report.began),
            "ended_at": moment(self.report.ended),
            "rows_added": self.report.added,
            "exit_code": self.report.exit_code,
            "warnings": list(self.warnings),
            "sources": [self._source(each) for each in self.report.sources],
            "moves": [_move(each.source, move) for each in self.report.sources for move in each.moves],
        }

    def _source(self, each: SourceReport) -> dict[str, Any]:
        return {
            "source": each.source,
            "status": each.status,
            "said": each.line(self.report.ended),
            "seconds": round(each.seconds, 3),
            "offers": each.offers,
            "rows_added": each.added,
            "unchanged": each.unchanged,
            **{what: each.count(what) for what in _MOVES},
            "rows_skipped": each.skipped,
            "rows_bad": each.bad,
            "kept": each.kept,
            "kept_until": moment(each.kept_until),
            "warnings": list(each.warnings),
        }


def refresh_prices(
    sources: Sequence[str] = (),
    *,
    regions: Sequence[str] = (),
    deadline_seconds: float = 120.0,
    progress: Callable[[str], None] = lambda line: None,
    context: FetchContext | None = None,
) -> Refreshed:
    """Ask the sources (() means the usual ones) and store what moved.

    regions: vendors' codes; () means each source's own default. deadline_seconds: of all together. [s]
    context: everything else about the asking, for tests; None means clock, network and settings of this user.
    Raises UsageError for an unknown source, RefreshRunning, NothingStored where nothing can be stored.
    """
    from .pricing.refresh import refresh
    from .pricing.sources import FetchContext, find
    from .pricing.sources import sources as registered
    from .pricing.sources.errors import UnknownSource
    from .pricing.sources.settings import read_settings

    try:
        chosen = [find(name) for name in sources] or [info for info in registered() if info.default]
    except UnknownSource as error:
        raise UsageError(str(error), "source") from error
    asking = context or FetchContext(settings=read_settings(settings_file()))
    asking = replace(asking, regions=tuple(regions), deadline_seconds=deadline_seconds)
    with opened() as store:
        report = refresh(store, chosen, asking, total_seconds=deadline_seconds, progress=progress)
        return Refreshed(report, store.where, store.warnings)


def settings_file() -> Path:
    """Where a user writes down pages, feeds and files to read prices from."""
    from .config import config_file

    return config_file(os.environ).with_name("price_sources.toml")


def verify_prices(file: str | None = None) -> Verified:
    """The invariants over the store, or over a price file. Raises NothingStored, BadPriceFile."""
    from .pricing.verify import verify_file, verify_store

    if file is not None:
        return verify_file(Path(file))
    with opened() as store:
        return verify_store(store)


def price_series(filters: Filters, as_of: str | date | None = None) -> tuple[Series, ...]:
    """The observations of every price that passes the filters (item, provider, region, contract, kind).

    Raises UsageError where none does.
    """
    from .pricing.history import series_of

    with opened() as store:
        found = series_of(store.history(_moment(as_of), **_given(filters)))
        if not found:
            raise UsageError(_nothing_like(store, filters))
    return found


def price_history(filters: Filters, as_of: str | date | None = None, *, every: bool = False) -> Listing:
    """How prices moved, oldest first; every: all observations instead of those that brought a change."""
    rows = [
        (step, step.offer.observed_at, series.label)
        for series in price_series(filters, as_of)
        for step in (series.steps if every else series.changes)
    ]
    rows.sort(key=lambda row: (row[1], row[2]))
    return Listing("history", tuple(_history_row(step) for step, _, _ in rows))


def show_price(item: str, as_of: str | date | None = None) -> Listing:
    """Every latest offer of one item. Raises UsageError, naming the nearest item."""
    at = _moment(as_of)
    with opened() as store:
        offers = store.latest(at, item=item)
        if not offers:
            raise UsageError(_nothing_like(store, {"item": item}))
    return price_list(offers, at)


def export_prices(filters: Filters, as_of: str | date | None = None, *, history: bool = False) -> Listing:
    """Stored offers in full, as `import_prices` reads them again."""
    from .pricing.offer import FIELDS

    with opened() as store:
        ask = store.history if history else store.latest
        offers = ask(_moment(as_of), **_given(filters))
    rows = [dict(zip(FIELDS, offer.to_record(), strict=True)) for offer in offers]
    return Listing("offers", tuple(rows))


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of a file. bad: row and reason of each that did not read."""

    file: str
    form: str
    offers: int
    rows_added: int
    unchanged: int
    moves: tuple[Move, ...]
    skipped: Mapping[str, int]
    bad: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """0 all read; 6 some rows did not; 5 none did."""
        if self.bad:
            return 6 if self.offers else 5
        return 0

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "import",
            "file": self.file,
            "form": self.form,
            "offers": self.offers,
            "rows_added": self.rows_added,
            "unchanged": self.unchanged,
            "exit_code": self.exit_code,
            "moves": [_move(self.form, move) for move in self.moves],
            "skipped": dict(self.skipped),
            "bad": [{"row": row, "reason": reason} for row, reason in self.bad],
            "warnings": list(self.warnings),
        }


def import_prices(
    file: str, *, observed_at: str | date | None = None, form: str | None = None, dry_run: bool = False
) -> Imported:
    """Read a price file and append what it holds.

    form: "planner-csv", "skypilot-csv", "gpuhunt-csv" or "vantage-json"; None: told by its content.
    observed_at: when the prices held, needed for the forms that do not say it themselves.
    dry_run: judge, and store nothing. Raises BadPriceFile, UsageError, NothingStored.
    """
    from .pricing.import_files import read_price_file
    from .pricing.refresh import judge_against
    from .pricing.refresh_judge import Yardstick

    now = datetime.now(UTC)
    said_at = None if observed_at is None else _moment(observed_at)
    read = read_price_file(Path(file), fetched_at=now, observed_at=said_at, form=form)
    with opened() as store:
        judged = judge_against(store, read.offers, Yardstick(now=now, second_look=False))
        added = 0 if dry_run else store.append(judged.rows)
    return Imported(
        file, read.form, len(read.offers), added, judged.unchanged, judged.moves, read.skipped, read.bad,
        read.warnings,
    )  # fmt: skip


# --- inside


def opened() -> PriceStore:
    """The store in force. Raises NothingStored."""
    from .pricing.errors import StoreUnusable
    from .pricing.store import PriceStore

    try:
        return PriceStore.open()
    except StoreUnusable as error:
        raise NothingStored(str(error)) from error


def _moment(as_of: str | date | None) -> datetime:
    from .planning import default_as_of
    from .request import instant

    try:
        return default_as_of() if as_of is None else instant(as_of)
    except ValueError as error:
        raise UsageError(f"as_of = {as_of}: {error}", "as_of") from error


def _given(filters: Filters) -> dict[str, str]:
    return {key: value for key, value in filters.items() if value is not None}


def _nothing_like(store: PriceStore, filters: Filters) -> str:
    from .models.errors import nearest_names

    wanted = ", ".join(f"{key} {value}" for key, value in _given(filters).items()) or "any filter"
    item = filters.get("item")
    nearest = nearest_names(item, store.items, limit=1) if item and item not in store.items else []
    advice = f' Did you mean "{nearest[0]}"?' if nearest else " All prices: planner prices list"
    return f"no price of {wanted} is stored.{advice}"


def _history_row(step: Step) -> Mapping[str, Any]:
    offer: Offer = step.offer
    (row,) = price_list((offer,), offer.observed_at).rows
    percent = None if step.percent is None else round(step.percent, 1)
    return {**row, "change_percent": percent}


def _move(source: str, move: Move) -> dict[str, Any]:
    offer, before = move.offer, move.before
    percent = move.percent
    return {
        "source": source,
        "what": move.what,
        "item": offer.item,
        "provider": offer.provider,
        "region": offer.region,
        "contract": offer.contract,
        "amount": None if offer.amount is None else f"{offer.amount:f}",
        "amount_before": None if before is None or before.amount is None else f"{before.amount:f}",
        "currency": offer.currency,
        "unit": offer.unit,
        "change_percent": None if percent is None else float(round(percent, 1)),
        "observed_at": moment(offer.observed_at),
        "before_observed_at": moment(before.observed_at) if before else None,
        "reason": move.reason,
    }
