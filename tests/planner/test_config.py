from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from planner import config
from planner.errors import UsageError


@pytest.fixture
def file(home: Path) -> Path:
    path = home / ".config/planner/config.toml"
    path.parent.mkdir(parents=True)
    return path


def in_force(**environ: str) -> dict[str, config.Setting]:
    return {setting.key: setting for setting in config.in_force(environ)}


def test_flags_stand_before_the_environment_and_that_before_the_file(file: Path) -> None:
    file.write_text('budget = 1\npue = 1.1\nelectricity-price = 0.30\nown = ["rig-4x-rtx-4090"]\n')
    environ = {"PLANNER_BUDGET": "2", "PLANNER_PUE": "1.2"}
    settings = config.merged(config.layers({"budget": "3", "seed": None}, environ))
    assert {key: (s.value, s.origin) for key, s in settings.items()} == {
        "budget": ("3", "--budget"),
        "pue": ("1.2", "PLANNER_PUE"),
        "electricity_price": (0.30, str(file)),
        "own": (["rig-4x-rtx-4090"], str(file)),
    }


def test_defaults_are_shown_as_such() -> None:
    assert in_force()["utilization"] == config.Setting("utilization", Decimal("0.5"), "default")
    assert in_force()["budget"].value is None


def test_a_stronger_amount_of_work_silences_the_weaker_one(file: Path) -> None:
    file.write_text("epochs = 3\n")
    assert "epochs" not in config.merged(config.layers({"tokens": "1000"}, {}))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("budgett = 5", 'no key "budgett". Did you mean "budget"?'),
        ("budget = nan", 'key "budget" = nan: must be a finite number'),
        ("budget = -5", 'key "budget" = -5: must lie between'),
        ("pue = 0.5", 'key "pue" = 0.5: must lie between 1 and 5'),
        ("max_gpus = true", 'key "max_gpus" = True: must be a number'),
        ("budget = [", "not valid TOML"),
    ],
)
def test_a_bad_file_is_refused_with_file_and_key(file: Path, text: str, says: str) -> None:
    file.write_text(text)
    with pytest.raises(UsageError) as refused:
        config.layers({}, {})
    assert str(file) in str(refused.value)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("PLANNER_BUDGETT", "5", 'no setting PLANNER_BUDGETT (environment). Did you mean "PLANNER_BUDGET"?'),
        ("PLANNER_BUDGET", "inf", "PLANNER_BUDGET = inf: must be a finite number"),
    ],
)
def test_a_bad_variable_is_refused_by_name(name: str, value: str, says: str) -> None:
    with pytest.raises(UsageError, match=says.replace("(", r"\(").replace(")", r"\)").replace("?", r"\?")):
        config.in_force({name: value})


def test_the_file_may_name_the_store_and_the_environment_stands_before_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text('store_url = "sqlite:////tmp/of-the-file.sqlite"\n')
    monkeypatch.setenv("PLANNER_STORE_URL", "sqlite:////tmp/of-the-environment.sqlite")
    assert config.merged(config.layers({}))["store_url"].origin == "PLANNER_STORE_URL"
    monkeypatch.delenv("PLANNER_STORE_URL")
    config.use_store()
    import os

    assert os.environ["PLANNER_STORE_URL"] == "sqlite:////tmp/of-the-file.sqlite"
    monkeypatch.setenv("PLANNER_STORE_URL", "restored by the fixture")


def test_a_home_that_is_no_folder_holds_no_settings() -> None:
    assert config.merged(config.layers({}, {"XDG_CONFIG_HOME": "/dev/null"})) == {}
