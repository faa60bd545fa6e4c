"""Writes data/catalogue.json from the TOML files: `python -m planner.models.hardware.compile`.

Reading the TOML takes about 50 ms of CPU, the JSON 3 ms (Python 3.11), and a planning command has 800.
The JSON carries the hash of the files it was made from, so a stale one is never read (catalogue.py falls back
to the TOML), and a test refuses to let it lie about.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from .schema import FILES

DATA = Path(__file__).parent / "data"
COMPILED = DATA / "catalogue.json"


def fingerprint(folder: Path = DATA) -> str:
    """Hash of the TOML files' bytes."""
    digest = hashlib.sha256()
    for name in FILES:
        digest.update(name.encode() + b"\0" + (folder / name).read_bytes())
    return digest.hexdigest()


def compiled(folder: Path = DATA) -> dict[str, Any]:
    """What catalogue.json should hold."""
    from .toml_tables import read_catalogue  # planning reads the JSON and needs no TOML

    return {"made_from": fingerprint(folder), **read_catalogue(folder)}


def main() -> None:
    text = json.dumps(compiled(), ensure_ascii=False, separators=(",", ":"), sort_keys=False)
    COMPILED.write_text(text + "\n", encoding="utf-8")
    print(f"wrote {COMPILED.name}: {len(text):,} bytes")


if __name__ == "__main__":
    main()
