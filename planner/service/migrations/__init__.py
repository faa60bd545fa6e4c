"""Alembic migrations of the service's own tables, which stand beside the prices in one database."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection

HEAD = "s001"
VERSION_TABLE = "planner_service_version"


def upgrade(connection: Connection) -> None:
    """Bring the tables to the newest schema inside the connection's own transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    config.attributes["version_table"] = VERSION_TABLE
    command.upgrade(config, "head")


def heads() -> tuple[str, ...]:
    """The newest revisions among the scripts. There must be one, equal to HEAD."""
    from alembic.script import ScriptDirectory

    return tuple(ScriptDirectory(str(Path(__file__).parent)).get_heads())
