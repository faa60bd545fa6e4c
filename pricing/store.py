"""Append-only history of observed prices, in SQLite or PostgreSQL.

    with PriceStore.open() as store:
        store.latest(kind="cloud_instance", region="us-east-1")

Opening makes the store when there is none, brings it to the newest schema and appends the packaged
snapshot: all in one transaction, so a process that dies half-way leaves the store as it was.
A store that is up to date opens without Alembic.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
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
from .decisions import Decision, insert_decision, read_decisions
from .errors import BadOffer, StoreUnusable
from .fetches import Fetch, insert_fetches, read_fetches
from .locks import only_refresher
from .offer import Offer, format_time
from .prepare import insert, is_loaded, prepare, schema_version
from .queries import asked, batches, newest_sql, newness_sql
from .raw_answers import RawAnswers
from .schema import HEAD
from .stored_prices import COLUMNS, StoredPrices

# SQLite takes at most 999 values a statement in its older versions.
_IDS_A_QUERY = 500


@dataclass(frozen=True, slots=True)
class Known:
    """What the store knows of one price. accepted: the newest row in use; set_aside: the newest suspect
    row, when it is newer than that; decision: what somebody said of the suspect row last."""

    accepted: Offer | None = None
    set_aside: Offer | None = None
    decision: Decision | None = None


class PriceStore(StoredPrices):
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

    def known(self, price_ids: Iterable[str]) -> dict[str, Known]:
        """The newest row in use and the newest suspect one, of each of these prices that has any."""
        found: dict[str, Known] = {}
        for ids in batches(sorted(set(price_ids)), _IDS_A_QUERY):
            slots = {f"id_{number}": price_id for number, price_id in enumerate(ids)}
            wanted = f"p.price_id IN ({', '.join(':' + slot for slot in slots)})"
            newest = self._offers(newest_sql(COLUMNS, wanted), slots)
            found |= {offer.price_id: Known(offer) for offer in newest if offer.quality != "suspect"}
            found |= self._with_used([offer for offer in newest if offer.quality == "suspect"])
        return found

    def held(self) -> tuple[Known, ...]:
        """Every price whose newest row was set aside, in the order of `latest`."""
        newest = f"{newest_sql(COLUMNS, '1 = 1')} AND quality = 'suspect'"
        held = self._offers(f"{newest} ORDER BY kind, item, provider, region, contract, price_id", {})
        found: dict[str, Known] = {}
        for some in batches(held, _IDS_A_QUERY):
            found |= self._with_used(some)
        return tuple(found.values())

    def _with_used(self, held: Sequence[Offer]) -> dict[str, Known]:
        """Few prices have a row set aside, so only for those it is asked what is used meanwhile."""
        if not held:
            return {}
        slots = {f"id_{number}": offer.price_id for number, offer in enumerate(held)}
        wanted = f"p.price_id IN ({', '.join(':' + slot for slot in slots)})"
        query = newest_sql(COLUMNS, wanted, "AND n.quality <> 'suspect'")
        used = {offer.price_id: offer for offer in self._offers(query, slots)}
        decided = {each.observation_id: each for each in self.decisions(*(o.observation_id for o in held))}
        return {
            offer.price_id: Known(used.get(offer.price_id), offer, decided.get(offer.observation_id))
            for offer in held
        }

    def fetched_since(self, source: str, since: datetime) -> dict[str, Offer]:
        """The prices that `source` has brought since then: price_id -> its newest row from there."""
        values = {"source": source, "since": format_time(since)}
        rows = self._offers(
            f"SELECT {COLUMNS} FROM observations AS o WHERE source = :source AND fetched_at >= :since "
            f"AND quality <> 'suspect' ORDER BY {newness_sql('o')[1:-1]}",
            values,
        )
        return {offer.price_id: offer for offer in rows}

    def decisions(self, *observation_ids: str) -> tuple[Decision, ...]:
        """What people decided on these rows, or on all, oldest first."""
        with explained(self._place), self._engine.connect() as connection:
            return read_decisions(connection, observation_ids)

    def fetches(self, *sources: str) -> tuple[Fetch, ...]:
        """What refreshes brought from these sources, or from all, oldest first."""
        with explained(self._place), self._engine.connect() as connection:
            return read_fetches(connection, sources)

    def stored(self, item: str | None = None) -> Iterator[tuple[str, str, Offer]]:
        """Every row with the two hashes that are stored beside it: observation_id, price_id, offer.

        Read in batches, so that a long history fits. item: only its rows.
        """
        question = asked(item=item)
        query = (
            f"SELECT observation_id, price_id, {COLUMNS} FROM observations AS o WHERE {question.prices('o')}"
        )
        with explained(self._place), self._engine.connect() as connection:
            for row in connection.execution_options(yield_per=5000).execute(text(query), question.values):
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
        question = asked(kind=kinds)
        query = (
            "SELECT 1 FROM observations AS o WHERE amount IS NOT NULL AND quality <> 'suspect' "
            f"AND {question.prices('o')} LIMIT 1"
        )
        with explained(self._place), self._engine.connect() as connection:
            return connection.execute(text(query), question.values).scalar() is not None

    def lost_rows(self) -> int:
        """Rows whose price is not in the list of prices: no question finds them. There must be none."""
        query = "SELECT count(*) FROM observations WHERE price_id NOT IN (SELECT price_id FROM prices)"
        with explained(self._place), self._engine.connect() as connection:
            return int(connection.execute(text(query)).scalar_one())

    @property
    def items(self) -> tuple[str, ...]:
        """Every item that has a row."""
        with explained(self._place), self._engine.connect() as connection:
            return tuple(connection.execute(text("SELECT DISTINCT item FROM prices ORDER BY 1")).scalars())

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

    def decide(self, decision: Decision, offers: Iterable[Offer]) -> None:
        """Write a decision down and append what follows from it, in one transaction. Raises StoreUnusable."""
        self._check_writable()
        with explained(self._place), writing(self._engine) as connection:
            insert_decision(connection, decision)
            insert(connection, offers)

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

    def _offers(self, query: str, values: Mapping[str, str]) -> tuple[Offer, ...]:
        with explained(self._place), self._engine.connect() as connection:
            rows: Any = connection.execute(text(query), dict(values)).all()
        return tuple(map(self._as_offer, rows))

    def _as_offer(self, row: Any) -> Offer:
        try:
            return Offer.from_record(row)
        except BadOffer as error:
            raise StoreUnusable(
                f"{self.where} holds a row that is no offer ({error}). Put back a copy of the store."
            ) from None
