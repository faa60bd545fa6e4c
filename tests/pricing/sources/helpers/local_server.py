"""A context that asks a server on this machine, and records waits instead of waiting."""

from __future__ import annotations

from typing import Any

from planner.pricing.sources import FetchContext


def local_context(waits: list[float] | None = None, **changed: Any) -> FetchContext:
    """waits: where each wait between two tries is written down, in seconds."""
    recorded = waits if waits is not None else []
    plain: dict[str, Any] = {
        "loopback": True,
        "sleep": recorded.append,
        "connect_seconds": 2.0,
        "read_seconds": 2.0,
    }
    return FetchContext(**{**plain, **changed})
