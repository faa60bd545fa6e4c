"""What can go wrong when deciding, and the exit code each kind ends a command with.

PlannerError (1)      root; alone it means an internal error
├── InternalError (1)   two independent computations of the same plan disagree: nothing is printed
├── UsageError (2)      a name, flag or file that cannot be used (names key, value, nearest valid one)
├── Infeasible (3)      nothing fits, or nothing meets budget or deadline (carries limit and nearest plan)
├── NoPrice (4)         the only offers lack a usable price
└── NothingStored (5)   the price store is empty or cannot be opened
"""

from __future__ import annotations


class PlannerError(Exception):
    """Root of this package's errors; the message says what, where and what to do next."""

    exit_code = 1


class InternalError(PlannerError):
    """Two computations of one figure disagree; a fault of ours."""


class UsageError(PlannerError):
    """A value that cannot be used. key: the flag or key, None where no single one is at fault."""

    exit_code = 2

    def __init__(self, message: str, key: str | None = None) -> None:
        self.key = key
        super().__init__(message)


class Infeasible(PlannerError):
    """No option satisfies every limit.

    limit: "memory", "budget", "deadline", "budget and deadline" or "filters".
    asked: the limit as the user gave it. nearest: the closest plan that would work, as text, or None.
    """

    exit_code = 3

    def __init__(self, limit: str, asked: str, nearest: str | None, message: str) -> None:
        self.limit = limit
        self.asked = asked
        self.nearest = nearest
        super().__init__(message)


class NoPrice(PlannerError):
    """Hardware fits, but no offer for it has a usable price. excluded: (what, reason) pairs."""

    exit_code = 4

    def __init__(self, message: str, excluded: tuple[tuple[str, str], ...] = ()) -> None:
        self.excluded = excluded
        super().__init__(message)


class NothingStored(PlannerError):
    """No price at all is stored."""

    exit_code = 5


EXIT_CODES: dict[str, int] = {
    "ok": 0,
    "internal error": PlannerError.exit_code,
    "usage": UsageError.exit_code,
    "infeasible": Infeasible.exit_code,
    "no usable price": NoPrice.exit_code,
    "nothing stored": NothingStored.exit_code,
}
