"""Answers kept for a moment: the same question to the same prices is worked out once, however many ask."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from planner.pricing.address import sqlite_file

# An answer counts ages of prices from now, so it is not kept for long.
_SECONDS = 60.0
_MOST = 256


class Answers:
    """Bodies by question. Of several that ask the same at once one works and the others wait for it."""

    def __init__(self, url: str | None) -> None:
        self._file = sqlite_file(url)
        self._kept: OrderedDict[str, tuple[float, Future[bytes]]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, what: str, asked: Mapping[str, Any], work: Callable[[], Any]) -> bytes:
        """The JSON body; work() makes its document. Raises what work raises; failures are not kept."""
        key = json.dumps([what, asked, self._prices()], sort_keys=True, default=str)
        with self._lock:
            found = self._kept.get(key)
            mine = found is None or time.monotonic() - found[0] > _SECONDS
            if mine:
                found = time.monotonic(), Future()
                self._kept[key] = found
                while len(self._kept) > _MOST:
                    self._kept.popitem(last=False)
            assert found is not None
        future = found[1]
        if not mine:
            return future.result()
        try:
            future.set_result(json.dumps(work(), separators=(",", ":")).encode())
        except BaseException as error:
            with self._lock:
                self._kept.pop(key, None)
            future.set_exception(error)
            raise
        return future.result()

    def _prices(self) -> Any:
        """Changes with what is stored: sizes and times of the file; elsewhere every five seconds."""
        if self._file is None:
            return int(time.monotonic() // 5)
        stamps = []
        for name in (self._file, self._file.with_name(self._file.name + "-wal")):
            try:
                stat = name.stat()
            except FileNotFoundError:
                continue
            stamps.append((stat.st_mtime_ns, stat.st_size))
        return stamps
