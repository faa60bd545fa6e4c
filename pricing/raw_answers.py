"""Sellers' answers as they came, each under its SHA-256: what a stored price can be traced back to."""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, Protocol


class Answer(Protocol):
    """What can be kept: sources.RawPage."""

    @property
    def sha256(self) -> str: ...

    def open(self) -> BinaryIO: ...


class RawAnswers:
    """A folder of compressed answers. Nothing in it is ever changed; what is there already costs nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def keep(self, answer: Answer) -> Path:
        """Store the answer, whole or not at all; returns where. Raises OSError when the disk is full."""
        path = self.path(answer.sha256)
        if path.exists():
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(dir=path.parent, suffix=".partial")
        try:
            # mtime 0: equal answers give equal files.
            with (
                os.fdopen(handle, "wb") as file,
                gzip.GzipFile("", "wb", compresslevel=3, fileobj=file, mtime=0) as packed,
                closing(answer.open()) as body,
            ):
                shutil.copyfileobj(body, packed)
            os.replace(partial, path)
        except BaseException:
            Path(partial).unlink(missing_ok=True)
            raise
        return path

    def path(self, sha256: str) -> Path:
        """Where the answer with this hash lies, or would."""
        return self.folder / sha256[:2] / f"{sha256}.gz"

    def has(self, sha256: str) -> bool:
        """Whether it is there."""
        return self.path(sha256).exists()

    def read(self, sha256: str) -> bytes:
        """The answer, byte for byte. Raises FileNotFoundError."""
        with gzip.open(self.path(sha256)) as file:
            return file.read()
