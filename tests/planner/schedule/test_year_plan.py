"""The project of notebooks/year_plan.yaml: a year whose plans reach from all rented to all owned."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import planner
from planner.schedule.api import runs_as_rows
from planner.schedule.file import read_schedule

YEAR = Path(__file__).parents[3] / "notebooks" / "year_plan.yaml"


def test_it_has_a_dozen_jobs_over_twelve_months() -> None:
    file = read_schedule(YEAR)
    assert file.months == 12
    assert len(file.jobs) >= 12
    assert len(runs_as_rows(YEAR)) == 35


@pytest.mark.slow
def test_its_front_has_rented_mixed_and_owned_plans() -> None:
    plan = planner.optimize_schedule(YEAR, seconds=300)
    assert {point.kind for point in plan.front} == {"cloud", "hybrid", "owned"}
    assert plan.front[0].kind == "owned"
    assert plan.front[-1].kind == "cloud"
    for cheap, fast in itertools.pairwise(plan.front):
        assert cheap.cost.p50 < fast.cost.p50
        assert cheap.time_hours.p50 > fast.time_hours.p50
