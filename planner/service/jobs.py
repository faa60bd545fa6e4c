"""Long work as rows: queued, running, done, failed or cancelled. Who works on them: workers.py.

A worker holds a job by the random text in `claim`. Whoever lost it (its process died or hung, and another
took the job over) finds another text there and writes nothing more: a job ends once. Each change is one
statement that names the claim, or begins with one, so that two servers cannot both believe they made it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from planner.service.state import State, insert_plan, new_id, now

MOST_TRIES = 3
MOST_WAITING = 50
RUNNING = ("queued", "running")


class TooMany(Exception):
    """More jobs wait than may."""


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs of a state."""

    state: State

    def add(self, kind: str, asked: Mapping[str, Any], owner: str) -> str:
        """Queue a job; returns its id. Raises TooMany."""
        id = new_id()
        with self.state.writes() as connection:
            waiting = connection.execute(text("SELECT count(*) FROM service_jobs WHERE state = 'queued'"))
            if waiting.scalar_one() >= MOST_WAITING:
                raise TooMany(f"{MOST_WAITING} jobs wait already; try again when some are done")
            connection.execute(
                text(
                    "INSERT INTO service_jobs (id, kind, owner, state, asked, created_at, tries) "
                    "VALUES (:id, :kind, :owner, 'queued', :asked, :at, 0)"
                ),
                {"id": id, "kind": kind, "owner": owner, "asked": json.dumps(asked), "at": now()},
            )
        return id

    def get(self, id: str, owner: str | None) -> dict[str, Any] | None:
        """One job as JSON shows it; None where this owner has none of that id. owner: None: any."""
        found = self.state.rows("SELECT * FROM service_jobs WHERE id = :id", id=id)
        return None if not found or owner not in (None, found[0]["owner"]) else _shown(found[0])

    def newest(self, owner: str | None, limit: int = 100) -> list[dict[str, Any]]:
        found = self.state.rows(
            "SELECT * FROM service_jobs WHERE :everyone = 1 OR owner = :owner "
            "ORDER BY created_at DESC, id LIMIT :limit",
            everyone=int(owner is None),
            owner=owner or "",
            limit=limit,
        )
        return [_shown(row) for row in found]

    def counts(self) -> dict[str, int]:
        found = self.state.rows("SELECT state, count(*) AS jobs FROM service_jobs GROUP BY state")
        return {row["state"]: row["jobs"] for row in found}

    def cancel(self, id: str, owner: str | None) -> bool:
        """End a job that has not ended; its worker stops within a second."""
        return self._change(
            "UPDATE service_jobs SET state = 'cancelled', ended_at = :at, claim = NULL WHERE id = :id "
            "AND state IN ('queued', 'running') AND (:everyone = 1 OR owner = :owner)",
            id=id,
            at=now(),
            everyone=int(owner is None),
            owner=owner or "",
        )

    def claim(self, id: str | None = None) -> tuple[str, str] | None:
        """Take the oldest queued job, or that one: (id, claim). None where there is nothing to take."""
        skip = " FOR UPDATE SKIP LOCKED" if self.state.engine.dialect.name == "postgresql" else ""
        with self.state.writes() as connection:
            row = connection.execute(
                text(
                    "SELECT id FROM service_jobs WHERE state = 'queued' AND (:any = 1 OR id = :id) "
                    f"ORDER BY created_at, id LIMIT 1{skip}"
                ),
                {"any": int(id is None), "id": id or ""},
            ).first()
            if row is None:
                return None
            claim = new_id()
            connection.execute(
                text(
                    "UPDATE service_jobs SET state = 'running', claim = :claim, tries = tries + 1, "
                    "started_at = :at, heartbeat_at = :at WHERE id = :id"
                ),
                {"id": row[0], "claim": claim, "at": now()},
            )
        return str(row[0]), claim

    def beat(self, id: str, claim: str) -> bool:
        """Say that its worker lives. False: the job is no longer this worker's."""
        return self._change(
            "UPDATE service_jobs SET heartbeat_at = :at WHERE id = :id AND claim = :claim",
            id=id,
            claim=claim,
            at=now(),
        )

    def tell(self, id: str, claim: str, message: str, progress: float | None) -> bool:
        return self._change(
            "UPDATE service_jobs SET message = :message, progress = :progress "
            "WHERE id = :id AND claim = :claim",
            id=id,
            claim=claim,
            message=message[:300],
            progress=progress,
        )

    def done(self, id: str, claim: str, document: Mapping[str, Any] | None, message: str = "") -> bool:
        """End it well, with its plan, in one transaction. False: the job was no longer this worker's."""
        with self.state.writes() as connection:
            row = connection.execute(
                text(
                    "UPDATE service_jobs SET state = 'done', ended_at = :at, progress = 1, "
                    "message = :message, claim = NULL WHERE id = :id AND claim = :claim RETURNING owner"
                ),
                {"id": id, "claim": claim, "at": now(), "message": message},
            ).first()
            if row is not None and document is not None:
                connection.execute(
                    text("UPDATE service_jobs SET plan_id = :plan WHERE id = :id"),
                    {"id": id, "plan": insert_plan(connection, document, str(row[0]))},
                )
        return row is not None

    def fail(self, id: str, claim: str, error: str) -> bool:
        return self._change(
            "UPDATE service_jobs SET state = 'failed', error = :error, ended_at = :at, claim = NULL "
            "WHERE id = :id AND claim = :claim",
            id=id,
            claim=claim,
            error=error[:2000],
            at=now(),
        )

    def give_back(self, id: str, claim: str) -> bool:
        """A worker that has to stop leaves the job to another; this try does not count."""
        return self._change(
            "UPDATE service_jobs SET state = 'queued', claim = NULL, tries = tries - 1 "
            "WHERE id = :id AND claim = :claim",
            id=id,
            claim=claim,
        )

    def try_again(self, id: str, claim: str, why: str) -> bool:
        """Leave it to another worker; the try counts, after MOST_TRIES the job has failed. True: queued."""
        queued = self._change(
            "UPDATE service_jobs SET state = 'queued', claim = NULL, message = :why "
            "WHERE id = :id AND claim = :claim AND tries < :most",
            id=id,
            claim=claim,
            why=why[:300],
            most=MOST_TRIES,
        )
        if not queued:
            self.fail(id, claim, why)
        return queued

    def held(self) -> list[tuple[str, str, str]]:
        """Who works on what: (id, claim, heartbeat) of each running job."""
        found = self.state.rows(
            "SELECT id, claim, heartbeat_at FROM service_jobs WHERE state = 'running' ORDER BY id"
        )
        return [(row["id"], row["claim"], row["heartbeat_at"]) for row in found]

    def _change(self, statement: str, **given: Any) -> bool:
        with self.state.writes() as connection:
            return bool(connection.execute(text(statement), given).rowcount)


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    left_out = ("claim", "asked", "heartbeat_at")
    return {key: value for key, value in row.items() if key not in left_out}
