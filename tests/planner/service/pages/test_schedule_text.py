"""Each complaint about a schedule's text is told with the line it is about."""

from __future__ import annotations

import pytest

from planner.errors import UsageError
from planner.service.pages.schedule_text import Message, messages, read

SOUND = """\
name: roadmap
starts: 2027-01-01
budget: 60000 USD
jobs:
  - id: pretrain
    workload: bert-base
    epochs: 10
  - id: tune
    workload: bert-base
    after: [pretrain]
    deadline: 20d
"""


def told(text: str) -> list[Message]:
    with pytest.raises(UsageError) as caught:
        read(text)
    return messages(caught.value, text)


def test_a_sound_schedule_reads() -> None:
    assert [job.id for job in read(SOUND).jobs] == ["pretrain", "tune"]


def test_faults_are_told_with_line_and_place() -> None:
    found = told(SOUND.replace("60000 USD", "lots").replace("deadline: 20d", "deadline: soon"))
    assert [(one.where, one.line) for one in found] == [("budget", 3), ("jobs[1].deadline", 11)]
    assert found[1].quoted == "deadline: soon"
    assert found[1].text.startswith("soon: must be")


def test_an_unknown_key_is_told_where_it_stands_and_names_the_nearest() -> None:
    (found,) = told(SOUND.replace("    epochs: 10", "    epoch: 10"))
    assert (found.where, found.line) == ("jobs[0].epoch", 7)
    assert '"epochs"' in found.text


def test_a_missing_key_is_told_at_what_lacks_it() -> None:
    (found,) = told(SOUND.replace("    workload: bert-base\n    after", "    after"))
    assert (found.where, found.line) == ("jobs[1].workload", 8)
    assert found.text == "is needed"


def test_text_that_is_no_yaml_is_told_with_its_line() -> None:
    (found,) = told(SOUND.replace("jobs:", "jobs: ]"))
    assert found.line == 4
    assert "YAML" in found.text


def test_p25_a_bomb_is_refused_by_its_first_alias() -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{new}: &{new} [{','.join(f'*{old}' for _ in range(9))}]\n"
        for old, new in zip("abcdefg", "bcdefgh", strict=True)
    )
    (found,) = told(bomb)
    assert "anchors are not allowed" in found.text
    assert found.line == 2
