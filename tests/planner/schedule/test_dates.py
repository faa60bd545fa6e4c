"""Months as they are: 28 to 31 days, an hour more or less where the clock changes."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from planner.schedule.dates import Calendar, month_after

BERLIN = Calendar(date(2027, 1, 1), 12, ZoneInfo("Europe/Berlin"))


def test_the_clock_changes_make_months_of_743_and_745_hours() -> None:
    hours = BERLIN.month_hours
    assert (hours[0], hours[1], hours[2], hours[9]) == (744, 672, 743, 745)
    assert sum(hours) == 8760


def test_a_leap_year_has_a_day_more() -> None:
    leap = Calendar(date(2028, 1, 1), 12, ZoneInfo("UTC"))
    assert leap.month_hours[1] == 696
    assert sum(leap.month_hours) == 8784
    assert leap.moment(leap.edge_hours[1] + 28 * 24) == datetime(2028, 2, 29, tzinfo=UTC)


def test_months_begin_at_midnight_of_their_zone() -> None:
    assert BERLIN.edges[0] == datetime(2026, 12, 31, 23, tzinfo=UTC)
    assert BERLIN.edges[6] == datetime(2027, 6, 30, 22, tzinfo=UTC)
    assert BERLIN.name(6) == "2027-07"


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Apia"])
def test_hours_and_moments_are_inverse(zone: str) -> None:
    calendar = Calendar(date(2027, 1, 1), 24, ZoneInfo(zone))
    for hours in (0.0, 0.5, 1416.0, 2159.25, 8760.0):
        assert calendar.hours(calendar.moment(hours)) == pytest.approx(hours, abs=1e-3)
    assert [calendar.month_of(edge) for edge in calendar.edge_hours[:-1]] == list(range(24))


def test_months_are_counted_over_years() -> None:
    assert month_after(date(2027, 11, 1), 3) == date(2028, 2, 1)
    assert month_after(date(2027, 1, 1), -1) == date(2026, 12, 1)


def test_a_window_holds_the_months_between_release_and_deadline() -> None:
    edges = BERLIN.edge_hours
    assert BERLIN.window(edges[2], edges[3]) == (2,)
    assert BERLIN.window(edges[2], edges[3] + 1) == (2, 3)
    assert BERLIN.window(edges[10] + 5, None) == (10, 11)


def test_pieces_of_a_run_are_cut_where_months_begin() -> None:
    edges = BERLIN.edge_hours
    pieces = list(BERLIN.pieces(edges[1] - 10, edges[3] + 1))
    assert pieces == [
        (edges[1] - 10, edges[1]),
        (edges[1], edges[2]),
        (edges[2], edges[3]),
        (edges[3], edges[3] + 1),
    ]
    assert sum(end - start for start, end in pieces) == pytest.approx(
        float(Decimal("11") + Decimal(672 + 743))
    )
