"""One row a price, so that the latest of a few costs nothing for the history of all; people's decisions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_KNOWN_BY = "kind provider item region contract"

_DECIDED = "observation_id verdict decided_at decided_by reason"

_LATEST = """
CREATE VIEW latest AS
SELECT * FROM observations WHERE observation_id IN (
    SELECT (
        SELECT n.observation_id FROM observations AS n
        WHERE n.price_id = p.price_id AND n.quality <> 'suspect'
        ORDER BY n.observed_at DESC, coalesce(n.fetched_at, n.observed_at) DESC, n.observation_id DESC LIMIT 1
    ) FROM prices AS p
)
"""


def upgrade() -> None:
    op.create_table(
        "prices",
        sa.Column("price_id", _PLAIN, primary_key=True),
        *(sa.Column(name, _PLAIN, nullable=False) for name in _KNOWN_BY.split()),
        sa.Column("condition", _PLAIN),
    )
    columns = f"price_id, {', '.join(_KNOWN_BY.split())}, condition"
    op.execute(f"INSERT INTO prices ({columns}) SELECT DISTINCT {columns} FROM observations")
    op.create_index("prices_by_item", "prices", ["item", "region"])
    op.execute("DROP VIEW latest")
    op.execute(_LATEST)
    # What these two were for is found through prices now, and each cost a tenth of every append.
    op.drop_index("observations_by_kind", "observations")
    op.drop_index("observations_by_item", "observations")
    op.create_table(
        "decisions",
        *(sa.Column(name, _PLAIN, nullable=False) for name in _DECIDED.split()),
        sa.Column("stored_as", _PLAIN),
        sa.PrimaryKeyConstraint("observation_id", "decided_at"),
    )


def downgrade() -> None:
    raise NotImplementedError("prices are append-only; restore a copy of the store instead")
