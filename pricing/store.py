"""Append-only history of observed prices, in SQLite or PostgreSQL.

    with PriceStore.open() as store:
        store.latest(kind="cloud_instance", region="us-east-1")

Opening makes the store when there is none, brings it to the newest schema and appends the packaged
snapshot: all in one transaction, so a process that dies half-way leaves the store as it was.
A store that is up to date opens without Alembic.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from sqlalchemy import Engine, text

from . import snapshot
from .address import ENVIRONMENT, default_address
from .connect import (
    MEMORY,
    NotWritable,
    Place,
    connect,
    explained,
    place,
    use_write_ahead_log,
    writing,
)
from .errors import BadOffer, StoreUnusable, UnknownItem
from .fetches import Fetch, insert_fetches, read_fetches
from .locks import only_refresher
from .offer import FIELDS, Offer, format_time
from .prepare import insert, is_loaded, prepare, schema_version
from .queries import (
    AsOf,
    Filter,
    batches,
    by_date,
    end_of,
    history_sql,
    latest_sql,
    newness,
    newness_sql,
    where,
)
from .raw_answers import RawAnswers
from .schema import HEAD

_COLUMNS = ", ".join(FIELDS)
# SQLite takes at most 999 values a statement in its older versions.
_IDS_A_QUERY = 500


@dataclass(frozen=True, slots=True)
class Known:
    """What the store knows of one price. accepted: the newest row in use; set_aside: the newest suspect
    row, when it is newer than that."""

    accepted: Offer | None = None
    set_aside: Offer | None = None


class PriceStore:
    """What things cost, and when that was said.

    where: the store's address, without a password.
    warnings: what the user should know about how it was opened (say, that it is in memory only).
    """

    def __init__(self, engine: Engine, address: Place) -> None:
        self._engine = engine
        self._place = address
        self.where = address.shown
        self.warnings: tuple[str, ...] = ()

    @classmethod
    def open(cls, url: str | None = None) -> PriceStore:
        """Open the store at `url`, else at PLANNER_STORE_URL, else in the user's data directory.

        url: a path, sqlite:///PATH, or postgresql://USER@HOST/DATABASE.
        When nobody named a place and the user's directory cannot be written, the store is made in memory
        and `warnings` says so. Raises StoreUnusable.
        """
        named = url or os.environ.get(ENVIRONMENT)
        if named:
            return cls._open(named)
        try:
            return cls._open(default_address())
        except NotWritable as error:
            store = cls._open(MEMORY)
            store.warnings = (f"prices are kept in memory for this run only: {error}",)
            return store

    @classmethod
    def _open(cls, address: str) -> PriceStore:
        where = place(address)
        store = cls(connect(where), where)
        try:
            with explained(where):
                store._make_ready()
        except BaseException:
            store.close()
            raise
        return store

    def _make_ready(self) -> None:
        with self._engine.connect() as connection:
            version = schema_version(connection)
            if version == HEAD and is_loaded(connection, snapshot.content_sha256()):
                return
        if self._place.read_only:
            if version != HEAD:
                raise NotWritable(f"{self.where} is of schema {version}, not {HEAD}, and cannot be written.")
            self.warnings = (f"{self.where} cannot be written, so it lacks this version's packaged prices",)
            return
        with writing(self._engine) as connection:
            prepare(connection, self._place)
        if self._place.path is not None:
            use_write_ahead_log(self._engine)

    # --- reading

    def latest(
        self,
        as_of: AsOf = None,
        *,
        item: Filter = None,
        kind: Filter = None,
        provider: Filter = None,
        region: Filter = None,
        contract: Filter = None,
        condition: Filter = None,
    ) -> tuple[Offer, ...]:
        """The newest observation of each price, ordered by kind, item, provider, region, contract.

        as_of: only what had been observed by then; a date means the end of that day in UTC.
        Each filter takes one value or several. Rows of quality "suspect" stay in history and are never
        answered here; a row whose amount is None is: that the price is not known is news as well.
        """
        clauses, values = where(
            as_of,
            item=item,
            kind=kind,
            provider=provider,
            region=region,
            contract=contract,
            condition=condition,
        )
        return self._offers(latest_sql(_COLUMNS, clauses, by_item=item is not None), values)

    def history(
        self,
        as_of: AsOf = None,
        *,
        item: Filter = None,
        kind: Filter = None,
        provider: Filter = None,
        region: Filter = None,
        contract: Filter = None,
        condition: Filter = None,
    ) -> tuple[Offer, ...]:
        """Every observation that passes the filters, oldest first, suspect ones too."""
        clauses, values = where(
            as_of,
            item=item,
            kind=kind,
            provider=provider,
            region=region,
            contract=contract,
            condition=condition,
        )
        return self._offers(history_sql(_COLUMNS, clauses), values)

    def first_after(
        self, as_of: date | datetime, *, item: Filter = None, kind: Filter = None
    ) -> tuple[Offer, ...]:
        """For each price that had not been observed by `as_of`: its first observation after it.

        For looking back to a time from which some prices (parts, power) are not recorded: each row comes as
        quality "estimated" with the reason, so that nobody takes it for what was known then.
        """
        end = end_of(as_of)
        first: dict[str, Offer] = {}
        for offer in self.history(item=item, kind=kind):
            if offer.quality != "suspect":
                first.setdefault(offer.price_id, offer)
        return tuple(
            replace(
                offer,
                quality="estimated",
                reason=f"first observed on {offer.observed_at:%Y-%m-%d}, after {end:%Y-%m-%d}"
                + (f"; {offer.reason}" if offer.reason else ""),
            )
            for offer in first.values()
            if offer.observed_at > end
        )

    def latest_by_item(self, kind: Filter = None, as_of: AsOf = None) -> dict[str, tuple[Offer, ...]]:
        """The latest offers, grouped by item."""
        groups: defaultdict[str, list[Offer]] = defaultdict(list)
        for offer in self.latest(as_of, kind=kind):
            groups[offer.item].append(offer)
        return {name: tuple(offers) for name, offers in groups.items()}

    def retail(self, item: str, condition: str = "new", as_of: AsOf = None) -> Offer:
        """The price in USD to expect for one card or part.

        A median or mean of several sales comes before a single listing, then the newer before the older.
        Used cards are bought at what others sell them for, so the resale series answers for them.
        Raises UnknownItem.
        """
        kinds = ("gpu_retail", "part_retail", "system_retail", "resale")
        found = self.latest(as_of, item=item, kind=kinds, condition=condition)
        offer = best_retail(found)
        if offer is None:
            raise UnknownItem(
                f'no price of "{item}", {condition}, is stored{by_date(as_of)}.'
                f"{self._nearest('item', item, kinds)} All prices: planner prices list"
            )
        return offer

    def electricity(self, region: str = "us", customer: str = "commercial", as_of: AsOf = None) -> Offer:
        """The price of a kWh in a region such as "us", "us-virginia" or "europe". Raises UnknownItem."""
        found = self.latest(as_of, kind="electricity", item=f"electricity-{customer}", region=region)
        known = [offer for offer in found if offer.amount is not None]
        if not known:
            raise UnknownItem(
                f'no {customer} electricity price of region "{region}" is stored{by_date(as_of)}.'
                f"{self._nearest('region', region, ('electricity',))} Or state one: --electricity-price 0.15"
            )
        return max(known, key=lambda offer: offer.observed_at)

    def known(self, price_ids: Iterable[str]) -> dict[str, Known]:
        """The newest row in use and the newest suspect one, of each of these prices that has any."""
        found: dict[str, Known] = {}
        for ids in batches(sorted(set(price_ids)), _IDS_A_QUERY):
            slots = {f"id_{number}": price_id for number, price_id in enumerate(ids)}
            wanted = f"o.price_id IN ({', '.join(':' + slot for slot in slots)})"
            for offer in self._newest(f"{wanted} AND quality <> 'suspect'", "<>", slots):
                found[offer.price_id] = Known(offer)
            for offer in self._newest(f"{wanted} AND quality = 'suspect'", "=", slots):
                accepted = found.get(offer.price_id, Known()).accepted
                if accepted is None or newness(offer) > newness(accepted):
                    found[offer.price_id] = Known(accepted, offer)
        return found

    def fetched_since(self, source: str, since: datetime) -> dict[str, Offer]:
        """The prices that `source` has brought since then: price_id -> its newest row from there."""
        values = {"source": source, "since": format_time(since)}
        rows = self._offers(
            f"SELECT {_COLUMNS} FROM observations AS o WHERE source = :source AND fetched_at >= :since "
            f"AND quality <> 'suspect' ORDER BY {newness_sql('o')[1:-1]}",
            values,
        )
        return {offer.price_id: offer for offer in rows}

    def fetches(self, *sources: str) -> tuple[Fetch, ...]:
        """What refreshes brought from these sources, or from all, oldest first."""
        with explained(self._place), self._engine.connect() as connection:
            return read_fetches(connection, sources)

    def stored(self, item: str | None = None) -> Iterator[tuple[str, str, Offer]]:
        """Every row with the two hashes that are stored beside it: observation_id, price_id, offer.

        Read in batches, so that a long history fits. item: only its rows.
        """
        clauses, values = where(None, item=item)
        query = f"SELECT observation_id, price_id, {_COLUMNS} FROM observations WHERE 1 = 1{clauses}"
        with explained(self._place), self._engine.connect() as connection:
            for row in connection.execution_options(yield_per=5000).execute(text(query), values):
                yield str(row[0]), str(row[1]), self._as_offer(row[2:])

    def damage(self) -> str | None:
        """What the database finds wrong with its own file; None when nothing."""
        if self._engine.dialect.name != "sqlite":
            return None
        with explained(self._place), self._engine.connect() as connection:
            said = connection.execute(text("PRAGMA integrity_check(5)")).scalars().all()
        return None if said == ["ok"] else "; ".join(map(str, said))

    def has_prices(self, *kinds: str) -> bool:
        """Whether any known, trusted price of these kinds is stored."""
        clauses, values = where(None, kind=kinds)
        query = (
            f"SELECT 1 FROM observations WHERE amount IS NOT NULL AND quality <> 'suspect'{clauses} LIMIT 1"
        )
        with explained(self._place), self._engine.connect() as connection:
            return connection.execute(text(query), values).scalar() is not None

    @property
    def items(self) -> tuple[str, ...]:
        """Every item that has a row."""
        with explained(self._place), self._engine.connect() as connection:
            return tuple(
                connection.execute(text("SELECT DISTINCT item FROM observations ORDER BY 1")).scalars()
            )

    @property
    def raw_answers(self) -> RawAnswers | None:
        """Where sellers' answers are kept: beside the store; None for a store in memory."""
        if self._place.path is not None:
            return RawAnswers(self._place.path.with_name(self._place.path.name + "-answers"))
        if self._engine.dialect.name == "sqlite":
            return None
        return RawAnswers(Path(default_address()).with_name("answers"))

    # --- writing

    def only_refresher(self) -> AbstractContextManager[None]:
        """Hold the refresh lock of this store. Entering raises RefreshRunning when another holds it."""
        return only_refresher(self._engine, self._place)

    def publish(self, offers: Iterable[Offer], fetches: Iterable[Fetch]) -> int:
        """Append what a refresh brought and the log of it, all in one transaction; returns the new rows.

        Raises StoreUnusable.
        """
        self._check_writable()
        with explained(self._place), writing(self._engine) as connection:
            insert_fetches(connection, fetches)
            return insert(connection, offers)

    def append(self, offers: Iterable[Offer]) -> int:
        """Add observations in one transaction; those that are there already change nothing.

        Returns how many were new. Raises StoreUnusable.
        """
        self._check_writable()
        with explained(self._place), writing(self._engine) as connection:
            return insert(connection, offers)

    def _check_writable(self) -> None:
        if self._place.read_only:
            raise NotWritable(f"{self.where} can be read but not written. Name another place: {ENVIRONMENT}")

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()

    def __enter__(self) -> PriceStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- inside

    def _offers(self, query: str, values: dict[str, str]) -> tuple[Offer, ...]:
        with explained(self._place), self._engine.connect() as connection:
            rows: Any = connection.execute(text(query), values).all()
        return tuple(map(self._as_offer, rows))

    def _newest(self, where: str, comparison: str, values: dict[str, str]) -> tuple[Offer, ...]:
        return self._offers(
            f"SELECT {_COLUMNS} FROM observations AS o WHERE {where} AND NOT EXISTS (SELECT 1 FROM "
            f"observations AS n WHERE n.price_id = o.price_id AND n.quality {comparison} 'suspect' "
            f"AND {newness_sql('n')} > {newness_sql('o')})",
            values,
        )

    def _as_offer(self, row: Any) -> Offer:
        try:
            return Offer.from_record(row)
        except BadOffer as error:
            raise StoreUnusable(
                f"{self.where} holds a row that is no offer ({error}). Put back a copy of the store."
            ) from None

    def _nearest(self, column: str, name: str, kinds: tuple[str, ...]) -> str:
        from difflib import get_close_matches

        names = sorted({getattr(offer, column) for offer in self.latest(kind=kinds)})
        close = get_close_matches(name, names, n=1, cutoff=0.6)
        return f' Did you mean "{close[0]}"?' if close else ""


def best_retail(offers: Iterable[Offer]) -> Offer | None:
    """Of several sellers' prices of one thing, the one to reckon with; None when none is known in USD.

    A price over several sales before a single listing (one listing may be a scalper's: 3,399 against a
    median of 3,089 for the RTX 4090 in mid-2025), then the newer before the older.
    """
    known = [offer for offer in offers if offer.amount is not None and offer.currency == "USD"]
    return max(known, key=lambda offer: ((offer.sample_n or 1) > 1, offer.observed_at), default=None)
