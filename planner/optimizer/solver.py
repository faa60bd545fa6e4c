"""Solves a LinearModel with HiGHS in a child process that is watched and, past its limit, killed.

HiGHS has hung past its own time limit and has ended its process on hard models; neither must take a command
down. One child serves many solves, since starting it costs a quarter of a second of CPU. Where a child dies,
hangs, cannot be started (highspy is absent) or answers something untrue, the model goes to another child with
scipy.optimize.milp: the same solver in an older, steadier release.

No answer is taken on trust: a point must keep every row, bound and integer, its cost is computed again, and a
proof must be one.
"""

from __future__ import annotations

import io
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from .flat import Floats
from .linear_model import LinearModel, Solved
from .solver_child import unpack, write_frame

# What the child may take beyond the time limit it was given before it is killed.
GRACE_SECONDS = 10.0
_CHILD = (sys.executable, "-P", str(Path(__file__).with_name("solver_child.py")))
HIGHSPY, SCIPY = (*_CHILD, "highspy"), (*_CHILD, "scipy")
# By how much a point may miss a row or an integer: what HiGHS itself allows, ten times over, and float noise.
FEASIBILITY = 1e-6
_NOISE = 1e-9


class ChildGone(Exception):
    """The child died, hung or answered something untrue."""


class Solver:
    """Use as a context manager; `solve` as often as needed.

    commands: what to run as children, each where those before it failed on a model.
    grace_seconds: after its limit a child is killed this much later.
    fallbacks: how many models the first child could not be trusted with.
    """

    def __init__(
        self,
        commands: Sequence[Sequence[str]] = (HIGHSPY, SCIPY),
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        self._children = [_Child(tuple(command)) for command in commands]
        self._grace = grace_seconds
        self.fallbacks = 0
        self.solves = 0

    def __enter__(self) -> Solver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the children."""
        for child in self._children:
            child.close()

    def solve(
        self,
        model: LinearModel,
        *,
        gap: float = 0.0,
        seconds: float = 60.0,
        feasibility: float = FEASIBILITY,
    ) -> Solved:
        """Least cost. gap: relative, at which to stop. seconds: wall time for this model.

        feasibility: by how much a row, bound or integer may be missed. Where no child gives an answer that
        holds: status "limit", no point, no bound.
        """
        self.solves += 1
        if not len(model.cost):
            return Solved("optimal", np.zeros(0), 0.0, 0.0)
        for number, child in enumerate(self._children):
            try:
                answer = child.ask(model, gap, seconds, time.monotonic() + seconds + self._grace)
                return judged(model, answer, gap, feasibility)
            except ChildGone:
                child.kill()
                self.fallbacks += number == 0
        return Solved("limit", None, np.inf, -np.inf)


class _Child:
    """One solver process: started when first asked, and again after it died."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, model: LinearModel, gap: float, seconds: float, deadline: float) -> dict[str, Any]:
        """Its answer by `deadline` (time.monotonic). Raises ChildGone."""
        process = self._started()
        arrays = {name: getattr(model, name) for name in model.__slots__}
        arrays |= {"gap": gap, "seconds": seconds}
        frame = io.BytesIO()
        write_frame(frame, arrays)
        try:
            _write(process, frame.getvalue(), deadline)
            size = int.from_bytes(_read(process, 8, deadline), "little")
            return unpack(_read(process, size, deadline))
        except (OSError, ValueError, EOFError) as error:
            raise ChildGone from error

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
        self.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            environ = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            try:
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=environ,
                    bufsize=0,
                )
            except OSError as error:
                raise ChildGone from error
        return self._process


def _write(process: subprocess.Popen[bytes], data: bytes, deadline: float) -> None:
    assert process.stdin is not None
    os.set_blocking(process.stdin.fileno(), False)  # a child that does not read must not hang us
    rest = memoryview(data)
    while rest:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([], [process.stdin], [], left)[1]:
            raise ChildGone
        rest = rest[os.write(process.stdin.fileno(), rest[: 1 << 20]) :]


def _read(process: subprocess.Popen[bytes], size: int, deadline: float) -> bytes:
    assert process.stdout is not None
    parts: list[bytes] = []
    while size > 0:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
            raise ChildGone
        part = os.read(process.stdout.fileno(), min(size, 1 << 20))
        if not part:
            raise ChildGone
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def judged(
    model: LinearModel, answer: dict[str, Any], gap: float, feasibility: float = FEASIBILITY
) -> Solved:
    """A child's answer, its cost computed anew. Raises ChildGone where it contradicts the model or itself."""
    status, x = str(answer["status"]), answer["x"]
    objective, bound = float(answer["objective"]), float(answer["bound"])
    if status == "infeasible" and not len(x):
        return Solved(status, None, np.inf, np.inf)
    if status not in ("optimal", "limit") or (status == "optimal" and not len(x)):
        raise ChildGone
    bound = -np.inf if np.isnan(bound) else bound
    if not len(x):
        return Solved("limit", None, np.inf, bound)
    if not holds(model, x, feasibility):  # HiGHS has called a broken point feasible before
        raise ChildGone
    cost = float(model.cost @ x)
    near = _NOISE + 1e-7 * (1.0 + float(np.abs(model.cost) @ np.abs(x)))
    if abs(cost - objective) > near or bound > cost + near:
        raise ChildGone
    if status == "optimal" and cost - bound > gap * abs(cost) + near:
        status = "limit"  # ended by itself, yet without the proof that was asked for
    return Solved(status, x, cost, min(bound, cost))


def holds(model: LinearModel, x: Floats, feasibility: float = FEASIBILITY) -> bool:
    """Whether a point keeps every bound, row and integer of the model within `feasibility`."""
    if len(x) != len(model.cost) or not np.isfinite(x).all():
        return False
    beyond = np.maximum(model.low - x, x - model.high)
    if (beyond > feasibility * np.maximum(1.0, 1e-3 * np.abs(x))).any():
        return False
    if (np.abs(x - np.round(x))[model.whole] > feasibility).any():
        return False
    terms = model.value * x[model.index]
    row = np.repeat(np.arange(len(model.row_low)), np.diff(model.begin))
    sums = np.bincount(row, weights=terms, minlength=len(model.row_low))
    size = feasibility + _NOISE * np.bincount(row, weights=np.abs(terms), minlength=len(model.row_low))
    return bool((sums >= model.row_low - size).all() and (sums <= model.row_high + size).all())
