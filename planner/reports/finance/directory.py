"""A folder of files that is there entirely or not at all, with the hash of each in manifest.json."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from planner.errors import UsageError

MANIFEST = "manifest.json"
_PARTIAL = ".partial"
_STALE_SECONDS = 24 * 3600
# linux/fcntl.h AT_FDCWD, linux/fs.h RENAME_EXCHANGE.
_CWD, _SWAP = -100, 2


def refuse(target: Path, yes: bool) -> None:
    """Raises UsageError where the folder may not be written; it never asks."""
    if not target.parent.is_dir():
        raise UsageError(f'there is no folder "{target.parent}" to write "{target.name}" into')
    if target.exists() and not target.is_dir():
        raise UsageError(f'"{target}" is a file; -o takes a folder')
    if target.is_dir() and any(target.iterdir()):
        if not (target / MANIFEST).is_file():
            raise UsageError(f'"{target}" holds files that no report wrote; choose another folder')
        if not yes:
            raise UsageError(f'"{target}" holds a report already; add --yes to replace it')


class WholeFolder:
    """Files are written beside `target` and moved there at once: a killed run leaves what was there.

    What it leaves beside it, the next run for the same target takes away once it is a day old.
    """

    def __init__(self, target: Path) -> None:
        self._target = target.absolute()
        name = f".{target.name}."
        for left in self._target.parent.glob(f"{name}*{_PARTIAL}"):
            if time.time() - left.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(left, ignore_errors=True)
        self._partial = Path(tempfile.mkdtemp(dir=self._target.parent, prefix=name, suffix=_PARTIAL))
        self._files: list[dict[str, Any]] = []

    def write(self, name: str, pieces: Iterable[bytes]) -> None:
        mark, size = hashlib.sha256(), 0
        with (self._partial / name).open("wb") as out:
            for piece in pieces:
                out.write(piece)
                mark.update(piece)
                size += len(piece)
            out.flush()
            os.fsync(out.fileno())
        self._files.append({"name": name, "sha256": mark.hexdigest(), "bytes": size})

    def finish(self, about: Mapping[str, Any]) -> None:
        """Write the manifest and put the folder in its place."""
        body = dict(about) | {"files": sorted(self._files, key=lambda file: str(file["name"]))}
        self.write(MANIFEST, [json.dumps(body, ensure_ascii=False, indent=1).encode() + b"\n"])
        os.chmod(self._partial, 0o755)
        _synced(self._partial)
        if self._target.is_dir() and any(self._target.iterdir()):
            _exchange(self._partial, self._target)
            _synced(self._target.parent)
            shutil.rmtree(self._partial, ignore_errors=True)  # which is what stood there before
        else:
            os.rename(self._partial, self._target)
            _synced(self._target.parent)

    def abandon(self) -> None:
        shutil.rmtree(self._partial, ignore_errors=True)


def _exchange(one: Path, other: Path) -> None:
    """Swap two folders at once, where the system can (renameat2 of Linux); else one after the other.

    Source: renameat2(2), RENAME_EXCHANGE.
    """
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function and function(_CWD, os.fsencode(one), _CWD, os.fsencode(other), _SWAP) == 0:
        return
    aside = one.with_name(f"{one.name}.aside")
    os.rename(other, aside)
    os.rename(one, other)
    os.rename(aside, one)


def _synced(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
