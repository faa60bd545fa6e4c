"""Kill refreshes at random moments and look at the store after each: run as a program, it prints what it saw.

    python kill_refreshes.py PATH KILLS

Each refresh moves all of 100 prices to one new amount. A reader must find one amount for all of them,
before and after every kill, and never an amount older than the last one found.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from made_up_sources import NOW, MovableClock, context, saying
from priced import offer

from planner.pricing.refresh import refresh
from planner.pricing.store import PriceStore

PRICES = 100
_BASE = [offer(item=f"made-{number}", provider="made") for number in range(PRICES)]


def main(path: str, kills: int) -> None:
    """Kill `kills` refreshes and print the count of refreshes that were whole, as JSON."""
    with PriceStore.open(path) as store:
        _refresh(store, 1)
    seed = random.Random(20260911)
    version, landed = 1, 0
    # What one refresh takes here and now, so that kills fall before, into and after its writing.
    began = time.monotonic()
    version = _in_child(path, version, kill_after=None)
    usual = time.monotonic() - began
    for _ in range(kills):
        found = _in_child(path, version, kill_after=seed.uniform(0, usual * 1.1))
        assert found >= version, f"version {found} after version {version}: a whole refresh was lost"
        landed += found - version
        version = found
    _in_child(path, version, kill_after=None)
    with PriceStore.open(path) as store:
        assert store.damage() is None
    print(json.dumps({"kills": kills, "landed": landed}))


def _in_child(path: str, version: int, kill_after: float | None) -> int:
    """One refresh in a process of its own; returns the version that the store is at afterwards."""
    child = os.fork()
    if child == 0:
        _then_leave(lambda: _work(path, version + 1))
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert kill_after is not None or status == 0, f"a refresh that was left alone ended with {status}"
    return _version(path)


def _then_leave(work: Callable[[], None]) -> None:
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def _work(path: str, version: int) -> None:
    with PriceStore.open(path) as store:
        _refresh(store, version)


def _refresh(store: PriceStore, version: int) -> None:
    amount = 100 + Decimal(version) / 100
    clock = MovableClock(NOW + timedelta(minutes=version))
    refresh(store, [saying("made", *(replace(each, amount=amount) for each in _BASE))], context(clock))


def _version(path: str) -> int:
    with closing(sqlite3.connect(path)) as plain:
        assert plain.execute("PRAGMA quick_check").fetchall() == [("ok",)]
        rows = plain.execute("SELECT amount FROM latest WHERE provider = 'made'").fetchall()
        (logged,) = plain.execute("SELECT count(*) FROM fetches WHERE source = 'made'").fetchone()
    assert len(rows) == PRICES, f"{len(rows)} prices"
    found = {Decimal(amount) for (amount,) in rows}
    assert len(found) == 1, f"a torn refresh: {sorted(map(str, found))}"
    (amount,) = found
    version = int((amount - 100) * 100)
    assert logged == version, f"{logged} fetches are logged for {version} refreshes"
    return version


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
