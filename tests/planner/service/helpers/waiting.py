"""Waiting for what other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def until(look: Callable[[], Found], seconds: float, what: str) -> Found:
    """The first answer of look() that is not empty. Raises AssertionError after so long."""
    end = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, f"waited {seconds} s until {what}"
        time.sleep(0.02)
