"""Drawings are sound SVG: well formed, nothing outside them, text escaped, every figure where it belongs."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree

import pytest

from planner.reports.drawings import amounts, front, gantt, svg

SVG = "{http://www.w3.org/2000/svg}"


def parsed(drawing: str) -> ElementTree.Element:
    """The drawing as XML, once it is known to carry no script, style or address outside the page."""
    for forbidden in ("style=", "<script", "javascript:", "url("):
        assert forbidden not in drawing
    return ElementTree.fromstring(drawing)


def test_front_links_every_point_and_marks_the_chosen_one(plan: Any) -> None:
    drawing = parsed(front.run_front(plan.to_json(), 2, lambda rank: f"/plan?point={rank}"))
    links = drawing.findall(f"{SVG}a")
    assert {link.get("href") for link in links} == {"/plan?point=1", "/plan?point=2"}
    assert [link.get("href") for link in links if link.get("aria-current")] == ["/plan?point=2"]
    assert len(drawing.findall(f"{SVG}circle[@class='other']")) == 7


def test_a_dominated_point_that_is_chosen_is_drawn_as_a_link(plan: Any) -> None:
    drawing = front.run_front(plan.to_json(), 9, lambda rank: f"?point={rank}")
    assert "?point=9" in drawing
    parsed(drawing)


def test_names_cannot_break_out_of_a_drawing(plan: Any) -> None:
    document = plan.to_json()
    document["options"][0]["hardware"] = '"><script>alert(1)</script>'
    parsed(front.run_front(document, 1, str))


def test_gantt_draws_a_bar_a_job_and_a_line_a_deadline() -> None:
    job = {
        "id": "pretrain-with-a-very-long-name", "hardware": "p4d.24xlarge", "purchase_model": "on_demand",
        "start": "2027-01-02T00:00:00Z", "end": "2027-01-04T12:00:00Z", "deadline": "2027-01-31T00:00:00Z",
    }  # fmt: skip
    later = job | {"id": "tune", "deadline": None}
    drawing = parsed(gantt.gantt([job, later], "2027-01-01T00:00:00Z", "2027-04-01T00:00:00Z"))
    bars = drawing.findall(f"{SVG}rect")
    assert len(bars) == 2
    assert len(drawing.findall(f"{SVG}line[@class='deadline']")) == 1
    assert float(str(bars[0].get("width"))) == pytest.approx(474 * 60 / 2160, rel=0.01)


def test_stretches_stand_one_after_the_other() -> None:
    lines = [{"item": "start", "hours": 1.0}, {"item": "training", "hours": 3.0}]
    first, second = parsed(gantt.stretches(lines)).findall(f"{SVG}rect")
    end = float(str(first.get("x"))) + float(str(first.get("width")))
    assert float(str(second.get("x"))) == pytest.approx(end, abs=0.1)


def test_cash_that_comes_in_points_down() -> None:
    months = [("2027-01", Decimal("100.00")), ("2027-02", Decimal("-50.00"))]
    drawing = parsed(amounts.cash(months, "USD"))
    out, back = drawing.findall(f"{SVG}rect")
    assert back.get("class") == "bar income"
    assert float(str(out.get("y"))) < float(str(back.get("y")))
    assert float(str(out.get("height"))) == pytest.approx(2 * float(str(back.get("height"))), rel=0.01)


def test_price_history_draws_each_observation() -> None:
    from planner.pricing.history import series_of
    from planner.pricing.store import PriceStore

    with PriceStore.open() as store:
        (series, *_) = series_of(store.history(datetime(2026, 12, 1, tzinfo=UTC), item="p4d.24xlarge"))
    drawing = parsed(amounts.price(series))
    assert len(drawing.findall(f"{SVG}circle")) == len(series.steps)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.0, 123.4), (-20.0, 3e6), (0.0, 0.004)])
def test_linear_ticks_are_round_and_inside(low: float, high: float) -> None:
    ticks = svg.Scale(low, high, 0, 100).ticks()
    assert 3 <= len(ticks) <= 11
    assert all(low <= tick <= high * 1.0001 for tick in ticks)


@pytest.mark.parametrize(("low", "high"), [(0.3, 25_000.0), (1.0, 2.0), (1.01, 1.02), (1e-3, 1e9)])
def test_log_ticks_are_few_and_inside(low: float, high: float) -> None:
    ticks = svg.Scale(low, high, 0, 100, logarithmic=True).ticks()
    assert 1 <= len(ticks) <= 10
    assert all(low <= tick <= high for tick in ticks)
