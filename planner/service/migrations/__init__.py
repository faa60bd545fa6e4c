"""Alembic migrations of the service's own tables, which stand beside the prices in one database."""

from __future__ import annotations

from pathlib import Path

from planner.pricing.migrating import Migrations

# The newest revision: a database that is at it need not have Alembic imported.
HEAD = "s001"
VERSION_TABLE = "planner_service_version"

_OURS = Migrations(Path(__file__).parent / "versions", VERSION_TABLE)

upgrade = _OURS.upgrade
heads = _OURS.heads
knows = _OURS.knows
