"""Observed prices, the view of the latest, and what has been loaded."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

# Spelled out, not taken from offer.py: a migration must make the same table for ever.
_TEXT_NOT_NULL = (
    "price_id kind provider item region contract unit currency observed_at source tax availability quality "
    "components"
)
_TEXT = (
    "amount zone sku source_ref payment os tenancy condition amount_low amount_high upfront tax_rate "
    "gpu_model gpu_form vcpu ram_gib local_ssd_gib net_gbps checked_at valid_from "
    "valid_to fetched_at reason raw_sha256 note"
)
_INTEGER = "term_months gpu_count gpu_mem_mib sample_n"

_LATEST = """
CREATE VIEW latest AS
SELECT * FROM (
    SELECT observations.*, row_number() OVER (
        PARTITION BY price_id
        ORDER BY observed_at DESC, coalesce(fetched_at, observed_at) DESC, observation_id DESC
    ) AS newness
    FROM observations WHERE quality <> 'suspect'
) AS ranked WHERE newness = 1
"""


# Compared by code point on both databases: SQLite does so anyway.
_PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "observations",
        sa.Column("observation_id", _PLAIN, primary_key=True),
        *(sa.Column(name, _PLAIN, nullable=False) for name in _TEXT_NOT_NULL.split()),
        *(sa.Column(name, _PLAIN) for name in _TEXT.split()),
        *(sa.Column(name, sa.Integer) for name in _INTEGER.split()),
    )
    op.create_index("observations_by_price", "observations", ["price_id", "observed_at"])
    op.create_index("observations_by_kind", "observations", ["kind", "item"])
    op.create_table(
        "loads",
        sa.Column("content_sha256", _PLAIN, primary_key=True),
        sa.Column("loaded_at", _PLAIN, nullable=False),
        sa.Column("rows_added", sa.Integer, nullable=False),
    )
    op.execute(_LATEST)


def downgrade() -> None:
    raise NotImplementedError("prices are append-only; restore a copy of the store instead")
