"""planner.pricing.staleness: how old a price is, by a clock that the test brings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from priced import offer

from planner.pricing.staleness import age_days, freshness, is_stale, mark_stale

NOW = datetime(2026, 9, 11, tzinfo=UTC)
WEEK = timedelta(days=7)


def test_c09_t36_a_price_of_45_days_is_marked_stale_with_its_age() -> None:
    old = offer(observed_at=NOW - timedelta(days=45))
    new = offer(observed_at=NOW - timedelta(days=7), item="p5.48xlarge")
    marked, kept = mark_stale([old, new], NOW, WEEK)
    assert (marked.quality, marked.reason, age_days(marked, NOW)) == ("stale", "stale, 45 days", 45)
    assert kept == new


def test_c09_the_stale_ones_are_there_to_refuse_on() -> None:
    old = offer(observed_at=NOW - timedelta(days=45))
    new = offer(observed_at=NOW, item="p5.48xlarge")
    found = freshness([new, old], NOW, WEEK)
    assert (found.oldest, found.stale) == (old, (old,))
    assert freshness([], NOW, WEEK).oldest is None


def test_a_price_from_a_clock_that_is_ahead_has_no_negative_age() -> None:
    ahead = offer(observed_at=NOW + timedelta(hours=5))
    assert age_days(ahead, NOW) == 0
    assert not is_stale(ahead, NOW, timedelta(0))


def test_a_suspect_price_stays_suspect_however_old() -> None:
    doubted = offer(observed_at=NOW - timedelta(days=45), quality="suspect", reason="odd")
    (marked,) = mark_stale([doubted], NOW, WEEK)
    assert (marked.quality, marked.reason) == ("suspect", "stale, 45 days; suspect: odd")
