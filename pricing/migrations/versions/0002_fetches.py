"""What each refresh brought, source by source, and indexes for histories of one item or one source."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "fetches",
        sa.Column("fetch_id", _PLAIN, primary_key=True),
        *(sa.Column(name, _PLAIN, nullable=False) for name in ["source", "scope", "status", "fetched_at"]),
        *(sa.Column(name, _PLAIN) for name in ["message", "payload_sha256", "families"]),
        *(
            sa.Column(name, sa.Integer, nullable=False)
            for name in ["offers", "added", "waiting", "quarantined"]
        ),
    )
    op.create_index("fetches_by_source", "fetches", ["source", "fetched_at"])
    op.create_index("observations_by_item", "observations", ["item", "region", "price_id"])
    op.create_index("observations_by_source", "observations", ["source", "fetched_at"])


def downgrade() -> None:
    raise NotImplementedError("prices are append-only; restore a copy of the store instead")
