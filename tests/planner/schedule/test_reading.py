"""From text to a schedule: every complaint says where, what and what is meant; bombs are met at the door."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from planner.errors import UsageError
from planner.schedule.example import example
from planner.schedule.file import MOST_JOBS, ScheduleFile, read_schedule
from planner.schedule.reading import MOST_BYTES, checked, load, parse

JOB: dict[str, Any] = {"id": "train", "workload": "bert-base", "epochs": 1}


def values(**changed: Any) -> dict[str, Any]:
    return {"starts": "2027-01-01", "jobs": [JOB]} | changed


def complaint(**changed: Any) -> str:
    with pytest.raises(UsageError) as caught:
        checked(values(**changed), "team.yaml")
    return str(caught.value)


def test_the_example_is_sound() -> None:
    file = checked(parse(example()))
    assert (file.months, file.time_zone, len(file.jobs)) == (12, "Europe/Berlin", 5)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"job": []}, 'job: no such key; did you mean "jobs"?'),
        ({"jobs": [{**JOB, "deadlin": "6h"}]}, 'jobs[0].deadlin: no such key; did you mean "deadline"?'),
        ({"hardware": {"may_by": []}}, 'hardware.may_by: no such key; did you mean "may_buy"?'),
        ({"cloud": {"quotas": [{"gpu_count": 3, "gpus": 1}]}}, "cloud.quotas[0].gpu_count: no such key"),
        ({"jobs": []}, "jobs"),
        ({"jobs": [JOB, JOB]}, 'two jobs are called "train"'),
        ({"jobs": [{**JOB, "after": ["trian"]}]}, 'comes after "trian", which is no job of this file'),
        ({"jobs": [{**JOB, "steps": 10}]}, "give epochs or steps, not both"),
        ({"budget": 6000}, 'such as "60000 USD"'),
        ({"budget": "6000 USD/month"}, 'such as "60000 USD"'),
        ({"monthly_budget": "6000 USD"}, 'such as "9000 USD/month"'),
        ({"budget": "-5 USD"}, "must not be negative"),
        ({"hardware": {"power_limit": 8}}, 'such as "8 kW"'),
        ({"costs": {"electricity": 0.3}}, 'such as "0.30 USD/kWh"'),
        ({"costs": {"electricity": "0.3 USD/h"}}, 'such as "0.30 USD/kWh"'),
        ({"costs": {"discount_rate": 6}}, 'such as "6 %/y"'),
        ({"costs": {"purchase_tax": 19}}, 'such as "19 %"'),
        ({"costs": {"carbon_intensity": 350}}, 'such as "350 g/kWh"'),
        ({"jobs": [{**JOB, "deadline": 6}]}, "jobs[0].deadline"),
        ({"jobs": [{**JOB, "repeat": {"every": "7d"}}]}, "times is needed with a span"),
        ({"jobs": [{**JOB, "repeat": {"times": 3}}]}, "every is needed with times"),
        ({"starts": "2027-01-15"}, "must be the first day of a month, such as 2027-01-01"),
        ({"starts": "soon"}, "must be the first day of a month"),
        ({"time_zone": "Europe/Berlim"}, 'no time zone "Europe/Berlim"'),
        ({"months": 0}, "months"),
        ({"months": 121}, "months"),
        ({"objective": "speed"}, "objective"),
        ({"jobs": [{**JOB, "priority": 0}]}, "jobs[0].priority"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_what_is_meant(changed: dict[str, Any], said: str) -> None:
    told = complaint(**changed)
    assert said in told
    assert all(line.startswith("team.yaml: ") for line in told.splitlines())


def test_every_mistake_of_a_file_is_told_at_once() -> None:
    told = complaint(budget=5, months=0, job=[], jobs=[{**JOB, "steps": 2}])
    assert len(told.splitlines()) == 4


def test_units_are_read() -> None:
    file = checked(
        values(
            budget="60,000 USD".replace(",", "_"),
            hardware={"power_limit": "7.5 kW", "may_buy": [{"rig": "rig-4x-rtx-4090", "lead_time": "21d"}]},
            costs={
                "electricity": "0.30 EUR/kWh",
                "purchase_tax": "19 %",
                "discount_rate": "6 % a year",
                "carbon_intensity": "350 g/kWh",
                "staff": "1200 USD/rig-year",
            },
        )
    )
    assert file.budget == (Decimal(60000), "USD")
    assert file.hardware.power_limit == 7500
    assert file.hardware.may_buy[0].lead_time == 504
    assert file.costs.electricity == (Decimal("0.30"), "EUR")
    assert (file.costs.purchase_tax, file.costs.discount_rate) == (Decimal("0.19"), Decimal("0.06"))
    assert file.costs.carbon_intensity == Decimal("0.350")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a schedule holds keys and values"),
        ("- 1\n- 2\n", "a schedule holds keys and values"),
        ("a: [1, 2\n", "does not read as YAML"),
        ("a: &x [1]\nb: *x\n", "anchors are not allowed"),
        ("months: 3\nmonths: 4\n", 'the key "months" stands there twice'),
        ("a: " + "[" * 30 + "]" * 30, "nested too deep"),
        ("a: !!python/object/apply:os.system [ls]\n", "does not read as YAML"),
        ("x" * (MOST_BYTES + 1), "no schedule is so long"),
    ],
)
def test_text_that_is_no_schedule_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match="schedule") as caught:
        parse(text)
    assert said in str(caught.value)


def test_a_line_number_leads_to_the_mistake() -> None:
    with pytest.raises(UsageError, match="line 3"):
        parse("months: 3\njobs: []\nmonths: 4\n")


def test_files_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path / "none.yaml")
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path)
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("name: Zürich\n".encode("latin-1"))
    with pytest.raises(UsageError, match="is not UTF-8 text"):
        load(latin)
    huge = tmp_path / "huge.yaml"
    huge.write_bytes(b"#" * (MOST_BYTES + 1))
    with pytest.raises(UsageError, match="no schedule is so long"):
        load(huge)


def test_more_jobs_than_a_schedule_holds_are_refused() -> None:
    jobs = [{**JOB, "id": f"j{n}"} for n in range(MOST_JOBS + 1)]
    assert "jobs" in complaint(jobs=jobs)


def test_a_schedule_is_read_from_values_as_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("starts: 2027-01-01\njobs: [{id: train, workload: bert-base, epochs: 1}]\n")
    assert read_schedule(path) == read_schedule(values())
    assert isinstance(read_schedule(values()), ScheduleFile)
