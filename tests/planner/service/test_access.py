"""Who may ask, and what they see."""

from __future__ import annotations

from typing import Any

import pytest

from planner.errors import UsageError
from planner.service.access import Tokens
from planner.service.settings import ServiceSettings
from planner.service.state import State

ASKED = {"model": "bert-base", "epochs": 1, "gpu": "t4-16gb", "spot": False}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_p38_off_loopback_nobody_listens_without_tokens() -> None:
    with pytest.raises(UsageError, match="needs a token"):
        ServiceSettings(host="0.0.0.0")
    assert ServiceSettings(host="0.0.0.0", tokens=True).tokens


def test_p38_a_name_rebound_to_loopback_is_turned_away(served: Any) -> None:
    client = served()
    assert client.get("/healthz", headers={"Host": "evil.example"}).status_code == 421
    assert client.get("/healthz", headers={"Host": "localhost:8080"}).status_code == 200


def test_p38_a_page_of_another_site_cannot_post(served: Any) -> None:
    client = served()
    answer = client.post("/v1/optimize", json=ASKED, headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403
    assert client.post("/schedule", data={"schedule": "x"}).status_code == 403, "a form without its token"


def test_p38_tokens_are_needed_kept_as_hashes_and_end_at_once(served: Any, state: State) -> None:
    client, tokens = served(tokens=True), Tokens(state)
    assert client.get("/v1/workloads").status_code == 401
    assert client.get("/healthz").status_code == 200
    id, token = tokens.new("finance", "viewer")
    stored = state.rows("SELECT * FROM service_tokens")
    assert token not in str(stored)
    assert client.get("/v1/workloads", headers=bearer(token)).status_code == 200
    assert client.post("/v1/prices/refresh", json={}, headers=bearer(token)).status_code == 403
    assert tokens.revoke(id)
    assert client.get("/v1/workloads", headers=bearer(token)).status_code == 401


def test_p38_a_token_ends_when_its_days_are_over(state: State) -> None:
    tokens = Tokens(state)
    _, token = tokens.new("short", "viewer", 1e-9)
    assert tokens.who(token) is None
    assert tokens.who("plan_guessed") is None


def test_p41_nobody_reads_or_deletes_what_is_anothers(served: Any, state: State) -> None:
    client, tokens = served(tokens=True), Tokens(state)
    anna, bert = (bearer(tokens.new(name, "planner")[1]) for name in ("anna", "bert"))
    admin = bearer(tokens.new("root", "admin")[1])
    id = client.post("/v1/plans", json=ASKED, headers=anna).json()["id"]
    assert client.get(f"/v1/plans/{id}", headers=anna).status_code == 200
    for path in (
        f"/v1/plans/{id}",
        f"/v1/plans/{id}/report.html",
        f"/v1/plans/{id}/finance.zip",
        f"/plans/{id}",
    ):
        assert client.get(path, headers=bert).status_code == 404, path
    assert client.delete(f"/v1/plans/{id}", headers=bert).status_code == 404
    assert client.get("/v1/plans", headers=bert).json() == {"plans": []}
    assert client.get(f"/v1/plans/{id}", headers=admin).status_code == 200
    forged = client.post("/v1/plans", json={**ASKED, "owner": "anna"}, headers=bert)
    assert forged.status_code == 422


def test_p42_the_same_key_again_makes_no_second_plan(served: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    client = served()

    def send(_: int) -> Any:
        return client.post("/v1/plans", json=ASKED, headers={"Idempotency-Key": "once"})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(send, range(16)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len(client.get("/v1/plans").json()["plans"]) == 1
    other = client.post("/v1/plans", json={**ASKED, "epochs": 2}, headers={"Idempotency-Key": "once"})
    assert other.status_code == 422


def test_p40_a_large_body_is_refused_with_or_without_its_length(served: Any) -> None:
    client = served(body_bytes=1000)
    assert client.post("/v1/optimize", content=b"x" * 2000).status_code == 413
    pieces = client.post("/v1/optimize", content=iter([b"x" * 600, b"x" * 600]))
    assert pieces.status_code in (400, 413)


def test_p40_who_asks_too_often_is_told_when_to_come_back(served: Any) -> None:
    client = served(per_minute=60)
    answers = [client.get("/healthz") for _ in range(30)]
    assert {answer.status_code for answer in answers} == {200, 429}
    assert all(answer.headers["retry-after"] == "1" for answer in answers if answer.status_code == 429)


def test_p37_no_token_and_no_password_reaches_a_log_line() -> None:
    from planner.service.logs import masked

    assert masked("postgresql://me:secret@db/x") == "postgresql://me:***@db/x"
    assert "plan_abcdefghijklmnopqrstuvwxyz" not in masked("got plan_abcdefghijklmnopqrstuvwxyz")


def test_p35_the_service_reads_no_file_and_runs_no_code_of_the_askers(served: Any) -> None:
    client = served()
    for model in ("os:system", "/etc/passwd", "../x/config.json"):
        assert client.post("/v1/optimize", json={"model": model}).status_code == 422
        schedule = {"jobs": [{"id": "a", "workload": model}], "starts": "2027-01", "months": 1}
        assert client.post("/v1/schedules/check", json={"schedule": schedule}).status_code == 422


def test_an_answer_says_what_is_wrong_and_with_which_key(served: Any) -> None:
    answer = served().post("/v1/optimize", json={"model": "bert-base", "budget": "lots"})
    assert answer.status_code == 422
    assert answer.json()["key"] == "budget"


def test_headers_keep_a_page_to_itself(served: Any) -> None:
    answer = served().get("/")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "SameSite=Strict" in answer.headers["set-cookie"]


def test_a_browser_with_a_token_that_has_ended_can_sign_in_again(served: Any) -> None:
    client = served()
    client.cookies.set("planner_token", "plan_ended")
    asked = client.get("/", headers={"Accept": "text/html"}, follow_redirects=False)
    assert (asked.status_code, asked.headers["location"]) == (303, "/sign-in")
    assert client.get("/sign-in").status_code == 200
    assert client.get("/v1/tokens", headers=bearer("plan_ended")).status_code == 401
