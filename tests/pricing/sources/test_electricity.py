"""planner.pricing.sources.electricity: tariffs by state, month and kind of customer."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from local_server import local_context
from pytest_httpserver import HTTPServer

from planner.pricing import checks
from planner.pricing.import_files import read_price_file
from planner.pricing.sources import BadAnswer, RawPage, SourceUnavailable
from planner.pricing.sources.electricity import KEY, NAME, Electricity

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def row(**changed: Any) -> dict[str, Any]:
    plain = {
        "period": "2026-08", "stateid": "VA", "stateDescription": "Virginia", "sectorid": "COM",
        "price": "9.21", "price-units": "cents per kilowatt-hour",
    }  # fmt: skip
    return {**plain, **changed}


def answer(*rows: dict[str, Any]) -> bytes:
    return json.dumps({"response": {"total": str(len(rows)), "data": rows}}).encode()


def test_cents_become_dollars_and_a_month_its_first_day() -> None:
    rows = [row(), row(stateDescription="U.S. Total", price=14.6, sectorid="IND"), row(sectorid="TRA")]
    result = Electricity().parse([RawPage(answer(*rows), ref="eia")], fetched_at=NOW)
    assert [(o.region, o.item, o.amount, o.unit, o.currency) for o in result.offers] == [
        ("us-virginia", "electricity-commercial", Decimal("0.0921"), "kwh", "USD"),
        ("us", "electricity-industrial", Decimal("0.146"), "kwh", "USD"),
    ]
    assert result.offers[0].observed_at == datetime(2026, 8, 1, tzinfo=UTC)
    assert result.skipped == {"another kind of customer": 1}
    assert checks.errors(result.offers) == ()


def test_a_month_without_a_price_is_none_and_one_of_zero_is_unknown() -> None:
    rows = [row(price=None), row(price="0")]
    (found,) = Electricity().parse([RawPage(answer(*rows), ref="eia")], fetched_at=NOW).offers
    assert found.amount is None


@pytest.mark.parametrize("wrong", [{"period": "2026-13"}, {"period": "August"}, {"price-units": "dollars"}])
def test_a_row_that_is_something_else_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(BadAnswer):
        Electricity().parse([RawPage(answer(row(**wrong)), ref="eia")], fetched_at=NOW)


def test_p37_the_key_stays_out_of_what_is_stored(server: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "canary-key")
    server.expect_request("/eia").respond_with_data(answer(row()))
    (page,) = Electricity().fetch(local_context(base_urls={NAME: server.url_for("/eia")}))
    assert server.log[0][0].args["api_key"] == "canary-key"
    assert "canary" not in page.ref
    (found,) = Electricity().parse([page], fetched_at=NOW).offers
    assert "canary" not in repr(found)


def test_without_a_key_it_says_what_it_needs() -> None:
    with pytest.raises(SourceUnavailable, match=KEY):
        list(Electricity().fetch(local_context()))


def test_the_recorded_table_of_21_areas_reads(recorded: Path) -> None:
    path = recorded / "electricity" / "us_eia_2024-07_ytd_partial.csv"
    found = read_price_file(path, fetched_at=NOW, observed_at=datetime(2024, 7, 1, tzinfo=UTC))
    assert (found.form, found.bad, len(found.offers)) == ("eia-csv", (), 42)
    amounts = {(offer.region, offer.item): offer.amount for offer in found.offers}
    assert amounts["us-new-york", "electricity-industrial"] == Decimal("0.0826")
    assert checks.errors(found.offers) == ()
