"""What was traced once on this machine is kept: JSON in the user's cache folder, keyed by its content.

The folder is the platform's (`PLANNER_CACHE_DIR` overrides). Anything in it may be deleted at any time; a
file that does not read back is made again, never an error.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..tracing import step_trace
from .records import Workload

_TRACING = Path(step_trace.__file__).parent
_BUILDING = Path(__file__).parent


def folder() -> Path:
    """Where cached traces live. It may not exist yet."""
    override = os.environ.get("PLANNER_CACHE_DIR")
    if override:
        return Path(override)
    import platformdirs

    return Path(platformdirs.user_cache_dir("training-planner", appauthor=False))


def key(workload: Workload, what: str) -> str:
    """Name of a cache entry: changes with the configuration, the libraries and our own tracing code."""
    body = {
        "workload": workload.id,
        "builder": asdict(workload.builder),
        "what": what,
        "versions": versions(),
        "code": code_hash(),
    }
    return digest(body)


def digest(body: Mapping[str, Any]) -> str:
    """sha256 of JSON-ready values, shortened to 32 hex digits."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def read(name: str) -> Any:
    """The JSON kept under that name, or None where there is none that reads back."""
    try:
        return json.loads(gzip.decompress(_path(name).read_bytes()))
    except (OSError, EOFError, ValueError):
        return None


def write(name: str, body: Any) -> None:
    """Keep JSON under that name, whole or not at all. A folder that cannot be written is not an error."""
    path = _path(name)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(gzip.compress(json.dumps(body, separators=(",", ":")).encode(), mtime=0))
        partial.replace(path)
    except OSError:  # read-only home, full disk: the answer stands, the next one is traced again
        with contextlib.suppress(OSError):
            partial.unlink()


def _path(name: str) -> Path:
    return folder() / "traces" / f"{name}.json.gz"


@functools.cache
def versions() -> dict[str, str]:
    """Versions of the libraries a trace depends on, without importing them; "" where one is missing."""
    from importlib import metadata  # 20 ms, and a plan from shipped traces never asks

    found: dict[str, str] = {}
    for name in ("torch", "transformers"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = ""
    return found


@functools.cache
def code_hash() -> str:
    """sha256 of the code that builds and traces, so that a changed rule never reads an old answer."""
    content = hashlib.sha256()
    for root in (_TRACING, _BUILDING):
        for path in sorted(root.rglob("*.py")):
            content.update(path.name.encode() + path.read_bytes())
    return content.hexdigest()
