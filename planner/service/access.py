"""Who asks: tokens, kept as hashes, with a role and an end; and what each role may do."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import text

from planner.errors import UsageError
from planner.pricing.offer import format_time
from planner.service.state import State, new_id, now

ROLES = ("viewer", "planner", "admin")
"""Each may do what those before it may: read; plan, keep and report; refresh prices, make tokens, see all."""

PREFIX = "plan_"
_USUAL_DAYS = 90


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks. owner: what they own carries this name. role: one of ROLES."""

    owner: str
    role: str

    def may(self, role: str) -> bool:
        """Whether this role, or one above it, is theirs."""
        return ROLES.index(self.role) >= ROLES.index(role)

    @property
    def sees(self) -> str | None:
        """Whose plans and jobs they see: their own; an admin everybody's (None)."""
        return None if self.role == "admin" else self.owner


LOCAL = Identity("local", "admin")
"""Whoever sits at the machine, where only the machine itself can ask."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a state. Only hashes are kept: a token is random enough that a slow hash adds nothing."""

    state: State

    def new(self, name: str, role: str, days: float | None = _USUAL_DAYS) -> tuple[str, str]:
        """Make a token: (its id, the token), which is told once and never again. Raises UsageError."""
        if role not in ROLES:
            raise UsageError(f"role = {role}: must be {', '.join(ROLES)}", "role")
        if not name.strip() or len(name) > 100 or not name.isprintable():
            raise UsageError("name: must be 1 to 100 printable characters", "name")
        if days is not None and not 0 < days <= 3660:
            raise UsageError(f"days = {days}: must lie above 0 and be at most 3660", "days")
        token, id = PREFIX + secrets.token_urlsafe(32), new_id()
        ends = None if days is None else format_time(datetime.now(UTC) + timedelta(days=days))
        with self.state.writes() as connection:
            connection.execute(
                text(
                    "INSERT INTO service_tokens (id, name, role, sha256, created_at, expires_at) "
                    "VALUES (:id, :name, :role, :sha256, :at, :ends)"
                ),
                {
                    "id": id,
                    "name": name.strip(),
                    "role": role,
                    "sha256": _hash(token),
                    "at": now(),
                    "ends": ends,
                },
            )
        return id, token

    def who(self, token: str) -> Identity | None:
        """Whose token it is; None for one that is unknown, ended or revoked. Asked anew each time."""
        if not token.startswith(PREFIX) or len(token) > 200:
            return None
        # The hash is looked up, so how long it takes says nothing of the token.
        found = self.state.rows(
            "SELECT name, role, expires_at, revoked_at FROM service_tokens WHERE sha256 = :sha256",
            sha256=_hash(token),
        )
        if not found or found[0]["revoked_at"] is not None:
            return None
        ends = found[0]["expires_at"]
        if ends is not None and ends <= now():
            return None
        return Identity(found[0]["name"], found[0]["role"])

    def all(self) -> list[dict[str, Any]]:
        return self.state.rows(
            "SELECT id, name, role, created_at, expires_at, revoked_at FROM service_tokens "
            "ORDER BY created_at, id"
        )

    def revoke(self, id: str) -> bool:
        """Whether there was such a token to revoke. It ends with the next request."""
        with self.state.writes() as connection:
            done = connection.execute(
                text("UPDATE service_tokens SET revoked_at = :at WHERE id = :id AND revoked_at IS NULL"),
                {"id": id, "at": now()},
            )
        return bool(done.rowcount)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
