"""What people decided on prices that were set aside: append-only, like the prices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, text

from .offer import format_time, parse_time

Verdict = Literal["accepted", "rejected"]
_COLUMNS = ("observation_id", "verdict", "decided_at", "decided_by", "reason", "stored_as")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One person's word on one price.

    observation_id: of the row that was set aside. stored_as: of the row by which an accepted price is used.
    """

    observation_id: str
    verdict: Verdict
    decided_at: datetime
    decided_by: str
    reason: str
    stored_as: str | None = None

    @property
    def text(self) -> str:
        """The decision in one line."""
        return f"{self.verdict} by {self.decided_by} on {self.decided_at:%Y-%m-%d}: {self.reason}"


def insert_decision(connection: Connection, decision: Decision) -> None:
    """Write a decision down, inside the caller's transaction."""
    values = {name: getattr(decision, name) for name in _COLUMNS}
    values["decided_at"] = format_time(decision.decided_at)
    slots = ", ".join(f":{name}" for name in _COLUMNS)
    connection.execute(text(f"INSERT INTO decisions ({', '.join(_COLUMNS)}) VALUES ({slots})"), values)


def read_decisions(connection: Connection, observation_ids: Sequence[str] = ()) -> tuple[Decision, ...]:
    """Decisions on these rows, oldest first; () for all of them."""
    query = f"SELECT {', '.join(_COLUMNS)} FROM decisions"
    slots = {f"id_{number}": each for number, each in enumerate(observation_ids)}
    if slots:
        query += f" WHERE observation_id IN ({', '.join(':' + slot for slot in slots)})"
    rows = connection.execute(text(f"{query} ORDER BY decided_at, observation_id"), slots).all()
    return tuple(_decision(row) for row in rows)


def _decision(row: Any) -> Decision:
    values = dict(zip(_COLUMNS, row, strict=True))
    values["decided_at"] = parse_time("decided_at", values["decided_at"])
    return Decision(**values)
