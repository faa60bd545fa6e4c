"""Data files to one file: `python -m planner.models.workloads.compile_zoo`.

Reading fifty TOML files takes 60 ms and a plan reads one; the compiled file is read in 1 ms. A test compiles
again and compares, so that the two cannot drift apart.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import BadData
from . import records

FOLDER = Path(__file__).parent
DATA = FOLDER / "data"
COMPILED = FOLDER / "zoo.json"


def spelling(name: str) -> str:
    """The form under which two spellings of one name are equal.

    >>> spelling("MPT 3B"), spelling("vit_base_patch16_224")
    ('mpt-3b', 'vit-base-patch16-224')
    """
    return name.strip().casefold().replace("_", "-").replace(" ", "-")


def compile_records(folder: Path = DATA) -> dict[str, Any]:
    """{"aliases": {spelling: id}, "workloads": {id: record}} of every data file, checked.

    Raises BadData for a broken file, an id that is not its file's name, or a name claimed twice.
    """
    workloads: dict[str, Any] = {}
    aliases: dict[str, str] = {}
    for path in sorted(folder.glob("*.toml")):
        record = read_record(path)
        workload = records.from_record(record, path.name)
        if workload.id != path.stem:
            raise BadData(f'{path.name}: key "id" is {workload.id!r}; it must be the file\'s name')
        workloads[workload.id] = record
        for name in {spelling(n) for n in (workload.id, *workload.aliases)}:
            if aliases.setdefault(name, workload.id) != workload.id:
                raise BadData(f'{path.name}: the name "{name}" already means {aliases[name]}')
    return {"aliases": dict(sorted(aliases.items())), "workloads": workloads}


def read_record(path: Path) -> dict[str, Any]:
    """One data file with its dates as text. Raises BadData naming the file."""
    import tomllib

    try:
        body = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadData(f"{path.name}: not readable as TOML ({error})") from error
    plain = _plain(body)
    assert isinstance(plain, dict)
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value


def main() -> None:
    compiled = compile_records()
    COMPILED.write_text(json.dumps(compiled, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(compiled['workloads'])} workloads, {len(compiled['aliases'])} names -> {COMPILED.name}")


if __name__ == "__main__":
    main()
