"""The tables of the price store. The migrations make them; a test holds the two together.

`observations` is append-only: nothing is ever changed or deleted, "latest" and "as of" are views.
Amounts are decimal text on every database (SQLite has no decimal type) and times are UTC text of
fixed width (2026-09-10T19:55:14.000000Z), so that text order is time order on both.
"""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, MetaData, Table, Text

from .offer import FIELDS

# The newest migration in migrations/versions. Kept here so that opening a store that is up to date
# need not import Alembic (350 ms).
HEAD = "0001"
# Not Alembic's own default name: a team's database may hold other programs' migrations.
VERSION_TABLE = "planner_schema_version"

INTEGER_FIELDS = frozenset({"term_months", "gpu_count", "gpu_mem_mib", "sample_n"})
NEVER_NULL = frozenset(
    {
        "kind",
        "provider",
        "item",
        "region",
        "contract",
        "unit",
        "currency",
        "observed_at",
        "source",
        "tax",
        "availability",
        "quality",
        "components",
    }
)

metadata = MetaData()

observations = Table(
    "observations",
    metadata,
    Column("observation_id", Text, primary_key=True),
    Column("price_id", Text, nullable=False),
    *(
        Column(name, Integer if name in INTEGER_FIELDS else Text, nullable=name not in NEVER_NULL)
        for name in FIELDS
    ),
    Index("observations_by_price", "price_id", "observed_at"),
    Index("observations_by_kind", "kind", "item"),
)

# Which packaged snapshots have been appended: one row per content hash.
loads = Table(
    "loads",
    metadata,
    Column("content_sha256", Text, primary_key=True),
    Column("loaded_at", Text, nullable=False),
    Column("rows_added", Integer, nullable=False),
)
