"""planner.pricing.csv_files: offers to CSV and back, and what a bad file is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from priced import offer, offers

from planner.pricing.csv_files import read_offers, write_offers
from planner.pricing.errors import BadPriceFile
from planner.pricing.offer import Offer

_HEADER = "kind,provider,item,region,contract,unit,amount,currency,observed_at,source"
_GOOD = "gpu_retail,shop,rtx-4090-24gb,us,purchase,each,3089.00,USD,2025-07-23,test"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_offers=st.lists(offers(), max_size=5))
def test_export_then_import_gives_equal_offers(tmp_path: Path, given_offers: list[Offer]) -> None:
    path = tmp_path / "offers.csv"
    assert write_offers(path, given_offers) == len(given_offers)
    assert read_offers(path) == tuple(given_offers)


def test_a_file_may_leave_out_columns_and_open_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text(f"{_HEADER}\n{_GOOD}\n", encoding="utf-8-sig")
    (read,) = read_offers(path)
    assert (read.item, str(read.amount)) == ("rtx-4090-24gb", "3089.00")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            f"{_HEADER}\n{_GOOD}\n{_GOOD.replace('3089.00', '2000+')}\n",
            'row 3, column amount "2000+" is not a number',
        ),
        (f"{_HEADER}\n{_GOOD.replace('USD', '$')}\n", "row 2, column currency '$'"),
        (f"{_HEADER}\n{_GOOD.replace('2025-07-23', '')}\n", "row 2, column observed_at is missing"),
        (f"{_HEADER}\n{_GOOD.replace(',test', ',')}\n", "row 2, column source is missing"),
        (f"{_HEADER}\n{_GOOD},more\n", "row 2: more cells than columns"),
        (f"{_HEADER},price\n", 'row 1: no column "price"'),
        (f"{_HEADER},unit\n", "row 1: a column stands there twice"),
        (_HEADER.replace("currency,", ""), 'row 1: column "currency" is missing'),
        ("", 'row 1: column "kind" is missing'),
        (f'{_HEADER}\n"gpu_retail', "not CSV"),
    ],
)
def test_a_bad_file_is_named_with_row_and_column(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(BadPriceFile) as refused:
        read_offers(path)
    assert str(path) in str(refused.value)
    assert said in str(refused.value)


def test_a_file_that_is_not_there_or_not_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadPriceFile, match=r"gone\.csv: No such file"):
        read_offers(tmp_path / "gone.csv")
    (tmp_path / "latin.csv").write_bytes(_HEADER.encode() + b"\n\xe9\xe9\n")
    with pytest.raises(BadPriceFile, match=r"latin\.csv: not UTF-8"):
        read_offers(tmp_path / "latin.csv")


def test_an_unknown_amount_is_an_empty_cell(tmp_path: Path) -> None:
    path = tmp_path / "unknown.csv"
    write_offers(path, [offer(amount=None)])
    assert ",instance_hour,,USD," in path.read_text(encoding="utf-8")


def test_a_text_that_reads_like_an_empty_list_survives_the_file(tmp_path: Path) -> None:
    path = tmp_path / "offers.csv"
    odd = offer(quality="stale", reason="[]")
    write_offers(path, [odd])
    assert read_offers(path) == (odd,)
