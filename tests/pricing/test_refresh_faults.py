"""What goes wrong around a refresh: answers that are none, full disks, odd clocks, and company."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from local_fake import half_body, serving
from made_up_sources import NOW, MovableClock, context, failing, saying
from priced import offer

from planner.pricing.errors import PricingError, StoreUnusable
from planner.pricing.locks import RefreshRunning
from planner.pricing.raw_answers import RawAnswers
from planner.pricing.refresh import refresh
from planner.pricing.sources import (
    AmbiguousRows,
    BadAnswer,
    FetchContext,
    ParseResult,
    RawPage,
    SourceFailed,
    SourceInfo,
    TooManyBadRows,
)
from planner.pricing.sources.http import Http
from planner.pricing.store import PriceStore

P4D = offer(amount=Decimal("21.957642"))
A2 = offer(provider="gcp", item="a2-highgpu-1g", region="us-central1", gpu_count=1, amount=Decimal("3.67"))


@pytest.mark.parametrize(
    "error",
    [
        SourceFailed("status 500"), BadAnswer("page 2 names the page token of an earlier one"),
        TooManyBadRows("9 of 10 rows do not read"), AmbiguousRows("2 rows are left"), PricingError("other"),
        TimeoutError(), ConnectionResetError("reset by peer"), OSError(28, "No space left on device"),
        ValueError("a fault of ours"), RecursionError(), MemoryError(),
        UnicodeDecodeError("utf-8", b"", 0, 1, "x"),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_c39_c40_p9_whatever_befalls_one_source_the_others_and_its_old_rows_stay(
    store: PriceStore, error: Exception
) -> None:
    clock = MovableClock()
    refresh(store, [saying("aws", P4D), saying("gcp", A2)], context(clock))
    clock.forward(days=1)
    report = refresh(
        store, [saying("aws", replace(P4D, amount=Decimal("21"))), failing("gcp", error)], context(clock)
    )
    kept = {each.item: (each.amount, each.observed_at) for each in store.latest()}
    assert kept == {
        "p4d.24xlarge": (Decimal("21"), NOW + timedelta(days=1)),
        "a2-highgpu-1g": (Decimal("3.67"), NOW),
    }
    assert (report.exit_code, report.sources[1].status, report.sources[1].kept) == (6, "failed", 1)


class Fetching:
    """A source that asks one address and takes the answer for a price in dollars."""

    def __init__(self, url: str) -> None:
        self.url = url

    def fetch(self, context: FetchContext) -> Any:
        with Http(context) as http:
            yield RawPage(http.get(self.url).body, ref="made")

    def parse(self, pages: Any, *, fetched_at: datetime, observed_at: datetime | None = None) -> ParseResult:
        text = next(iter(pages)).body.decode()
        if not text.replace(".", "").isdecimal():
            raise BadAnswer(f"not a price: {text[:20]!r}")
        said = replace(
            P4D, amount=Decimal(text), source="made", observed_at=fetched_at, fetched_at=fetched_at
        )
        return ParseResult((said,), rows=1)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n21.96", "ok"),
        (b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n", "failed"),
        (b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", "failed"),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "failed"),
        (b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", "failed"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n", "failed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 19\r\n\r\n<html>busy</html>  ", "failed"),
        (half_body(b"21.957642"), "failed"),
        (b"", "failed"),
        (b"garbage\r\n\r\n", "failed"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\n21.96", "failed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "failed"),
    ],
    ids=[
        "whole", "429", "500", "503", "403", "redirect", "html", "half", "reset", "garbage", "bad-gzip",
        "empty",
    ],
)  # fmt: skip
def test_p9_an_answer_that_is_none_fails_its_source_and_only_it(
    store: PriceStore, answer: bytes, status: str
) -> None:
    with serving(answer) as url:
        made = SourceInfo("made", "aws", "", True, lambda: Fetching(url))
        asking = FetchContext(
            clock=MovableClock(), loopback=True, sleep=lambda seconds: None, connect_seconds=2, read_seconds=2
        )
        report = refresh(store, [made, saying("gcp", A2)], asking, total_seconds=20)
    found = {each.source: each.status for each in report.sources}
    assert found == {"made": status, "gcp": "ok"}
    assert "169.254" not in str(report.sources)


def test_p2_a_full_disk_leaves_the_old_prices_and_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "prices.sqlite")
    with PriceStore.open(path) as store:
        before = store.history()
        pages = store._engine.raw_connection().cursor().execute("PRAGMA page_count").fetchone()[0]

        def limit(connection: Any, _record: Any) -> None:
            connection.execute(f"PRAGMA max_page_count = {pages + 1}")

        from sqlalchemy import event

        store._engine.dispose()
        event.listen(store._engine, "connect", limit)
        many = [offer(item=f"made-{number}", note="x" * 190) for number in range(500)]
        with pytest.raises(StoreUnusable, match="no space is left on its disk"):
            refresh(store, [saying("made", *many)], context(MovableClock()))
        assert store.history() == before
    with PriceStore.open(path) as again:
        assert again.damage() is None
        assert refresh(again, [saying("made", *many)], context(MovableClock())).added == 500


def test_p2_a_full_disk_while_keeping_an_answer_leaves_no_half_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with PriceStore.open(str(tmp_path / "prices.sqlite")) as store:
        monkeypatch.setattr("planner.pricing.raw_answers.shutil.copyfileobj", full)
        report = refresh(store, [saying("aws", P4D)], context(MovableClock()))
        assert (report.exit_code, report.sources[0].status) == (6, "failed")
        assert "No space left on device" in str(report.sources[0].message)
        assert store.latest(provider="aws", item="p4d.24xlarge")
    assert not list(tmp_path.rglob("*.partial"))
    assert not list(tmp_path.rglob("*.gz"))


def test_an_answer_is_kept_once_and_comes_back_byte_for_byte(tmp_path: Path) -> None:
    answers = RawAnswers(tmp_path)
    page = RawPage(b"\x00\xff" * 1000, ref="made")
    first = answers.keep(page)
    assert answers.keep(page) == first
    assert answers.read(page.sha256) == page.body
    assert len(list(tmp_path.rglob("*.*"))) == 1


def test_p4_of_eight_at_once_one_refreshes_and_readers_never_wait_or_fail(tmp_path: Path) -> None:
    path = str(tmp_path / "prices.sqlite")
    PriceStore.open(path).close()

    def once(number: int) -> str:
        with PriceStore.open(path) as store:
            try:
                refresh(store, [saying("aws", P4D)], context(MovableClock()))
            except RefreshRunning:
                return "running"
            return "done"

    def read(number: int) -> int:
        with PriceStore.open(path) as store:
            return len(store.latest(item="p4d.24xlarge"))

    with ThreadPoolExecutor(12) as pool:
        refreshing = [pool.submit(once, number) for number in range(8)]
        reading = [pool.submit(read, number) for number in range(4)]
    said = [each.result() for each in refreshing]
    assert set(said) <= {"done", "running"}
    assert "done" in said
    assert all(each.result() > 0 for each in reading)
    with closing(sqlite3.connect(path)) as plain:
        query = "SELECT count(*) FROM observations WHERE source = 'aws' AND fetched_at LIKE ?"
        assert plain.execute(query, [f"{NOW:%Y-%m-%d}%"]).fetchone() == (1,)


def test_p21_a_clock_that_jumps_back_gives_no_negative_age_and_loses_nothing(store: PriceStore) -> None:
    clock = MovableClock()
    refresh(store, [saying("aws", P4D)], context(clock))
    clock.forward(days=-1)
    report = refresh(store, [failing("aws", SourceFailed("status 500"))], context(clock))
    assert "0 days old" in report.sources[0].line(clock())
    refresh(store, [saying("aws", replace(P4D, amount=Decimal("20")))], context(clock))
    assert [each.amount for each in store.latest()] == [Decimal("21.957642")]
    assert len(store.history()) == 2


def test_the_result_does_not_depend_on_which_source_answers_first(tmp_path: Path) -> None:
    seen = []
    for order in (1, -1):
        with PriceStore.open(str(tmp_path / f"{order}.sqlite")) as store:
            sources = [saying("aws", P4D), saying("gcp", A2)][::order]
            report = refresh(store, sources, context(MovableClock()))
            seen.append((store.latest(), [each.source for each in report.sources], store.fetches()))
    assert seen[0] == seen[1]
