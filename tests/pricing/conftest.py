"""Makes tests/pricing/helpers importable, and one loaded store that tests may only read."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.pricing.store import PriceStore

sys.path.insert(0, str(Path(__file__).parent / "helpers"))


@pytest.fixture(scope="session")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PriceStore]:
    """A store of the packaged prices; not to be written."""
    with PriceStore.open(str(tmp_path_factory.mktemp("loaded") / "prices.sqlite")) as store:
        yield store


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[PriceStore]:
    """A store without any packaged price."""
    monkeypatch.setattr("planner.pricing.snapshot.offers", tuple)
    with PriceStore.open("sqlite://") as store:
        yield store
