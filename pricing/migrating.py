"""A set of tables that Alembic brings up to date in any database; there is no alembic.ini."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text

# Where env.py stands: it serves every set.
_SCRIPTS = Path(__file__).parent / "migrations"


def version_of(connection: Connection, version_table: str) -> str | None:
    """The revision that a set of tables is at; None when there are none of it yet."""
    if connection.dialect.name == "sqlite":
        found = "SELECT 1 FROM sqlite_master WHERE name = :name"
    else:
        found = "SELECT to_regclass(:name)"
    if connection.execute(text(found), {"name": version_table}).scalar() is None:
        return None
    return connection.execute(text(f"SELECT version_num FROM {version_table}")).scalar()


@dataclass(frozen=True, slots=True)
class Migrations:
    """versions: the folder of the revisions. version_table: which of them a database has had.

    Alembic takes 350 ms to import, so ask `version_of` first whether there is anything to do.
    """

    versions: Path
    version_table: str

    def upgrade(self, connection: Connection) -> None:
        """Bring the tables to the newest schema inside the connection's own transaction."""
        from alembic import command

        config = self._config()
        config.attributes["connection"] = connection
        config.attributes["version_table"] = self.version_table
        command.upgrade(config, "head")

    def heads(self) -> tuple[str, ...]:
        """The newest revisions among the scripts. There must be one."""
        return tuple(self._scripts().get_heads())

    def knows(self, version: str) -> bool:
        """Whether a database's revision is one of the scripts'."""
        from alembic.util import CommandError

        try:
            return self._scripts().get_revision(version) is not None
        except CommandError:
            return False

    def _config(self) -> Any:
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
        config.set_main_option("version_locations", str(self.versions).replace("%", "%%"))
        config.set_main_option("path_separator", "os")
        return config

    def _scripts(self) -> Any:
        from alembic.script import ScriptDirectory

        return ScriptDirectory.from_config(self._config())
