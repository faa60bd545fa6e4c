"""planner.pricing.refresh: what came is stored, what failed keeps its rows, what is odd waits."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from made_up_sources import NOW, MovableClock, context, failing, saying
from priced import offer

from planner.pricing.errors import StoreUnusable
from planner.pricing.locks import RefreshRunning
from planner.pricing.offer import Offer
from planner.pricing.refresh import RefreshReport, SourceReport, refresh
from planner.pricing.sources import SourceFailed, SourceInfo, SourceUnavailable
from planner.pricing.store import PriceStore

P4D = offer(amount=Decimal("21.957642"), currency="USD")
A2 = offer(
    provider="gcp", item="a2-highgpu-1g", region="us-central1", gpu_count=1, amount=Decimal("3.673385")
)


def ask(store: PriceStore, clock: MovableClock, *sources: SourceInfo, **limits: float) -> RefreshReport:
    return refresh(store, sources, context(clock), **limits)


def only(report: RefreshReport) -> SourceReport:
    (found,) = report.sources
    return found


def amounts(store: PriceStore) -> list[Decimal | None]:
    return [each.amount for each in store.latest()]


def test_what_a_source_says_is_stored_with_its_source_and_the_hash_of_its_answer(store: PriceStore) -> None:
    report = ask(store, MovableClock(), saying("aws", P4D))
    (stored,) = store.latest()
    assert (stored.source, stored.observed_at, stored.amount) == ("aws", NOW, Decimal("21.957642"))
    assert stored.raw_sha256
    assert (report.exit_code, report.added, only(report).count("new")) == (0, 1, 1)


def test_p15_the_same_answer_again_adds_no_row(store: PriceStore) -> None:
    clock = MovableClock()
    ask(store, clock, saying("aws", P4D, A2))
    clock.forward(hours=3)
    report = ask(store, clock, saying("aws", P4D, A2))
    assert (report.added, only(report).unchanged, len(store.history())) == (0, 2, 2)


def test_a_price_that_stays_is_seen_again_once_a_day_so_that_its_age_is_true(store: PriceStore) -> None:
    clock = MovableClock()
    for _ in range(5):
        ask(store, clock, saying("aws", P4D))
        clock.forward(hours=6)
    assert [each.observed_at for each in store.history()] == [NOW, NOW + timedelta(hours=24)]
    assert [move.what for move in ask(store, clock, saying("aws", P4D)).moves] == []


def test_c40_one_provider_down_keeps_its_rows_with_their_old_time_and_is_named(store: PriceStore) -> None:
    clock = MovableClock(NOW - timedelta(days=1))
    ask(store, clock, saying("aws", P4D), saying("gcp", A2))
    clock.forward(days=1)
    cheaper = replace(P4D, amount=Decimal("20.00"))
    report = ask(store, clock, saying("aws", cheaper), failing("gcp", SourceFailed("status 503")))
    by_item = {each.item: each for each in store.latest()}
    assert (by_item["p4d.24xlarge"].amount, by_item["p4d.24xlarge"].observed_at) == (Decimal("20.00"), NOW)
    assert by_item["a2-highgpu-1g"].observed_at == NOW - timedelta(days=1)
    assert report.exit_code == 6
    gcp = report.sources[1]
    assert (gcp.status, gcp.kept) == ("failed", 1)
    assert gcp.line(NOW) == "failed: status 503; kept 1 price, the newest of 2026-09-10, 1 day old"


def test_c40_a_provider_that_never_answered_keeps_what_was_packaged_of_it(store: PriceStore) -> None:
    store.append([replace(A2, observed_at=NOW - timedelta(days=39))])
    report = ask(store, MovableClock(), failing("gcp", SourceFailed("status 503")))
    assert "kept 1 price, the newest of 2026-08-03, 39 days old" in only(report).line(NOW)
    assert report.exit_code == 6


def test_nothing_stored_and_nothing_fetched_is_told_apart_from_one_provider_down(store: PriceStore) -> None:
    report = ask(store, MovableClock(), failing("aws", SourceFailed("status 503")))
    assert (report.exit_code, report.usable) == (5, False)
    assert "no price of it is stored yet" in only(report).line(NOW)


def test_a_source_without_credentials_is_skipped_and_says_what_it_needs(store: PriceStore) -> None:
    report = ask(store, MovableClock(), saying("aws", P4D), failing("gcp", SourceUnavailable("a key")))
    assert report.exit_code == 0
    assert report.sources[1].line(NOW) == "skipped: needs a key"


def test_a_refresh_that_could_ask_nobody_is_no_success(store: PriceStore) -> None:
    store.append([P4D])
    report = ask(store, MovableClock(), failing("aws", SourceUnavailable("boto3")))
    assert (report.nobody_asked, report.exit_code) == (True, 6)
    assert ask(store, MovableClock()).exit_code == 0, "nobody was meant to be asked"


def test_a_fault_inside_a_source_stops_neither_the_others_nor_shows_what_it_held(store: PriceStore) -> None:
    report = ask(store, MovableClock(), saying("aws", P4D), failing("gcp", KeyError("secret-key")))
    assert report.exit_code == 6
    assert amounts(store) == [Decimal("21.957642")]
    assert "secret-key" not in report.sources[1].line(NOW)
    assert "KeyError" in report.sources[1].line(NOW)


def test_p10_a_source_that_hangs_is_left_behind_and_the_others_are_stored(store: PriceStore) -> None:
    never = threading.Event()
    report = ask(
        store, MovableClock(), saying("aws", P4D), saying("gcp", A2, before=never.wait), total_seconds=0.3
    )
    never.set()
    assert [each.status for each in report.sources] == ["ok", "failed"]
    assert "no whole answer within 0.3 s" in report.sources[1].line(NOW)
    assert amounts(store) == [Decimal("21.957642")]


# --- plausibility


def test_a_cut_of_44_percent_waits_for_a_second_fetch_and_then_goes_through(store: PriceStore) -> None:
    clock = MovableClock()
    ask(store, clock, saying("aws", replace(P4D, amount=Decimal("98.32"))))
    clock.forward(days=1)
    first = ask(store, clock, saying("aws", replace(P4D, amount=Decimal("55.04"))))
    assert amounts(store) == [Decimal("98.32")]
    assert [move.what for move in first.moves] == ["waiting"]
    assert "55.04 USD (was 98.32 on 2026-09-11, -44.0 %)" in first.moves[0].text
    clock.forward(hours=1)
    second = ask(store, clock, saying("aws", replace(P4D, amount=Decimal("55.04"))))
    assert amounts(store) == [Decimal("55.04")]
    assert [(move.what, move.reason) for move in second.moves] == [("changed", "confirmed")]
    assert [each.quality for each in store.history()] == ["ok", "suspect", "ok"]


def test_a_single_odd_reading_never_replaces_a_price_even_when_it_comes_back(store: PriceStore) -> None:
    clock = MovableClock()
    for amount in ("98.32", "55.04", "98.32", "55.04"):
        ask(store, clock, saying("aws", replace(P4D, amount=Decimal(amount))))
        clock.forward(hours=1)
    assert amounts(store) == [Decimal("98.32")]


def test_a_quarter_more_goes_through_at_once(store: PriceStore) -> None:
    clock = MovableClock()
    ask(store, clock, saying("aws", replace(P4D, amount=Decimal("20"))))
    clock.forward(hours=1)
    report = ask(store, clock, saying("aws", replace(P4D, amount=Decimal("25"))))
    assert amounts(store) == [Decimal("25")]
    assert report.moves[0].percent == 25


@pytest.mark.parametrize("amount", ["219.57642", "2.1957642", "0.03"])
def test_p13_ten_times_the_last_price_or_a_tenth_is_set_aside_however_often_it_comes(
    store: PriceStore, amount: str
) -> None:
    clock = MovableClock()
    ask(store, clock, saying("aws", P4D))
    for _ in range(3):
        clock.forward(hours=1)
        report = ask(store, clock, saying("aws", replace(P4D, amount=Decimal(amount))))
        assert [move.what for move in report.moves] == ["quarantined"]
    assert amounts(store) == [Decimal("21.957642")]
    assert len(store.history()) == 2, "the same doubt is written down once"


def test_p13_a_new_price_far_from_what_its_gpu_costs_elsewhere_is_set_aside(store: PriceStore) -> None:
    clock = MovableClock()
    ask(store, clock, saying("aws", P4D))
    wrong = replace(A2, provider="new", amount=Decimal("0.01"))
    report = ask(store, clock, saying("new", wrong))
    assert [move.what for move in report.moves] == ["quarantined"]
    assert "0.01 where others cost" in str(report.moves[0].reason)
    assert amounts(store) == [Decimal("21.957642")]


def test_t35_a_price_that_is_suddenly_blank_waits_as_any_large_step(store: PriceStore) -> None:
    clock = MovableClock()
    ask(store, clock, saying("aws", P4D))
    for expected in (Decimal("21.957642"), None):
        clock.forward(hours=1)
        ask(store, clock, saying("aws", replace(P4D, amount=None)))
        assert amounts(store) == [expected]


def test_p21_a_price_dated_in_the_future_is_set_aside(store: PriceStore) -> None:
    clock = MovableClock(NOW + timedelta(days=3))

    class Ahead:
        """Says a date to come."""

        def fetch(self, _context: object) -> list[object]:
            return []

        def parse(self, _pages: object, *, fetched_at: object, observed_at: object = None) -> object:
            from planner.pricing.sources import ParseResult

            return ParseResult((replace(P4D, observed_at=NOW + timedelta(days=30), fetched_at=clock()),))

    report = ask(store, clock, SourceInfo("ahead", "aws", "", True, Ahead))  # type: ignore[arg-type]
    assert "yet to come" in str(report.moves[0].reason)
    assert store.latest() == ()


def test_p14_a_source_whose_offers_break_a_rule_is_refused_as_a_whole(store: PriceStore) -> None:
    report = ask(store, MovableClock(), saying("aws", P4D, replace(A2, unit="kwh")))
    assert only(report).status == "failed"
    assert "1 of 2 offers break a rule" in str(only(report).message)
    assert store.latest() == ()


# --- the shrink guard


def many(count: int) -> list[Offer]:
    return [offer(item=f"p4d.{number}") for number in range(count)]


def test_t37_p12_a_list_that_shrinks_is_set_aside_until_it_is_seen_again_an_hour_later(
    store: PriceStore,
) -> None:
    clock = MovableClock()
    ask(store, clock, saying("aws", *many(10)))
    clock.forward(days=1)
    report = ask(store, clock, saying("aws", *many(7)))
    assert (only(report).status, report.exit_code) == ("shrunk", 6)
    assert "7 offers where 10 came on 2026-09-11" in only(report).line(clock())
    clock.forward(minutes=5)
    assert only(ask(store, clock, saying("aws", *many(7)))).status == "shrunk"
    clock.forward(hours=2)
    report = ask(store, clock, saying("aws", *many(7)))
    assert (only(report).status, only(report).count("gone")) == ("ok", 3)
    assert len(store.latest()) == 10, "what is gone from the list keeps its rows, with their age"


def test_p12_a_family_that_is_missing_is_as_bad_as_a_shrunk_list(store: PriceStore) -> None:
    clock = MovableClock()
    h100 = offer(item="p5.48xlarge", gpu_model="h100-sxm5-80gb", gpu_mem_mib=81920)
    ask(store, clock, saying("aws", *many(20), h100))
    clock.forward(days=1)
    report = ask(store, clock, saying("aws", *many(20)))
    assert "without h100-sxm5-80gb" in str(only(report).message)


# --- one writer, no torn state


def test_a_second_refresher_says_so_and_stores_nothing(tmp_path: Path) -> None:
    place = str(tmp_path / "prices.sqlite")
    with PriceStore.open(place) as first, PriceStore.open(place) as second, first.only_refresher():
        rows = len(second.history())
        with pytest.raises(
            RefreshRunning, match=r"is being refreshed already, process \d+; nothing was done"
        ):
            ask(second, MovableClock(), saying("aws", P4D))
        assert len(second.history()) == rows
    with PriceStore.open(place) as third:
        assert ask(third, MovableClock(), saying("aws", P4D)).exit_code == 0


def test_answers_are_kept_beside_the_store_under_their_hash(tmp_path: Path) -> None:
    with PriceStore.open(str(tmp_path / "prices.sqlite")) as store:
        ask(store, MovableClock(), saying("aws", P4D))
        answers = store.raw_answers
        (stored,) = [each for each in store.latest(item="p4d.24xlarge") if each.source == "aws"]
    assert answers is not None
    assert b"21.957642" in answers.read(str(stored.raw_sha256))
    assert not list(tmp_path.rglob("*.partial"))


def test_what_each_source_brought_is_written_down(store: PriceStore) -> None:
    clock = MovableClock()
    ask(store, clock, saying("aws", P4D), failing("gcp", SourceFailed("status 503")))
    assert {(each.source, each.status, each.message) for each in store.fetches()} == {
        ("aws", "ok", None),
        ("gcp", "failed", "status 503"),
    }
    (aws,) = store.fetches("aws")
    assert (aws.offers, aws.added, aws.families, aws.fetched_at) == (1, 1, ("a100-sxm4-40gb",), NOW)


def test_a_store_that_cannot_be_written_is_named_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "prices.sqlite"
    PriceStore.open(str(path)).close()
    with PriceStore.open(str(path)) as store:
        object.__setattr__(store._place, "read_only", True)
        with pytest.raises(StoreUnusable, match="read but not written"):
            ask(store, MovableClock(), saying("aws", P4D))


# --- two sources, one price


def test_t14_where_a_catalogue_and_the_seller_disagree_the_seller_holds_and_it_is_told(
    store: PriceStore,
) -> None:
    """g4-standard-6: 0.5596 in one list, 1.51825 in another; the number in its name counts vCPUs."""
    g4 = replace(A2, item="g4-standard-6")
    seller = replace(saying("gcp-catalog", replace(g4, amount=Decimal("1.51825"))), provider="gcp")
    catalogue = saying("a-catalogue", replace(g4, amount=Decimal("0.5596")))
    clock = MovableClock()
    for _ in range(3):
        report = refresh(store, [catalogue, seller], context(clock))
        clock.forward(hours=25)
    assert amounts(store) == [Decimal("1.51825")]
    (conflict,) = [move for move in report.moves if move.what == "conflict"]
    assert "gcp-catalog is the seller's own word" in conflict.text


def test_a_catalogue_speaks_again_when_the_seller_has_not_for_a_week(store: PriceStore) -> None:
    clock = MovableClock()
    refresh(store, [replace(saying("gcp-catalog", A2), provider="gcp")], context(clock))
    for days, expected in ((6, Decimal("3.673385")), (2, Decimal("3.50"))):
        clock.forward(days=days)
        ask(store, clock, saying("a-catalogue", replace(A2, amount=Decimal("3.50"))))
        assert amounts(store) == [expected]
