"""Jobs written out as runs: repeats, sweeps, what comes after what, dates as hours."""

from __future__ import annotations

from typing import Any

import pytest

from planner.errors import UsageError
from planner.schedule.file import read_schedule
from planner.schedule.runs import Run, calendar_of, runs_of

JOB: dict[str, Any] = {"id": "train", "workload": "bert-base", "epochs": 1}


def runs(*jobs: dict[str, Any], **changed: Any) -> tuple[Run, ...]:
    file = read_schedule({"starts": "2027-01-01", "months": 6, "jobs": list(jobs)} | changed)
    return runs_of(file, calendar_of(file))


def refused(*jobs: dict[str, Any], **changed: Any) -> str:
    with pytest.raises(UsageError) as caught:
        runs(*jobs, **changed)
    return str(caught.value)


def test_a_monthly_job_runs_once_a_month_to_the_end() -> None:
    found = runs({**JOB, "repeat": {"every": "month"}, "release": "2027-02-03", "deadline": "10d"})
    assert [run.id for run in found] == [f"train[2027-0{m}]" for m in range(2, 7)]
    assert [run.release for run in found][:2] == [(31 + 2) * 24, (31 + 28 + 2) * 24]
    assert all(run.deadline == run.release + 240 for run in found)


def test_a_span_repeats_so_many_times_and_a_sweep_runs_at_once() -> None:
    found = runs({**JOB, "repeat": {"every": "7d", "times": 3, "runs": 2}})
    assert [(run.id, run.release) for run in found] == [
        ("train[1]#1", 0), ("train[1]#2", 0), ("train[2]#1", 168),
        ("train[2]#2", 168), ("train[3]#1", 336), ("train[3]#2", 336),
    ]  # fmt: skip


def test_a_deadline_that_is_a_date_means_its_end() -> None:
    (run,) = runs({**JOB, "release": "2027-01-10", "deadline": "2027-01-10"})
    assert (run.release, run.deadline) == (216, 240)
    (run,) = runs({**JOB, "deadline": "2027-01-10T06:00:00+01:00"})
    assert run.deadline == 221


def test_the_day_the_clock_goes_forward_has_23_hours() -> None:
    (run,) = runs({**JOB, "release": "2027-03-28", "deadline": "2027-03-28"}, time_zone="Europe/Berlin")
    assert run.deadline is not None
    assert run.deadline - run.release == 23


def test_runs_repeated_as_often_follow_one_by_one_otherwise_all_wait() -> None:
    pairs = runs(
        {**JOB, "repeat": {"every": "month"}},
        {**JOB, "id": "test", "repeat": {"every": "month"}, "after": ["train"]},
    )
    assert [run.predecessors for run in pairs[6:]] == [(n,) for n in range(6)]
    fan = runs({**JOB, "repeat": {"runs": 3}}, {**JOB, "id": "pick", "after": ["train"]})
    assert fan[3].predecessors == (0, 1, 2)


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ({"release": "2027-07-01"}, "its release lies outside the schedule's months"),
        ({"release": "2026-12-31"}, "its release lies outside the schedule's months"),
        ({"release": "2027-03-01", "deadline": "2027-02-01"}, "its deadline is not after its release"),
        ({"deadline": "2027-07-01"}, "its deadline lies past the schedule's last month; give more months"),
        ({"repeat": {"every": "month", "times": 7}}, "7 months from its release pass the schedule's end"),
        ({"repeat": {"runs": 1500, "every": "month"}}, "more than 2,000 runs"),
        ({"after": ["train"]}, "each waits for the next: train after train"),
    ],
)
def test_dates_and_order_that_cannot_be_are_refused(job: dict[str, Any], said: str) -> None:
    assert said in refused({**JOB, **job})


def test_a_circle_is_named() -> None:
    said = refused({**JOB, "after": ["b"]}, {**JOB, "id": "b", "after": ["train"]})
    assert "each waits for the next" in said
