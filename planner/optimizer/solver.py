"""Solves a LinearModel with HiGHS in a child process that is watched and, past its limit, killed.

HiGHS has hung past its own time limit and has ended its process on hard models; neither must take a command
down. One child serves many solves, since starting it costs a quarter of a second of CPU. Where the child
dies, hangs or cannot be started (highspy is absent), scipy.optimize.milp solves in this process: the same
solver in an older, steadier release.
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
CHILD = (sys.executable, "-P", str(Path(__file__).with_name("solver_child.py")))


class ChildGone(Exception):
    """The child died, hung or answered nonsense."""


class Solver:
    """Use as a context manager; `solve` as often as needed.

    command: what to run as the child; () solves in this process with scipy alone.
    grace_seconds: after its limit the child is killed this much later.
    """

    def __init__(self, command: Sequence[str] = CHILD, grace_seconds: float = GRACE_SECONDS) -> None:
        self._command = tuple(command)
        self._grace = grace_seconds
        self._child: subprocess.Popen[bytes] | None = None
        self.fallbacks = 0
        self.solves = 0

    def __enter__(self) -> Solver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the child."""
        child, self._child = self._child, None
        if child is None:
            return
        if child.stdin is not None:
            child.stdin.close()
        try:
            child.wait(timeout=2)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if child.stdout is not None:
            child.stdout.close()

    def solve(self, model: LinearModel, *, gap: float = 0.0, seconds: float = 60.0) -> Solved:
        """Least cost. gap: relative, at which to stop. seconds: wall time for this model."""
        self.solves += 1
        if not len(model.cost):
            return Solved("optimal", np.zeros(0), 0.0, 0.0)
        if self._command:
            try:
                return self._in_child(model, gap, seconds)
            except ChildGone:
                self._kill()
                self.fallbacks += 1
        return solve_here(model, gap=gap, seconds=seconds)

    def _in_child(self, model: LinearModel, gap: float, seconds: float) -> Solved:
        answer = self._ask(model, gap, seconds)
        x = answer["x"]
        if len(x) and not holds(model, x):  # HiGHS has called a broken point feasible before
            raise ChildGone
        return Solved(
            str(answer["status"]),
            x if len(x) else None,
            float(answer["objective"]),
            float(answer["bound"]),
        )

    def _ask(self, model: LinearModel, gap: float, seconds: float) -> dict[str, Any]:
        child = self._started()
        arrays = {name: getattr(model, name) for name in model.__slots__}
        arrays |= {"gap": gap, "seconds": seconds}
        frame = io.BytesIO()
        write_frame(frame, arrays)
        try:
            deadline = time.monotonic() + seconds + self._grace
            self._write(child, frame.getvalue(), deadline)
            size = int.from_bytes(self._read(child, 8, deadline), "little")
            return unpack(self._read(child, size, deadline))
        except (OSError, ValueError, EOFError) as error:
            raise ChildGone from error

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            environ = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            try:
                self._child = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=environ,
                    bufsize=0,
                )
            except OSError as error:
                raise ChildGone from error
        return self._child

    def _write(self, child: subprocess.Popen[bytes], data: bytes, deadline: float) -> None:
        assert child.stdin is not None
        os.set_blocking(child.stdin.fileno(), False)  # a child that does not read must not hang us
        rest = memoryview(data)
        while rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([], [child.stdin], [], left)[1]:
                raise ChildGone
            rest = rest[os.write(child.stdin.fileno(), rest[: 1 << 20]) :]

    def _read(self, child: subprocess.Popen[bytes], size: int, deadline: float) -> bytes:
        assert child.stdout is not None
        parts: list[bytes] = []
        while size > 0:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([child.stdout], [], [], left)[0]:
                raise ChildGone
            part = os.read(child.stdout.fileno(), min(size, 1 << 20))
            if not part:
                raise ChildGone
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _kill(self) -> None:
        child = self._child
        if child is not None:
            child.kill()
        self.close()


def holds(model: LinearModel, x: Floats, near: float = 1e-5) -> bool:
    """Whether a point keeps every bound, row and integer of the model, within `near` of its size."""
    if len(x) != len(model.cost) or not np.isfinite(x).all():
        return False
    if (x < model.low - near).any() or (x > model.high + near).any():
        return False
    if (np.abs(x - np.round(x))[model.whole] > near).any():
        return False
    terms = model.value * x[model.index]
    row = np.repeat(np.arange(len(model.row_low)), np.diff(model.begin))
    sums = np.bincount(row, weights=terms, minlength=len(model.row_low))
    size = near * (1 + np.bincount(row, weights=np.abs(terms), minlength=len(model.row_low)))
    return bool((sums >= model.row_low - size).all() and (sums <= model.row_high + size).all())


def solve_here(model: LinearModel, *, gap: float = 0.0, seconds: float = 60.0) -> Solved:
    """By scipy.optimize.milp, in this process."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    shape = (len(model.row_low), len(model.cost))
    rows: Any = csr_array((model.value, model.index, model.begin), shape=shape)
    found: Any = milp(
        model.cost,
        integrality=model.whole.astype(np.uint8),
        bounds=Bounds(model.low, model.high),
        constraints=[LinearConstraint(rows, model.row_low, model.row_high)] if shape[0] else [],
        options={"time_limit": seconds, "mip_rel_gap": gap},
    )
    bound = -np.inf if found.mip_dual_bound is None else float(found.mip_dual_bound)
    if found.x is not None and holds(model, found.x):
        if not model.whole.any() and found.status == 0:
            bound = float(found.fun)
        return Solved("optimal" if found.status == 0 else "limit", found.x, float(found.fun), bound)
    if found.status == 2:
        return Solved("infeasible", None, np.inf, np.inf)
    return Solved("limit", None, np.inf, bound)
