"""Files that fits make: they read back, belong together, and say what is wrong when broken."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from planner.models.calibration import parameters, profile
from planner.models.errors import BadData
from planner.models.hardware.catalogue import gpus

HERE = Path(profile.__file__).parent


def test_the_shipped_profile_holds_every_catalogue_card_from_the_shipped_data() -> None:
    found = profile.fitted()
    assert set(found.cards) == {card.id for card in gpus()}
    assert found.data_sha256 == parameters.shipped().data_sha256 == parameters.data_sha256()
    for name, card in found.cards.items():
        for unit, m in card.multipliers.items():
            assert np.linalg.eigvalsh(m.covariance).min() > 0, (name, unit)
            assert np.abs(m.log_multiplier).max() < 2


def test_bands_are_never_narrowed() -> None:
    assert min(profile.fitted().band_factors.values()) >= 1


def test_a_broken_profile_says_so() -> None:
    with pytest.raises(BadData, match=r"here\.json: not a profile"):
        profile.read("{}", "here.json")
    body = json.loads((HERE / profile.FILE).read_text(encoding="utf-8"))
    with pytest.raises(BadData, match="make profiles"):
        profile.read(json.dumps({**body, "schema_version": 0}), "old.json")


def test_parameters_survive_the_file() -> None:
    text = (HERE / parameters.FILE).read_text(encoding="utf-8")
    found = parameters.read(text, "x")
    assert json.dumps(parameters.to_json(found), indent=1, sort_keys=True) + "\n" == text
    with pytest.raises(BadData, match="not fitted parameters"):
        parameters.read("[]", "x")
