"""Rigs at hand by name or by file; what is unclear in a file is refused with file and key."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from made_up import NOW

from planner.errors import UsageError
from planner.market import Market
from planner.models.hardware import catalogue
from planner.own_rigs import at_hand, usual_link

MARKET = Market((), as_of=NOW, currency="USD", fx={"EUR": Decimal("1.1")})


def file(tmp_path: Path, text: str, name: str = "mine.toml") -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def test_naming_a_rig_twice_means_two_of_it() -> None:
    owned = at_hand(("rig-2x-rtx-4090", "2x RTX 4090 rig"), MARKET)
    assert owned.counts == {"rig-2x-rtx-4090": 2}
    assert [m.id for m in owned.machines] == ["rig-2x-rtx-4090"]


def test_an_unknown_rig_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r'no rig "rig-3x-rtx-4090"\. Did you mean'):
        at_hand(("rig-3x-rtx-4090",), MARKET)


def test_a_rig_file_may_build_on_the_catalogue_and_keep_its_price_by_parts(tmp_path: Path) -> None:
    owned = at_hand((file(tmp_path, 'hardware = "rig-4x-rtx-4090"\nid = "attic"'),), MARKET)
    assert (owned.machines[0].id, owned.machines[0].gpu_count) == ("attic", 4)
    assert owned.machines[0].rig is not None
    assert owned.rates == {}


def test_a_rate_in_another_currency_is_converted(tmp_path: Path) -> None:
    text = 'gpu = "RTX 3090"\ngpu_count = 2\ncost_per_hour = 0.5\ncurrency = "EUR"'
    owned = at_hand((file(tmp_path, text),), MARKET)
    assert owned.rates["mine"].per_hour == Decimal("0.55")
    assert owned.machines[0].link == "pcie4-no-p2p"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('gpu = "RTX 4090"\ncost = 1', "cost_per_hour"),
        ('gpu = "RTX 4090"\ncost_per_hour = 1\ncost_per_month = 730', "not both"),
        ('gpu = "RTX 4090"\ncost_per_hour = -1', "cost_per_hour = -1 must be above 0"),
        ('gpu = "RTX 4090"\ncost_per_hour = nan', "cost_per_hour = NaN: must be a finite number"),
        ('gpu = "RTX 4090"\ngpu_count = 1.5\ncost_per_hour = 1', "gpu_count = 1.5"),
        ('gpu = "RTX 4900"\ncost_per_hour = 1', 'no GPU "RTX 4900"'),
        ('gpu = "RTX 4090"\ncost_per_hour = 1\ncurrency = "CHF"', "--fx CHF=RATE"),
        ('gpu = "RTX 4090"\ncosts_per_hour = 1', 'Did you mean "cost_per_hour"'),
        ('gpu = "RTX 4090"', "cost_per_hour"),
        ("gpu_count = 2", '"gpu" or "hardware" is missing'),
        ("= nonsense", "not readable"),
        ('hardware = "rig-9x"', "no rig"),
    ],
)
def test_a_file_that_is_unclear_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        at_hand((file(tmp_path, text),), MARKET)
    assert said in str(error.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not readable"):
        at_hand((str(tmp_path / "none.toml"),), MARKET)


def test_the_usual_link_is_that_of_machines_with_such_cards() -> None:
    assert usual_link(catalogue.gpu("a100-sxm4-40gb")) == "nvswitch-a100"
    assert usual_link(catalogue.gpu("rtx-4090-24gb")) == "pcie4-no-p2p"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('gpu = "RTX 3090"\nid = "\\u001b[31mred"\ncost_per_hour = 1', "id = "),
        ('gpu = "RTX 3090"\nid = "two\\nrows"\ncost_per_hour = 1', "id = "),
        ('gpu = "RTX 3090"\nid = ""\ncost_per_hour = 1', "id = "),
        ('gpu = "RTX 3090"\ngpu_count = 2\nlink = "warp"\ncost_per_hour = 1', 'no link class "warp"'),
        ('gpu = "RTX 3090"\nnetwork = "warp"\ncost_per_hour = 1', 'no link class "warp"'),
        ('gpu = "RTX 3090"\ncost_per_hour = 1e-10', "less than can be counted"),
        ('gpu = "RTX 3090"\ncost_per_hour = 1e999999999', "far too large"),
        ('hardware = "rig-3x-rtx-4090"', r'mine\.toml: no rig "rig-3x-rtx-4090"'),
        ("gpu = " + "[" * 20_000, "not readable"),
    ],
)
def test_what_would_break_a_row_or_a_sum_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        at_hand((file(tmp_path, text),), MARKET)
