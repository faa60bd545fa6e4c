"""The published schema of schedule files is the one the program prints, and it knows the example."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from planner.api import schedule_schema
from planner.cli.commands.schedule import app

PUBLISHED = Path(__file__).parents[3] / "docs" / "schedule.schema.json"


def test_the_published_schema_is_what_the_command_prints() -> None:
    """To write it again: planner schedule schema > docs/schedule.schema.json"""
    printed = CliRunner().invoke(app, ["schema"])
    assert printed.exit_code == 0
    assert PUBLISHED.read_text(encoding="utf-8") == printed.output


def test_every_key_of_the_file_is_in_it() -> None:
    from planner.schedule.file import ScheduledJob, ScheduleFile

    schema = schedule_schema()
    assert set(schema["properties"]) == set(ScheduleFile.model_fields)
    assert set(schema["$defs"]["ScheduledJob"]["properties"]) == set(ScheduledJob.model_fields)
    assert schema["additionalProperties"] is False


def test_a_common_validator_takes_the_example_and_refuses_an_unknown_key() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    from planner.schedule.example import example
    from planner.schedule.reading import parse

    values: dict[str, Any] = json.loads(json.dumps(parse(example()), default=str))
    jsonschema.validate(values, schedule_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**values, "deadlines": 1}, schedule_schema())
