"""The process that runs a solver: reads models from stdin, writes answers to stdout, until stdin ends.

Its one argument says which: highspy, or scipy (scipy.optimize.milp, HiGHS of an older release). Run by its
path, it imports nothing of this package. A frame is a length (8 bytes, little endian) and that many bytes: a
NumPy archive (.npz), read with pickles refused. What HiGHS prints to stdout, even when told to be silent,
goes to stderr.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any, BinaryIO

import numpy as np


def write_frame(stream: BinaryIO, arrays: dict[str, Any]) -> None:
    """One frame with these arrays (numbers become arrays of no dimension)."""
    body = io.BytesIO()
    np.savez(body, **arrays)
    data = body.getvalue()
    stream.write(len(data).to_bytes(8, "little") + data)
    stream.flush()


def unpack(data: bytes) -> dict[str, Any]:
    """The arrays of one frame's body."""
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def by_highspy(asked: dict[str, Any]) -> dict[str, Any]:
    """Answer one model."""
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    # With restarts on, HiGHS 1.16.0 hung past its time limit on a schedule of 200 jobs; without them it took
    # 6 s. See tools/bench_optimizer.py.
    highs.setOptionValue("mip_allow_restart", False)
    highs.setOptionValue("mip_rel_gap", float(asked["gap"]))
    highs.setOptionValue("mip_abs_gap", 1e-9)
    # A column that is whole but for 1e-6 is worth 1e-6 of its hours: 2 s of a run of three weeks.
    highs.setOptionValue("mip_feasibility_tolerance", 1e-7)
    highs.setOptionValue("time_limit", float(asked["seconds"]))
    highs.passModel(_program(highspy, asked))
    highs.run()
    return _answer(highspy, highs, bool(asked["whole"].any()))


def _program(highspy: Any, asked: dict[str, Any]) -> Any:
    program = highspy.HighsLp()
    program.num_col_ = len(asked["cost"])
    program.num_row_ = len(asked["row_low"])
    program.col_cost_ = asked["cost"]
    program.col_lower_ = asked["low"]
    program.col_upper_ = asked["high"]
    program.row_lower_ = asked["row_low"]
    program.row_upper_ = asked["row_high"]
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = asked["begin"].astype(np.int32)
    program.a_matrix_.index_ = asked["index"].astype(np.int32)
    program.a_matrix_.value_ = asked["value"]
    kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
    if asked["whole"].any():
        program.integrality_ = [kinds[int(whole)] for whole in asked["whole"]]
    return program


def _answer(highspy: Any, highs: Any, whole: bool) -> dict[str, Any]:
    status = highs.getModelStatus()
    info = highs.getInfo()
    known = highspy.HighsModelStatus
    if status in (known.kInfeasible, known.kUnboundedOrInfeasible):
        return {"status": "infeasible", "x": np.zeros(0), "objective": np.inf, "bound": np.inf}
    solved = status == known.kOptimal
    has_point = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    x = np.array(highs.getSolution().col_value) if has_point else np.zeros(0)
    bound = info.mip_dual_bound if whole else (info.objective_function_value if solved else -np.inf)
    return {
        "status": "optimal" if solved and has_point else "limit",
        "x": x,
        "objective": info.objective_function_value if has_point else np.inf,
        "bound": bound,
    }


def by_scipy(asked: dict[str, Any]) -> dict[str, Any]:
    """Answer one model."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    shape = (len(asked["row_low"]), len(asked["cost"]))
    rows: Any = csr_array((asked["value"], asked["index"], asked["begin"]), shape=shape)
    found: Any = milp(
        asked["cost"],
        integrality=asked["whole"].astype(np.uint8),
        bounds=Bounds(asked["low"], asked["high"]),
        constraints=[LinearConstraint(rows, asked["row_low"], asked["row_high"])] if shape[0] else [],
        options={"time_limit": float(asked["seconds"]), "mip_rel_gap": float(asked["gap"])},
    )
    if found.status == 2:
        return {"status": "infeasible", "x": np.zeros(0), "objective": np.inf, "bound": np.inf}
    solved = found.status == 0 and found.x is not None
    bound = -np.inf if found.mip_dual_bound is None else float(found.mip_dual_bound)
    if solved and not asked["whole"].any():
        bound = float(found.fun)
    return {
        "status": "optimal" if solved else "limit",
        "x": np.zeros(0) if found.x is None else found.x,
        "objective": np.inf if found.x is None else float(found.fun),
        "bound": bound,
    }


SOLVERS = {"highspy": by_highspy, "scipy": by_scipy}


def main() -> None:
    """Answer frames until stdin ends."""
    solve = SOLVERS[sys.argv[1]]
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        head = sys.stdin.buffer.read(8)
        if len(head) < 8:
            return
        asked = unpack(sys.stdin.buffer.read(int.from_bytes(head, "little")))
        write_frame(out, solve(asked))


if __name__ == "__main__":
    main()
