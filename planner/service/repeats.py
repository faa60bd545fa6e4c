"""Idempotency keys: a POST that is sent again, by a retry say, is done once and answered the same."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import text

from planner.errors import UsageError
from planner.service.state import State, now

_WAIT_SECONDS = 30.0


def once(
    state: State, owner: str, key: str | None, asked: Mapping[str, Any], work: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """The answer of work(), or the one that it had under this key. Raises UsageError where the key was used
    for something else."""
    if key is None:
        return work()
    sha256 = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
    until = time.monotonic() + _WAIT_SECONDS
    while not _take(state, owner, key, sha256):
        found = state.rows(
            "SELECT asked_sha256, answer FROM service_repeats WHERE owner = :owner AND key = :key",
            owner=owner,
            key=key,
        )
        if not found:
            continue  # the first try failed and gave the key back
        row = found[0]
        if row["asked_sha256"] != sha256:
            raise UsageError("this Idempotency-Key was used for another request; use a new one", "key")
        if row["answer"] is not None:
            answered: dict[str, Any] = json.loads(row["answer"])
            return answered
        if time.monotonic() > until:
            raise UsageError("a request with this Idempotency-Key is still worked on; ask again", "key")
        time.sleep(0.05)  # the first try may be another server's: only the database tells of its end
    try:
        answer = work()
    except BaseException:
        _run(state, "DELETE FROM service_repeats WHERE owner = :owner AND key = :key", owner=owner, key=key)
        raise
    _run(
        state,
        "UPDATE service_repeats SET answer = :answer WHERE owner = :owner AND key = :key",
        owner=owner,
        key=key,
        answer=json.dumps(answer),
    )
    return answer


def _take(state: State, owner: str, key: str, sha256: str) -> bool:
    return _run(
        state,
        "INSERT INTO service_repeats (owner, key, asked_sha256, created_at) "
        "VALUES (:owner, :key, :sha256, :at) ON CONFLICT (owner, key) DO NOTHING",
        owner=owner,
        key=key,
        sha256=sha256,
        at=now(),
    )


def _run(state: State, statement: str, **given: Any) -> bool:
    with state.writes() as connection:
        return connection.execute(text(statement), given).rowcount == 1
