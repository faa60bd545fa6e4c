"""What to relax where no plan is possible: the least, and a plan that keeps it."""

from __future__ import annotations

import dataclasses

import brute_force
import made_schedules
import pytest

from planner.optimizer import schedule_front
from planner.optimizer.check_choice import check_choice
from planner.optimizer.problem import Job, Option, Pool, Problem, RigType
from planner.optimizer.relax import ProblemInfeasible, Relaxation, relaxed
from planner.optimizer.schedule_front import front

OPTIONS = (Option("slow", 10.0, 165.0), Option("fast", 6.0, 400.0))


def one(**changed: object) -> Problem:
    """One job: 165 in ten hours or 400 in six."""
    job = Job("train", 0.0, None, 0.0, (0,), (), OPTIONS)
    job = dataclasses.replace(job, **{k: v for k, v in changed.items() if k == "deadline"})  # type: ignore[arg-type]
    rest = {k: v for k, v in changed.items() if k != "deadline"}
    return Problem((1000.0,), (job,), **rest)  # type: ignore[arg-type]


def refused(problem: Problem) -> ProblemInfeasible:
    with pytest.raises(ProblemInfeasible) as caught:
        front(problem)
    for found in (caught.value.relaxations, *caught.value.alternatives):
        if found:
            for row in front(relaxed(problem, found)):
                check_choice(relaxed(problem, found), row)
    return caught.value


def test_c32_a_budget_that_is_too_small_names_the_cheapest_plan() -> None:
    """C32: budget 100, cheapest plan 165."""
    told = refused(one(budget=100.0))
    assert told.relaxations == (Relaxation("budget", "", 100.0, 165.0),)
    assert "asked 100, needed 165" in str(told)


def test_c32_a_deadline_that_is_too_early_names_the_fastest_plan() -> None:
    """C32: deadline 4 h, fastest plan 6 h."""
    (told,) = refused(one(deadline=4.0)).relaxations
    assert (told.limit, told.item, told.asked) == ("deadline", "train", 4.0)
    assert told.needed == pytest.approx(6.0, abs=1e-4)


def test_either_limit_is_told_where_either_would_do() -> None:
    told = refused(one(deadline=8.0, budget=200.0))
    both = {each.limit: each.needed for found in (told.relaxations, *told.alternatives) for each in found}
    assert both == {"budget": 400.0, "deadline": pytest.approx(10.0, abs=1e-4)}


def test_both_limits_are_told_where_both_must_give() -> None:
    told = refused(one(deadline=4.0, budget=100.0))
    assert {each.limit for each in told.relaxations} == {"deadline", "budget"}


def test_only_the_runs_that_cannot_be_in_time_are_named() -> None:
    jobs = tuple(
        Job(f"j{n}", 0.0, deadline, 0.0, (0,), (), OPTIONS) for n, deadline in enumerate((5.0, 30.0, 2.0))
    )
    told = refused(Problem((1000.0,), jobs))
    assert [each.item for each in told.relaxations] == ["j0", "j2"]


def test_quota_power_and_rigs_give_by_as_little_as_will_do() -> None:
    own = (Option("own", 60.0, 1.0, rig=0, rigs=2),)
    jobs = tuple(Job(f"j{n}", 0.0, 100.0, 0.0, (0,), (), own) for n in range(2))
    rigs = (RigType("rig", (100.0,), most=3, watts=500.0),)
    told = refused(Problem((1000.0,), jobs, rigs, watts=5000.0))
    assert (Relaxation("rigs", "rig", 3, 4),) in (told.relaxations, *told.alternatives)
    wide = (dataclasses.replace(rigs[0], most=8),)
    told = refused(Problem((1000.0,), jobs, wide, watts=1200.0))
    sets = (told.relaxations, *told.alternatives)
    assert (Relaxation("power", "", 1200.0, 2000.0),) in sets
    rented = (Option("rented", 60.0, 1.0, gpus=8, pool=0),)
    jobs = tuple(dataclasses.replace(job, options=rented) for job in jobs)
    told = refused(Problem((1000.0,), jobs, pools=(Pool("p", 12),)))
    assert (Relaxation("quota", "p", 12, 16),) in (told.relaxations, *told.alternatives)


def test_a_month_without_money_is_named_with_what_it_must_pay() -> None:
    told = refused(one(deadline=50.0, month_budget=(100.0,)))
    found = next(s for s in (told.relaxations, *told.alternatives) if s[0].limit == "month budget")
    assert (found[0].item, found[0].asked) == ("0", 100.0)
    assert found[0].needed == pytest.approx(165.0, rel=1e-3)


def test_a_job_that_nothing_can_run_is_named() -> None:
    problem = one()
    problem = dataclasses.replace(problem, jobs=(dataclasses.replace(problem.jobs[0], options=()),))
    told = refused(problem)
    assert told.relaxations == ()
    assert "train: no option can run it" in str(told)


@pytest.mark.parametrize("seed", range(2000, 2030))
def test_the_least_budget_and_deadlines_of_made_schedules(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By brute force: the cheapest plan is the least budget; every set told lets a plan through."""
    problem = dataclasses.replace(made_schedules.schedule(seed), budget=None)
    if seed % 3 == 0:
        monkeypatch.setattr(schedule_front, "small_enough", lambda *_: False)
    best = brute_force.front(problem)
    if not best:
        refused(problem)
        return
    if best[0][0] <= 0:
        return
    told = refused(dataclasses.replace(problem, budget=best[0][0] * 0.5))
    sets = (told.relaxations, *told.alternatives)
    found = next(found for found in sets if [each.limit for each in found] == ["budget"])
    assert found[0].needed == pytest.approx(best[0][0], rel=1.1e-3)
