"""The service as a process of its own, with quick made-up work in place of what takes long.

    python made_server.py '{"store_url": "sqlite:////tmp/prices.sqlite", "port": 0}'

A schedule takes its `months` in tenths of a second and its plan carries its name. A refresh of `["made-7"]`
takes three tenths and stores the price 107 of a seller who says so.
"""

from __future__ import annotations

import json
import sys
import threading
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from planner.service import work


def _schedule(asked: dict[str, Any], tell: work.Tell) -> tuple[dict[str, Any], str]:
    schedule = asked["schedule"]
    for tenth in range(schedule["months"]):
        tell("tenths", tenth, schedule["months"])
        _tenths(1)
    return {"kind": "schedule", "name": schedule["name"]}, "made up"


def _refresh(asked: dict[str, Any], tell: work.Tell) -> tuple[None, str]:
    from made_up_sources import MovableClock, context, saying
    from priced import offer

    from planner.pricing.refresh import refresh
    from planner.pricing.store import PriceStore

    source = next(iter(asked.get("sources", ())), "made-0")
    amount = 100 + int(source.removeprefix("made-"))
    said = saying("made", offer(provider="made", amount=Decimal(amount)), before=lambda: _tenths(3))
    with PriceStore.open() as store:
        report = refresh(store, [said], context(MovableClock(datetime.now(UTC))))
    return None, f"{report.added} rows added"


def _tenths(count: int) -> None:
    threading.Event().wait(count / 10)


# A job's process imports this file anew, so it finds the made-up work too.
work.KINDS["schedule"] = _schedule
work.KINDS["refresh"] = _refresh

if __name__ == "__main__":
    from planner.cli.serving import serve_until_told
    from planner.service.settings import ServiceSettings

    serve_until_told(ServiceSettings(**json.loads(sys.argv[1])))
