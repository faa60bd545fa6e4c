"""Alembic migrations of the price store; imported only when a store is new or old."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection

from ..schema import VERSION_TABLE


def upgrade(connection: Connection) -> None:
    """Bring the store to the newest schema inside the connection's own transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    config.attributes["version_table"] = VERSION_TABLE
    command.upgrade(config, "head")


def heads() -> tuple[str, ...]:
    """The newest revisions among the scripts. There must be one, equal to schema.HEAD."""
    from alembic.script import ScriptDirectory

    return tuple(ScriptDirectory(str(Path(__file__).parent)).get_heads())


def knows(version: str) -> bool:
    """Whether the store's revision is one of the scripts'."""
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError

    try:
        return ScriptDirectory(str(Path(__file__).parent)).get_revision(version) is not None
    except CommandError:
        return False
