"""Jobs end once, whoever works on them and however they end."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine

from planner.service.dead_workers import DeadWorkers
from planner.service.jobs import MOST_TRIES, MOST_WAITING, Jobs, TooMany
from planner.service.refreshing import last_slot, make_up, missed, run_slot
from planner.service.state import State


def test_a_job_is_claimed_once_and_ends_once(state: State) -> None:
    jobs = Jobs(state)
    id = jobs.add("optimize", {"model": "bert-base"}, "anna")
    claimed = jobs.claim()
    assert claimed is not None
    assert claimed[0] == id
    assert jobs.claim() is None
    document = {"kind": "optimize", "job": {"workload": "bert-base"}}
    assert not jobs.done(id, "another claim", document)
    assert jobs.done(*claimed, document)
    assert not jobs.done(*claimed, document), "twice"
    assert not jobs.fail(*claimed, "late")
    found = jobs.get(id, "anna")
    assert found is not None
    assert found["state"] == "done"
    assert len(state.plans("anna")) == 1
    assert jobs.get(id, "bert") is None


def test_what_a_dead_worker_held_is_taken_again_a_few_times(state: State) -> None:
    jobs = Jobs(state)
    id = jobs.add("optimize", {}, "anna")
    dead_workers = DeadWorkers(jobs, silent_seconds=0)
    for _ in range(MOST_TRIES - 1):
        assert jobs.claim()
        assert dead_workers.retake() == [id]
    dead = jobs.claim()
    assert dead is not None
    assert dead_workers.retake() == []
    found = jobs.get(id, None)
    assert found is not None
    assert found["state"] == "failed"
    assert not jobs.done(*dead, None), "the dead one wakes up"


def test_a_worker_that_lives_keeps_its_job(state: State) -> None:
    jobs = Jobs(state)
    jobs.add("optimize", {}, "anna")
    held = jobs.claim()
    assert held is not None
    dead_workers = DeadWorkers(jobs, silent_seconds=30)
    assert dead_workers.retake() == []
    assert jobs.beat(*held)
    assert dead_workers.retake() == []


@pytest.mark.parametrize("days", [-400, -1, 1, 400])
def test_p21_no_clock_that_jumps_takes_a_job_from_a_worker_that_lives(state: State, days: int) -> None:
    jobs = Jobs(state)
    id = jobs.add("optimize", {}, "anna")
    held = jobs.claim()
    assert held is not None
    dead_workers = DeadWorkers(jobs, silent_seconds=30)
    with time_machine.travel(datetime.now(UTC)) as clock:
        assert dead_workers.retake() == []
        clock.shift(timedelta(days=days))
        assert dead_workers.retake() == []
        assert jobs.beat(*held)
        assert jobs.claim() is None
        assert jobs.done(*held, {"kind": "optimize", "name": "kept"})
    assert [plan["name"] for plan in state.plans("anna")] == ["kept"]
    found = jobs.get(id, "anna")
    assert found is not None
    assert (found["state"], found["tries"]) == ("done", 1)


def test_a_cancelled_job_stays_cancelled(state: State) -> None:
    jobs = Jobs(state)
    id = jobs.add("optimize", {}, "anna")
    held = jobs.claim()
    assert held is not None
    assert not jobs.cancel(id, "bert")
    assert jobs.cancel(id, "anna")
    assert not jobs.beat(*held)
    assert not jobs.done(*held, None)
    assert not jobs.cancel(id, "anna"), "it has ended"


def test_no_more_jobs_wait_than_may(state: State) -> None:
    jobs = Jobs(state)
    for _ in range(MOST_WAITING):
        jobs.add("optimize", {}, "anna")
    with pytest.raises(TooMany):
        jobs.add("optimize", {}, "anna")


def test_c42_p18_missed_slots_are_made_up_once_and_none_runs_twice(state: State) -> None:
    jobs = Jobs(state)
    told: list[str] = []
    first = run_slot(jobs, "04:17", told.append, datetime(2026, 3, 28, 5, tzinfo=UTC))
    assert first == "refresh-20260328T0417Z"
    assert run_slot(jobs, "04:17", told.append, datetime(2026, 3, 28, 23, tzinfo=UTC)) is None
    # Over the change to summer time, and after days asleep: one run.
    later = run_slot(jobs, "04:17", told.append, datetime(2026, 3, 31, 12, tzinfo=UTC))
    assert later == "refresh-20260331T0417Z"
    # A clock that went back makes nothing due.
    assert run_slot(jobs, "04:17", told.append, datetime(2026, 3, 30, 12, tzinfo=UTC)) is None
    assert told == [first, later]


def test_p21_the_last_slot_is_never_ahead() -> None:
    for moment in (datetime(2028, 2, 29, 0, 0, tzinfo=UTC), datetime(2026, 12, 31, 23, 59, tzinfo=UTC)):
        slot = last_slot("04:17", moment)
        assert slot <= moment
        assert (moment - slot).total_seconds() < 86_400


def test_a_fresh_store_has_missed_nothing(state: State) -> None:
    assert not missed(Jobs(state), "04:17", datetime.now(UTC))


def test_p21_a_clock_that_was_a_year_ahead_does_not_end_the_refreshes(state: State) -> None:
    jobs = Jobs(state)
    told: list[str] = []
    moment = datetime(2026, 5, 3, 12, tzinfo=UTC)
    run_slot(jobs, "04:17", told.append, moment + timedelta(days=366))
    run_slot(jobs, "04:17", told.append, moment)
    run_slot(jobs, "04:17", told.append, moment + timedelta(hours=1))
    run_slot(jobs, "04:17", told.append, moment + timedelta(days=1))
    assert told == ["refresh-20270504T0417Z", "refresh-20260503T0417Z", "refresh-20260504T0417Z"]


def test_c42_a_slot_that_a_moved_clock_jumped_over_is_made_up_once(state: State) -> None:
    jobs = Jobs(state)
    told: list[str] = []
    with state.writes() as connection:
        connection.exec_driver_sql(
            "INSERT INTO fetches (fetch_id, source, scope, status, fetched_at, offers, added, waiting, "
            "quarantined) VALUES ('f', 'made', '', 'good', '2026-05-03T05:00:00.000000Z', 1, 1, 0, 0)"
        )
    with time_machine.travel(datetime(2026, 5, 3, 6, tzinfo=UTC)) as clock:
        assert make_up(jobs, "04:17", told.append) is None
        clock.shift(timedelta(days=30))
        make_up(jobs, "04:17", told.append)
        make_up(jobs, "04:17", told.append)
    assert told == ["refresh-20260602T0417Z"]


def test_a_schedule_becomes_a_job_and_its_plan(served: Any) -> None:
    client = served()
    schedule = {
        "name": "small",
        "starts": "2027-01",
        "months": 1,
        "jobs": [{"id": "a", "workload": "bert-base", "epochs": 1}],
        "cloud": {"spot": False, "providers": ["aws"]},
    }
    asked = client.post("/v1/schedules/optimize", json={"schedule": schedule, "points": 2, "seconds": 10})
    assert asked.status_code == 202, asked.text
    until = time.monotonic() + 90
    while True:
        job = client.get(asked.json()["address"]).json()
        if job["state"] not in ("queued", "running") or time.monotonic() > until:
            break
        time.sleep(0.3)
    assert job["state"] == "done", job
    plan = client.get(f"/v1/plans/{job['plan_id']}").json()
    assert plan["kind"] == "schedule"
    assert client.get(f"/plans/{job['plan_id']}").status_code == 200
    archive = client.get(f"/v1/plans/{job['plan_id']}/finance.zip")
    assert archive.content[:2] == b"PK"


def test_a_backup_holds_everything_and_is_put_back(state: State, home: Path) -> None:
    from planner.errors import UsageError
    from planner.service.backup import back_up, put_back

    id = state.keep_plan({"kind": "optimize", "name": "kept"}, "anna")
    copy = home / "copy.sqlite"
    back_up(copy)
    with pytest.raises(UsageError, match="already"):
        back_up(copy)
    assert state.forget_plan(id, None)
    state.close()
    put_back(copy)
    again = State.open()
    assert [plan["id"] for plan in again.plans(None)] == [id]
    again.close()
    (home / "no.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(UsageError, match="no backup"):
        put_back(home / "no.sqlite")


def test_the_newest_migration_is_the_one_the_code_expects() -> None:
    from planner.service import migrations

    assert migrations.heads() == (migrations.HEAD,)


def test_a_schema_of_a_newer_service_is_refused(state: State) -> None:
    from planner.pricing.errors import StoreUnusable

    with state.writes() as connection:
        connection.exec_driver_sql("UPDATE planner_service_version SET version_num = 's999'")
    with pytest.raises(StoreUnusable, match="newer service"):
        State.open()
