"""planner.pricing.sources.http: patience, limits, and no secret in a message."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from pathlib import Path

import pytest
from local_server import local_context
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from planner.pricing.sources import BadAnswer, FetchContext, SourceFailed
from planner.pricing.sources.http import TRIES, Http, retry_after_seconds


def test_an_answer_comes_with_its_body_and_an_address_without_the_query(server: HTTPServer) -> None:
    server.expect_request("/prices").respond_with_data(b"[1]")
    with Http(local_context()) as http:
        answer = http.get(server.url_for("/prices"), params={"key": "secret"})
    assert (answer.status, answer.body) == (200, b"[1]")
    assert answer.ref == server.url_for("/prices")


@pytest.mark.parametrize(
    ("header", "wait"), [("7", 7.0), ("Fri, 11 Sep 2026 12:00:30 GMT", 30.0)], ids=["seconds", "date"]
)
def test_retry_after_is_waited_for_as_asked(server: HTTPServer, header: str, wait: float) -> None:
    server.expect_ordered_request("/prices").respond_with_data(status=429, headers={"Retry-After": header})
    server.expect_ordered_request("/prices").respond_with_data(b"ok")
    waits: list[float] = []
    context = local_context(waits, clock=lambda: datetime(2026, 9, 11, 12, tzinfo=UTC))
    with Http(context) as http:
        assert http.get(server.url_for("/prices")).body == b"ok"
    assert waits == [wait]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_seller_that_stays_busy_is_given_up_after_five_tries(server: HTTPServer, status: int) -> None:
    server.expect_request("/prices").respond_with_data(status=status)
    waits: list[float] = []
    with Http(local_context(waits)) as http, pytest.raises(SourceFailed, match=f"/prices: status {status}"):
        http.get(server.url_for("/prices"))
    assert len(server.log) == TRIES
    assert len(waits) == TRIES - 1
    assert all(0 <= wait <= limit for wait, limit in zip(waits, [1, 2, 4, 8], strict=True))


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404])
def test_a_refusal_is_not_asked_again(server: HTTPServer, status: int) -> None:
    server.expect_request("/prices").respond_with_data(status=status, headers={"Location": "/elsewhere"})
    with Http(local_context()) as http, pytest.raises(SourceFailed, match=f"status {status}"):
        http.get(server.url_for("/prices"), params={"key": "secret"})
    assert len(server.log) == 1


def test_a_wait_past_the_deadline_is_not_begun(server: HTTPServer) -> None:
    server.expect_request("/prices").respond_with_data(status=429, headers={"Retry-After": "3600"})
    waits: list[float] = []
    with Http(local_context(waits)) as http, pytest.raises(SourceFailed, match="status 429"):
        http.get(server.url_for("/prices"))
    assert waits == []


def test_a_body_that_trickles_past_the_deadline_is_given_up(server: HTTPServer) -> None:
    server.expect_request("/prices").respond_with_data(b"x" * 1000)
    clock = itertools.chain([0.0], itertools.repeat(500.0))
    context = local_context(monotonic=lambda: next(clock))
    with Http(context) as http, pytest.raises(SourceFailed, match="not whole within 120 s"):
        http.get(server.url_for("/prices"))


def test_an_answer_over_the_limit_is_stopped(server: HTTPServer, tmp_path: Path) -> None:
    server.expect_request("/prices").respond_with_data(b"x" * 1000)
    with Http(local_context()) as http:
        with pytest.raises(BadAnswer, match="over 999 bytes"):
            http.get(server.url_for("/prices"), limit_bytes=999)
        with pytest.raises(BadAnswer, match="over 999 bytes"):
            http.download(server.url_for("/prices"), tmp_path / "file", limit_bytes=999)


def test_half_a_body_is_asked_for_again(server: HTTPServer) -> None:
    def half(request: Request) -> Response:
        response = Response(b"12345")
        response.headers["Content-Length"] = "10"
        response.automatically_set_content_length = False
        return response

    server.expect_ordered_request("/prices").respond_with_handler(half)
    server.expect_ordered_request("/prices").respond_with_data(b"1234567890")
    with Http(local_context()) as http:
        assert http.get(server.url_for("/prices")).body == b"1234567890"


def test_a_file_is_written_whole(server: HTTPServer, tmp_path: Path) -> None:
    server.expect_request("/prices").respond_with_data(b"x" * 200_000)
    with Http(local_context()) as http:
        http.download(server.url_for("/prices"), tmp_path / "file", limit_bytes=2**20)
    assert (tmp_path / "file").stat().st_size == 200_000


def test_nobody_at_the_door_is_a_failure_of_the_source(server: HTTPServer) -> None:
    address = server.url_for("/prices")
    server.stop()  # type: ignore[no-untyped-call]
    with Http(local_context()) as http, pytest.raises(SourceFailed, match="ConnectError"):
        http.get(address)


@pytest.mark.parametrize(
    "url",
    [
        "http://prices.example/x",
        "file:///etc/passwd",
        "http://169.254.169.254/",
        "https:///x",
        "https://[",
        "x",
    ],
)
def test_only_https_is_spoken_to_others(url: str) -> None:
    with Http(local_context()) as http, pytest.raises(SourceFailed, match="https is needed"):
        http.get(url)


def test_plain_http_to_this_machine_is_for_tests_only() -> None:
    with Http(FetchContext()) as http, pytest.raises(SourceFailed, match="https is needed"):
        http.get("http://127.0.0.1:9/prices")


def test_a_message_never_holds_the_query(server: HTTPServer) -> None:
    server.expect_request("/prices").respond_with_data(status=403)
    with Http(local_context()) as http, pytest.raises(SourceFailed) as caught:
        http.get(server.url_for("/prices") + "?key=secret")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("text", [None, "", "soon", "-1"])
def test_an_unreadable_retry_after_asks_for_nothing(text: str | None) -> None:
    assert retry_after_seconds(text, datetime(2026, 9, 11, tzinfo=UTC)) is None


def test_a_retry_after_in_the_past_is_now() -> None:
    assert retry_after_seconds("Fri, 11 Sep 2026 12:00:30 GMT", datetime(2026, 9, 12, tzinfo=UTC)) == 0


def test_a_deadline_counts_all_calls_together() -> None:
    seconds = iter([0.0, 60.0, 121.0])
    deadline = FetchContext(monotonic=lambda: next(seconds)).deadline()
    deadline.check("first call")
    with pytest.raises(SourceFailed, match="second call: not whole within 120 s"):
        deadline.check("second call")
