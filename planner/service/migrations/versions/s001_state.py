"""Jobs, kept plans, tokens, the audit log, repeated requests and uploaded profiles."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "s001"
down_revision = None

_PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _texts(*names: str, null: bool = False) -> list[sa.Column[str]]:
    return [sa.Column(name, _PLAIN, nullable=null) for name in names]


def _key() -> sa.Column[str]:
    return sa.Column("id", _PLAIN, primary_key=True)


def upgrade() -> None:
    op.create_table(
        "service_jobs",
        _key(),
        *_texts("kind", "owner", "state", "asked", "created_at"),
        *_texts("message", "error", "plan_id", "claim", "started_at", "ended_at", "heartbeat_at", null=True),
        sa.Column("progress", sa.Float),
        sa.Column("tries", sa.Integer, nullable=False),
    )
    op.create_index("service_jobs_by_state", "service_jobs", ["state", "created_at"])
    op.create_table("service_plans", _key(), *_texts("kind", "name", "owner", "created_at", "document"))
    op.create_index("service_plans_by_owner", "service_plans", ["owner", "created_at"])
    op.create_table(
        "service_tokens",
        _key(),
        *_texts("name", "role", "sha256", "created_at"),
        *_texts("expires_at", "revoked_at", null=True),
    )
    op.create_index("service_tokens_by_hash", "service_tokens", ["sha256"], unique=True)
    op.create_table("service_audit", _key(), *_texts("at", "who", "what", "detail"))
    op.create_index("service_audit_by_time", "service_audit", ["at"])
    op.create_table(
        "service_repeats",
        *(sa.Column(name, _PLAIN, primary_key=True) for name in ("owner", "key")),
        *_texts("asked_sha256", "created_at"),
        *_texts("answer", null=True),
    )
    op.create_table("service_profiles", _key(), *_texts("name", "owner", "created_at", "document"))


def downgrade() -> None:
    raise NotImplementedError("restore a copy of the store instead: planner serve restore FILE")
