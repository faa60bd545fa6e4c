"""The SQL that the store asks in: filters, dates, and the one order of "newer"."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from itertools import islice
from typing import Any, TypedDict, TypeVar, Unpack

from .offer import Offer, aware, format_time

Filter = str | Collection[str] | None
T = TypeVar("T")
AsOf = date | datetime | None


def newness(offer: Offer) -> tuple[datetime, datetime, str]:
    """The one order of "newer", as the store has it.

    What the source dates later; of two readings of one instant, the one fetched later (this is how a
    correction is made); then the hash, so that the answer never depends on the order of appending.
    """
    return (offer.observed_at, offer.fetched_at or offer.observed_at, offer.observation_id)


def end_of(as_of: date | datetime) -> datetime:
    """The last instant that `as_of` covers, in UTC: itself, or the end of the day. Raises BadOffer."""
    if isinstance(as_of, datetime):
        return aware("as_of", as_of)
    return datetime.combine(as_of, time.max, UTC)


class Filters(TypedDict, total=False):
    """Columns of `prices`, by which a price is found; each takes one value or several, None means any."""

    item: Filter
    kind: Filter
    provider: Filter
    region: Filter
    contract: Filter
    condition: Filter


@dataclass(frozen=True, slots=True)
class Asked:
    """Which prices a question is about, as SQL.

    where: a condition on the table `prices`. until: whether only rows up to :as_of count.
    """

    where: str
    values: dict[str, str]
    until: bool

    def prices(self, table: str) -> str:
        """The condition on rows of `table`, which have a price_id."""
        return f"{table}.price_id IN (SELECT price_id FROM prices WHERE {self.where})"


def asked(as_of: AsOf = None, **filters: Unpack[Filters]) -> Asked:
    """The question for these filters, and for what had been observed by `as_of`."""
    clauses: list[str] = []
    values: dict[str, str] = {}
    given: Mapping[str, Any] = filters
    for column, value in given.items():
        if column not in Filters.__annotations__:
            raise TypeError(f"no filter {column}")
        if value is None:
            continue
        names = [value] if isinstance(value, str) else sorted(value)
        slots = {f"{column}_{number}": name for number, name in enumerate(names)}
        values |= slots
        clauses.append(f"{column} IN ({', '.join(':' + slot for slot in slots)})" if slots else "1 = 0")
    if as_of is not None:
        values["as_of"] = format_time(end_of(as_of))
    return Asked(" AND ".join(clauses) or "1 = 1", values, as_of is not None)


def newness_sql(table: str) -> str:
    """The order of `newness`, as SQL."""
    return f"({table}.observed_at, coalesce({table}.fetched_at, {table}.observed_at), {table}.observation_id)"


def batches(values: Sequence[T], size: int) -> Iterator[list[T]]:
    """The values, so many at a time."""
    rest = iter(values)
    while batch := list(islice(rest, size)):
        yield batch


def by_date(as_of: AsOf) -> str:
    """How a message says by when."""
    return "" if as_of is None else f" by {as_of.isoformat()}"


def history_sql(columns: str, asked: Asked) -> str:
    """Every observation of the prices asked for, oldest first."""
    until = " AND observed_at <= :as_of" if asked.until else ""
    return (
        f"SELECT {columns} FROM observations AS o WHERE {asked.prices('o')}{until} "
        f"ORDER BY {newness_sql('o')[1:-1]}"
    )


def latest_sql(columns: str, asked: Asked) -> str:
    """The newest row of each price asked for that is not suspect, in a fixed order."""
    by_then = " AND n.observed_at <= :as_of" if asked.until else ""
    newest = newest_sql(columns, asked.where, f"AND n.quality <> 'suspect'{by_then}")
    return f"{newest} ORDER BY kind, item, provider, region, contract, price_id"


def newest_sql(columns: str, prices: str, rows: str = "") -> str:
    """The newest row of each price. prices: a condition on the table `prices`; rows: more on observations n.

    Each price's newest row is looked up by the index, so that a long history costs no more than a short one.
    """
    newest = (
        f"SELECT n.observation_id FROM observations AS n WHERE n.price_id = p.price_id {rows} "
        "ORDER BY n.observed_at DESC, coalesce(n.fetched_at, n.observed_at) DESC, n.observation_id DESC "
        "LIMIT 1"
    )
    found = f"SELECT ({newest}) FROM prices AS p WHERE {prices}"
    return f"SELECT {columns} FROM observations AS o WHERE o.observation_id IN ({found})"
