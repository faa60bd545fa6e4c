"""Runs migrations on the connection that `upgrade` hands over; there is no alembic.ini."""

from __future__ import annotations

from alembic import context

_GIVEN = context.config.attributes

context.configure(
    connection=_GIVEN["connection"], version_table=_GIVEN["version_table"], transactional_ddl=True
)
with context.begin_transaction():
    context.run_migrations()
