"""Alembic migrations of the price store; needed only when a store is new or old."""

from __future__ import annotations

from pathlib import Path

from ..migrating import Migrations
from ..schema import VERSION_TABLE

_OURS = Migrations(Path(__file__).parent / "versions", VERSION_TABLE)

upgrade = _OURS.upgrade
heads = _OURS.heads
knows = _OURS.knows
