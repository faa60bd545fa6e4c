"""A job added by form stands in the text as one written by hand would."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import UsageError
from planner.service.pages.add_job import KEYS, with_job
from planner.service.pages.schedule_text import read

START = """\
starts: 2027-01-01
jobs:
  # the first
  - id: pretrain   # keeps its remark
    workload: bert-base

# what may be spent
budget: 60000 USD
"""


def test_it_stands_after_the_last_job_and_the_rest_stays() -> None:
    text = with_job(
        START, {"id": "tune", "workload": "bert-base", "after": "pretrain", "deadline": "2027-03-31"}
    )
    assert text == START.replace(
        "    workload: bert-base\n",
        "    workload: bert-base\n  - id: tune\n    workload: bert-base\n"
        '    deadline: "2027-03-31"\n    after: [pretrain]\n',
    )
    assert [job.id for job in read(text).jobs] == ["pretrain", "tune"]


@pytest.mark.parametrize("text",
                         ["jobs:\n- id: a\n  workload: bert-base\nstarts: 2027-01-01\n",
                          "starts: 2027-01-01\njobs:\n    - id: a\n      workload: bert-base"])  # fmt: skip
def test_any_indentation_is_kept(text: str) -> None:
    added = read(with_job(text, {"id": "b", "workload": "gpt2", "epochs": "2"}))
    assert [(job.id, job.workload) for job in added.jobs] == [("a", "bert-base"), ("b", "gpt2")]


@pytest.mark.parametrize("text", ["", "jobs: []", "jobs: [{id: a}]", "jobs: 3", "- a", "a: ]", "jobs:"])
def test_a_text_without_a_list_of_jobs_is_told(text: str) -> None:
    with pytest.raises(UsageError, match="no list"):
        with_job(text, {"id": "b", "workload": "gpt2"})


@given(
    st.dictionaries(
        st.sampled_from(["workload", "release", "deadline", "epochs"]), st.text(min_size=1, max_size=30)
    )
)
def test_whatever_is_filled_in_stays_one_value(filled: dict[str, str]) -> None:
    """Nobody adds a key, a second job or a budget through a field."""
    import yaml

    found = yaml.safe_load(with_job(START, {"id": "b", **filled}))
    assert found.keys() == {"starts", "jobs", "budget"}
    assert len(found["jobs"]) == 2
    assert set(found["jobs"][1]) <= set(KEYS)
