"""The SQL that the store asks in: filters, dates, and the one order of "newer"."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, date, datetime, time
from itertools import islice

from .offer import Offer, aware, format_time

Filter = str | Collection[str] | None
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


def where(as_of: AsOf, **wanted: Filter) -> tuple[str, dict[str, str]]:
    """SQL conditions for the filters and their values. Column names are the keywords of this module."""
    clauses: list[str] = []
    values: dict[str, str] = {}
    for column, value in wanted.items():
        if value is None:
            continue
        names = [value] if isinstance(value, str) else sorted(value)
        slots = {f"{column}_{number}": name for number, name in enumerate(names)}
        values |= slots
        clauses.append(f"{column} IN ({', '.join(':' + slot for slot in slots)})" if slots else "1 = 0")
    if as_of is not None:
        values["as_of"] = format_time(end_of(as_of))
        clauses.append(_UNTIL.removeprefix(" AND "))
    return "".join(f" AND {clause}" for clause in clauses), values


def newness_sql(table: str) -> str:
    """The order of `newness`, as SQL."""
    return f"({table}.observed_at, coalesce({table}.fetched_at, {table}.observed_at), {table}.observation_id)"


def batches(values: Sequence[str], size: int) -> Iterator[list[str]]:
    """The values, so many at a time."""
    rest = iter(values)
    while batch := list(islice(rest, size)):
        yield batch


def by_date(as_of: AsOf) -> str:
    """How a message says by when."""
    return "" if as_of is None else f" by {as_of.isoformat()}"


_UNTIL = " AND observed_at <= :as_of"


def history_sql(columns: str, clauses: str) -> str:
    """Every observation, oldest first. clauses: what `where` gave."""
    return f"SELECT {columns} FROM observations AS o WHERE 1 = 1{clauses} ORDER BY {newness_sql('o')[1:-1]}"


def latest_sql(columns: str, clauses: str, *, by_item: bool) -> str:
    """The newest row of each price that is not suspect. clauses: what `where` gave.

    by_item: look the newest row up once for each price instead of comparing rows: filters are on what a price
    is known by, so 10,000 rows of one item and region then cost about as much as ten. Of a whole kind it is
    the other way round.
    """
    until = " AND n.observed_at <= :as_of" if clauses.endswith(_UNTIL) else ""
    order = "ORDER BY kind, item, provider, region, contract, price_id"
    if by_item:
        newest = (
            "SELECT n.observation_id FROM observations AS n WHERE n.price_id = k.price_id "
            f"AND n.quality <> 'suspect'{until} ORDER BY n.observed_at DESC, "
            "coalesce(n.fetched_at, n.observed_at) DESC, n.observation_id DESC LIMIT 1"
        )
        keys = f"SELECT DISTINCT price_id FROM observations WHERE 1 = 1{clauses.removesuffix(_UNTIL)}"
        found = f"SELECT ({newest}) FROM ({keys}) AS k"
        return f"SELECT {columns} FROM observations AS o WHERE o.observation_id IN ({found}) {order}"
    return (
        f"SELECT {columns} FROM observations AS o WHERE quality <> 'suspect'{clauses} AND NOT EXISTS ("
        "SELECT 1 FROM observations AS n WHERE n.price_id = o.price_id AND n.quality <> 'suspect'"
        f"{until} AND {newness_sql('n')} > {newness_sql('o')}) {order}"
    )
