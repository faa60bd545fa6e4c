"""planner.pricing.sources.settings: what a user wrote down about sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.pricing.errors import BadPriceFile
from planner.pricing.sources.settings import path_of, read_settings


def test_without_a_file_nothing_is_set(tmp_path: Path) -> None:
    assert read_settings(tmp_path / "price_sources.toml") == {}


def test_paths_are_relative_to_the_folder_of_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "price_sources.toml"
    file.write_text('[retail-pages]\npages = "pages.csv"\n[retail-feeds]\nfeeds = "/lists/feeds.csv"\n')
    settings = read_settings(file)
    assert path_of(settings["retail-pages"], "pages") == tmp_path / "pages.csv"
    assert path_of(settings["retail-feeds"], "feeds") == Path("/lists/feeds.csv")
    assert path_of(settings["retail-pages"], "other") is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[retail-pages", "not valid TOML"),
        ('pages = "x"', r'"pages" stands outside a table; write \[SOURCE\] above it'),
        ("[retail-pages]\npages = 3", r"\[retail-pages\] pages: text in quotes is meant, not 3"),
        ("\xff" * 2**20, "bytes; settings of at most"),
    ],
)
def test_what_does_not_read_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "price_sources.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BadPriceFile, match=complaint):
        read_settings(file)
