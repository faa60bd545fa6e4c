"""planner.pricing.sources.csv_import: our own form, row by row."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from priced import offers

from planner.pricing import snapshot
from planner.pricing.csv_files import write_offers
from planner.pricing.errors import BadPriceFile
from planner.pricing.import_files import FileResult, read_price_file
from planner.pricing.sources import RawPage
from planner.pricing.sources.csv_import import read_file

NOW = datetime(2026, 11, 30, tzinfo=UTC)
HEAD = "kind,provider,item,region,contract,unit,condition,amount,currency,observed_at,source\n"
GOOD = "gpu_retail,shop,rtx-4090-24gb,us,purchase,each,used,1450,USD,2026-11-20,my list\n"


def read(text: str, observed_at: datetime | None = None) -> FileResult:
    return read_file(RawPage(text.encode(), ref="mine.csv"), NOW, observed_at)


@pytest.mark.parametrize("name", snapshot.OFFER_FILES)
def test_every_packaged_file_reads_without_a_bad_row(name: str) -> None:
    found = read_price_file(snapshot.DATA / name, fetched_at=NOW)
    assert (found.form, found.bad) == ("planner-csv", ())
    assert set(found.offers) <= set(snapshot.offers())


@settings(max_examples=30, deadline=None)
@given(given_offers=st.lists(offers(), min_size=1, max_size=3))
def test_what_is_written_comes_back_or_is_named(
    tmp_path_factory: pytest.TempPathFactory, given_offers: list
) -> None:
    path = tmp_path_factory.mktemp("offers") / "offers.csv"
    write_offers(path, given_offers)
    found = read_price_file(path, fetched_at=NOW)
    assert len(found.offers) + len({row for row, _ in found.bad}) == len(given_offers)
    originals = {offer.observation_id for offer in given_offers}
    assert {offer.observation_id for offer in found.offers} <= originals


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (GOOD.replace("1450", "1,450"), "more cells than columns"),
        (GOOD.replace("1450", "0"), "zero is not a price"),
        (GOOD.replace("1450", "-3"), "a negative number"),
        (GOOD.replace("1450", "NaN"), "a finite number"),
        (GOOD.replace("1450", "1e999999"), "no plausible size"),
        (GOOD.replace("each", "kwh"), "not priced by kwh"),
        (GOOD.replace("used", ""), "goods need a condition"),
        (GOOD.replace("USD", "XXX"), "no currency known here"),
        (GOOD.replace("2026-11-20", "yesterday"), "not a time"),
        (GOOD.replace("2026-11-20", ""), "observed_at is missing"),
        (GOOD.replace("purchase", "spot"), "cannot be had by spot"),
    ],
)
def test_a_bad_row_is_named_and_the_others_are_read(row: str, reason: str) -> None:
    found = read(HEAD + GOOD + row)
    assert [offer.amount for offer in found.offers] == [Decimal(1450)]
    ((number, told),) = found.bad
    assert number == "3"
    assert reason in told


def test_a_date_may_be_given_for_a_whole_file_and_a_source_is_the_file() -> None:
    found = read(HEAD.replace("observed_at,source", "note") + GOOD.replace("2026-11-20,my list", "mine"), NOW)
    (offer,) = found.offers
    assert (offer.observed_at, offer.fetched_at, offer.source, offer.source_ref) == (
        NOW,
        NOW,
        "import",
        "mine.csv",
    )


@pytest.mark.parametrize(
    ("head", "complaint"),
    [(HEAD.replace("amount", "price"), '"price"'), (HEAD.replace("unit,", ""), '"unit" is missing')],
)
def test_a_header_that_is_not_ours_is_refused_by_name(head: str, complaint: str) -> None:
    with pytest.raises(BadPriceFile, match=complaint):
        read(head + GOOD)


def test_a_file_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(BadPriceFile, match="not UTF-8"):
        read_file(RawPage(HEAD.encode() + b"\xff", ref="mine.csv"), NOW, None)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadPriceFile, match="Check the path"):
        read_price_file(tmp_path / "lost.csv", fetched_at=NOW)


def test_a_form_that_is_unknown_names_the_known_ones(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(HEAD + GOOD)
    with pytest.raises(BadPriceFile, match='no form "excel" of price file; forms: planner-csv'):
        read_price_file(path, fetched_at=NOW, form="excel")
