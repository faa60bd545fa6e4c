"""Solvers as child processes: right answers, and no trust in one that lies, hangs or dies."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from planner.optimizer import schedule_front, solver_child
from planner.optimizer.check_choice import check_choice
from planner.optimizer.linear_model import Builder, LinearModel
from planner.optimizer.problem import Job, Option, Problem
from planner.optimizer.schedule_front import front
from planner.optimizer.solver import HIGHSPY, SCIPY, Solver


def knapsack() -> LinearModel:
    """Least −(10 a + 6 b + 4 c) with a + b + c ≤ 2 and 5 a + 4 b + 3 c ≤ 8; a, b, c in {0, 1}: −14."""
    build = Builder()
    x = build.columns(3, np.array([-10.0, -6.0, -4.0]), 0.0, 1.0, whole=True)
    build.row([(x, 1.0)], high=2.0)
    build.row([(x, np.array([5.0, 4.0, 3.0]))], high=8.0)
    return build.model()


def stub(folder: Path, body: str) -> tuple[str, ...]:
    """A child that answers each model by `body`, which sees `asked` and sets `answer`."""
    script = folder / "stub.py"
    script.write_text(
        "import sys, time, os\n"
        f"sys.path.insert(0, {str(Path(solver_child.__file__).parent)!r})\n"
        "import numpy as np, solver_child\n"
        "def solve(asked):\n"
        "    answer = None\n" + "".join(f"    {line}\n" for line in body.splitlines()) + "    return answer\n"
        "solver_child.SOLVERS = {'stub': solve}\n"
        "sys.argv[1:] = ['stub']\n"
        "solver_child.main()\n",
        encoding="utf-8",
    )
    return (sys.executable, str(script))


@pytest.mark.parametrize("command", [HIGHSPY, SCIPY], ids=["highspy", "scipy"])
def test_a_knapsack_is_solved_and_what_cannot_be_is_said(
    command: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    with Solver((command,)) as one:
        solved = one.solve(knapsack())
        assert (solved.status, solved.objective) == ("optimal", pytest.approx(-14.0))
        build = Builder()
        x = build.columns(2, 1.0, 0.0, 1.0, whole=True)
        build.row([(x, 1.0)], low=3.0)
        assert one.solve(build.model()).status == "infeasible"
        assert one.fallbacks == 0
    assert capfd.readouterr() == ("", "")


LIES = {
    "a better objective than its point has": (
        "answer = {'status': 'optimal', 'x': np.array([1., 0., 0.]), 'objective': -14., 'bound': -14.}"
    ),
    "a point that breaks a row": (
        "answer = {'status': 'optimal', 'x': np.array([1., 1., 1.]), 'objective': -20., 'bound': -20.}"
    ),
    "half a thing": (
        "answer = {'status': 'optimal', 'x': np.array([1., .5, .5]), 'objective': -15., 'bound': -15.}"
    ),
    "a bound above its own point": (
        "answer = {'status': 'limit', 'x': np.array([1., 0., 1.]), 'objective': -14., 'bound': -3.}"
    ),
    "optimal without a point": (
        "answer = {'status': 'optimal', 'x': np.zeros(0), 'objective': -14., 'bound': -14.}"
    ),
    "no number": (
        "answer = {'status': 'optimal', 'x': np.full(3, np.nan), 'objective': -14., 'bound': -14.}"
    ),
    "death": "os._exit(3)",
}


@pytest.mark.parametrize("lie", LIES)
def test_a_child_that_cannot_be_trusted_is_replaced(lie: str, tmp_path: Path) -> None:
    with Solver((stub(tmp_path, LIES[lie]), SCIPY), grace_seconds=60) as both:
        solved = both.solve(knapsack(), seconds=1.0)
        assert both.fallbacks == 1
    assert (solved.status, solved.objective) == ("optimal", pytest.approx(-14.0))


def test_a_child_that_hangs_is_ended(tmp_path: Path) -> None:
    with Solver((stub(tmp_path, "time.sleep(600)"),), grace_seconds=0.2) as one:
        assert one.solve(knapsack(), seconds=0.2).status == "limit"
        assert one.fallbacks == 1


def test_without_any_child_there_is_no_answer_rather_than_a_wrong_one() -> None:
    with Solver((("/nonexistent/solver",),)) as none:
        solved = none.solve(knapsack())
    assert (solved.status, solved.x, solved.bound) == ("limit", None, -np.inf)


def test_a_proof_that_is_none_is_not_called_optimal(tmp_path: Path) -> None:
    early = "answer = {'status': 'optimal', 'x': np.array([1., 0., 0.]), 'objective': -10., 'bound': -14.}"
    with Solver((stub(tmp_path, early),)) as one:
        assert one.solve(knapsack(), gap=0.1).status == "limit"
        assert one.solve(knapsack(), gap=0.5).status == "optimal"


def two_prices() -> Problem:
    """One job of ten hours at 100 or 120."""
    options = (Option("cheap", 10.0, 100.0), Option("dear", 10.0, 120.0))
    return Problem((100.0,), (Job("j", 0.0, None, 0.0, (0,), (), options),))


def test_c33_a_plan_in_hand_at_the_limit_is_kept_with_its_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C33: the solver stops with a plan of 120 and a bound of 100."""
    stops = (
        "dear = int(np.argmax(asked['cost'] * (asked['cost'] > 1)))\n"
        "x = np.minimum(np.maximum(asked['low'], 0.0), asked['high'])\n"
        "x[asked['whole']] = 0.0\n"
        "x[dear] = 1.0\n"
        "x[~asked['whole']] = np.where(asked['high'] < 1e18, asked['high'], 10.0)[~asked['whole']]\n"
        "starts = ~asked['whole'] & (asked['cost'] == 0)\n"
        "x[starts] = asked['low'][starts]\n"
        "answer = {'status': 'limit', 'x': x, 'objective': float(asked['cost'] @ x), 'bound': 100.0}"
    )
    problem = two_prices()
    monkeypatch.setattr(schedule_front, "small_enough", lambda *_: False)
    monkeypatch.setattr(schedule_front, "reduce", lambda options, _: options)
    monkeypatch.setattr("planner.optimizer.milp_front.reduce", lambda options, *_: options)
    with Solver((stub(tmp_path, stops),)) as one:
        (row,) = front(problem, points=1, gap=0.0, solver=one)
    check_choice(problem, row)
    assert row.cost == 120.0
    assert not row.proven
    assert row.gap == pytest.approx(20 / 120, abs=1e-4)


def test_a_real_gap_is_proven() -> None:
    (row,) = front(two_prices(), points=1)
    assert (row.cost, row.gap, row.proven) == (100.0, 0.0, True)
