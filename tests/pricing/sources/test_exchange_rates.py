"""planner.pricing.sources.exchange_rates: dated rates, and none where there is none."""

from __future__ import annotations

import io
import zipfile
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from local_server import local_context
from made_up_sources import MovableClock
from pytest_httpserver import HTTPServer

from planner.pricing.refresh import refresh
from planner.pricing.sources import BadAnswer, find
from planner.pricing.sources.exchange_rates import NAME, NoRate, packaged_rates, rates_of, read_rates
from planner.pricing.store import PriceStore

HISTORY = b"Date,USD,JPY,CNY,EEK,\n2026-10-30,1.1172,175.68,7.4326,N/A,\n2026-10-29,1.1,170,7.5,N/A,\n"
DAILY = b"Date, USD, JPY, \n30 November 2026, 1.1500, 180.00, \n"


def packed(body: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as folder:
        folder.writestr("eurofxref.csv", body)
    return out.getvalue()


def test_a_rate_is_that_of_the_day_or_of_the_last_day_before() -> None:
    rates = read_rates(HISTORY, "a test")
    assert rates.rate("EUR", "USD", date(2026, 10, 29)).rate == Decimal("1.1")
    found = rates.rate("EUR", "USD", date(2026, 11, 1))
    assert (found.rate, found.day) == (Decimal("1.1172"), date(2026, 10, 30))
    assert "European Central Bank" in found.source


def test_a_pair_of_two_others_is_a_quotient_and_back_again() -> None:
    rates = read_rates(HISTORY, "a test")
    there = rates.rate("CNY", "USD", date(2026, 10, 30)).rate
    back = rates.rate("USD", "CNY", date(2026, 10, 30)).rate
    assert round(there, 4) == Decimal("0.1503")
    assert abs(there * back - 1) < Decimal("1e-20")
    assert rates.rate("USD", "USD", date(2026, 10, 30)).rate == 1


@pytest.mark.parametrize("day", [date(2026, 11, 7), date(2026, 10, 28)])
def test_p24_a_rate_over_a_week_old_or_from_the_future_is_refused(day: date) -> None:
    with pytest.raises(NoRate, match="Give one: --fx USD=RATE, or refresh"):
        read_rates(HISTORY, "a test").rate("USD", "EUR", day)


@pytest.mark.parametrize("currency", ["EEK", "XYZ"])
def test_p24_a_currency_without_a_rate_that_day_is_refused(currency: str) -> None:
    with pytest.raises(NoRate, match=f"no exchange rate of {currency}"):
        read_rates(HISTORY, "a test").rate(currency, "USD", date(2026, 10, 30))


@pytest.mark.parametrize(
    "body",
    [
        b"", b"<html>", b"Date,USD\n", b"Date,USD\n2026-10-30,0\n", b"Date,USD\n2026-10-30,-1\n",
        b"Date,USD\n30 Oktober 2026,1.1\n", b"Date,USD\nsoon,1.1\n", b"PK\x03\x04broken", b"\xff",
        b"Date,USD\n2026-10-30,NaN\n", packed(b"nothing"),
    ],
)  # fmt: skip
def test_what_is_not_the_banks_table_is_refused(body: bytes) -> None:
    with pytest.raises(BadAnswer):
        read_rates(body, "a test")


def test_the_packaged_history_is_dated_and_needs_no_network() -> None:
    pytest.importorskip("currency_converter", reason="needs the extra [prices]")
    rates = packaged_rates()
    assert rates.newest is not None
    assert rates.newest >= date(2026, 1, 1)
    assert rates.rate("EUR", "USD", date(2008, 7, 15)).rate == Decimal("1.5990")


def test_a_refreshed_day_is_found_again_by_the_hash_of_its_answer(server: HTTPServer, tmp_path: Path) -> None:
    server.expect_request("/rates").respond_with_data(packed(DAILY))
    clock = MovableClock(datetime(2026, 11, 30, 18, tzinfo=UTC))
    context = local_context(base_urls={NAME: server.url_for("/rates")}, clock=clock)
    with PriceStore.open(str(tmp_path / "prices.sqlite")) as store:
        report = refresh(store, [find(NAME)], context)
        assert (report.exit_code, report.sources[0].warnings) == (0, ("exchange rates of 2026-11-30",))
        found = rates_of(store).rate("EUR", "USD", date(2026, 12, 1))
    assert (found.rate, found.day) == (Decimal("1.1500"), date(2026, 11, 30))
