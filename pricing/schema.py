"""Which schema the price store has. The tables themselves are made by the migrations.

`observations` holds one row per observation, with the fields of Offer as columns and two hashes:
observation_id (primary key) and price_id. It is append-only: nothing is changed or deleted. `prices`
holds one row per price_id with what the price is known by; questions go through it. `latest` is a view,
`loads` says which packaged snapshots were appended, `fetches` what each refresh brought from each source.
Amounts are decimal text on every database (SQLite has no decimal type); times are UTC text of fixed width
(2026-09-10T19:55:14.000000Z) and text compares by code point (on PostgreSQL: collation "C"), so that text
order is time order everywhere.
"""

from __future__ import annotations

# The newest migration in migrations/versions. Kept here so that opening a store that is up to date
# need not import Alembic (350 ms).
HEAD = "0003"
# Not Alembic's own default name: a team's database may hold other programs' migrations.
VERSION_TABLE = "planner_schema_version"
