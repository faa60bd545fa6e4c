"""What a user wrote down about sources: which pages, feeds, files; one TOML table a source, values as text.

[retail-pages]
pages = "~/prices/pages.csv"

[skypilot-catalog]
providers = "lambda,runpod,vast"
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from ..errors import BadPriceFile

LARGEST_BYTES = 2**20


def read_settings(file: Path) -> dict[str, dict[str, str]]:
    """The tables of the file by source name; {} when there is no file. Paths are relative to its folder.

    Raises BadPriceFile, naming table and key.
    """
    try:
        raw = file.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise BadPriceFile(f"{file}: {error.strerror or error}. Check its permissions.") from None
    if len(raw) > LARGEST_BYTES:
        raise BadPriceFile(f"{file}: {len(raw):,} bytes; settings of at most {LARGEST_BYTES:,} are meant")
    try:
        tables = tomllib.loads(raw.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadPriceFile(f"{file}: not valid TOML: {error}") from None
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise BadPriceFile(f'{file}: "{name}" stands outside a table; write [SOURCE] above it')
        for key, value in table.items():
            if not isinstance(value, str):
                raise BadPriceFile(f"{file}, [{name}] {key}: text in quotes is meant, not {value!r}")
    return {name: {**table, "_folder": str(file.parent)} for name, table in tables.items()}


def path_of(settings: dict[str, str], key: str) -> Path | None:
    """The file that a setting names, relative to the settings' own folder; None when it is not set."""
    value = settings.get(key)
    return None if not value else Path(settings.get("_folder", "."), Path(value).expanduser())
