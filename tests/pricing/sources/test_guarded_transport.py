"""planner.pricing.sources.guarded_transport: no address leads into the machine's own network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import httpx2
import pytest
from local_server import local_context
from pytest_httpserver import HTTPServer

from planner.pricing.sources import SourceFailed
from planner.pricing.sources.guarded_transport import guarded_transport, is_public
from planner.pricing.sources.http import Http

PUBLIC = "93.184.216.34"


def get(url: str, resolve: Callable[[str, int], Sequence[str]], handler: Any) -> Any:
    transport = guarded_transport(resolve=resolve, inner=httpx2.MockTransport(handler))
    with Http(local_context(loopback=False), transport=transport) as http:
        return http.get(url)


def never(request: httpx2.Request) -> httpx2.Response:
    raise AssertionError(f"{request.url} was contacted")


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
        "224.0.0.1", "255.255.255.255", "192.0.2.1", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1",
        "fd00:ec2::254", "ff02::1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "2002:7f00:1::",
        "2002:a00:1::", "64:ff9b::a9fe:a9fe", "2001:db8::1", "not an address", "",
    ],
)  # fmt: skip
def test_p32_addresses_that_are_nobodys_shop(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", [PUBLIC, "8.8.8.8", "2606:2800:220:1:248:1893:25c8:1946"])
def test_p32_public_addresses(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", ["169.254.169.254", "10.0.0.5", "::ffff:127.0.0.1", "100.64.3.4"])
def test_p32_a_name_that_leads_inside_is_not_fetched(address: str) -> None:
    with pytest.raises(SourceFailed, match="not on the public internet"):
        get("https://shop.example/4090", lambda host, port: [PUBLIC, address], never)


@pytest.mark.parametrize(
    "url", ["https://169.254.169.254/latest", "https://[::1]/", "https://2130706433/", "https://0x7f.1/"]
)
def test_p32_an_address_written_as_a_number_is_judged_too(url: str) -> None:
    with pytest.raises(SourceFailed):
        get(url, lambda host, port: [host.strip("[]")], never)


@pytest.mark.parametrize("url", ["http://shop.example/", "ftp://shop.example/", "file:///etc/passwd"])
def test_p32_only_https_is_fetched(url: str) -> None:
    with pytest.raises(SourceFailed, match="https is needed"):
        get(url, lambda host, port: [PUBLIC], never)


def test_p32_the_connection_goes_to_the_address_that_was_judged() -> None:
    seen: list[httpx2.Request] = []
    looked_up: list[str] = []

    def resolve(host: str, port: int) -> Sequence[str]:
        looked_up.append(host)
        return [PUBLIC] if len(looked_up) == 1 else ["127.0.0.1"]

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, content=b"ok")

    assert get("https://shop.example/4090", resolve, answer).body == b"ok"
    assert looked_up == ["shop.example"], "one look-up: a second one could answer differently"
    assert seen[0].url.host == PUBLIC
    assert seen[0].headers["Host"] == "shop.example"
    assert seen[0].extensions["sni_hostname"] == "shop.example"


def test_an_ipv6_address_is_connected_to_as_one() -> None:
    seen: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(str(request.url))
        return httpx2.Response(200)

    get("https://shop.example/4090", lambda host, port: ["2606:2800:220:1:248:1893:25c8:1946"], answer)
    assert seen == ["https://[2606:2800:220:1:248:1893:25c8:1946]/4090"]


def redirecting(*places: str) -> Callable[[httpx2.Request], httpx2.Response]:
    left = list(places)

    def answer(request: httpx2.Request) -> httpx2.Response:
        if left:
            return httpx2.Response(302, headers={"Location": left.pop(0)})
        return httpx2.Response(200, content=b"there")

    return answer


def test_p32_redirects_are_followed_and_judged() -> None:
    assert (
        get("https://a.example/", lambda host, port: [PUBLIC], redirecting("/x", "https://b.example/")).body
        == b"there"
    )


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("https://inside.example/", "not on the public internet"),
        ("http://shop.example/", "https is needed"),
        ("https://169.254.169.254/latest/meta-data", "not on the public internet"),
    ],
)
def test_p32_a_redirect_that_leads_inside_is_refused(place: str, why: str) -> None:
    def resolve(host: str, port: int) -> Sequence[str]:
        return {"shop.example": [PUBLIC]}.get(host, ["10.0.0.1"])

    with pytest.raises(SourceFailed, match=why):
        get("https://shop.example/", resolve, redirecting(place))


def test_p32_a_fourth_redirect_is_not_followed() -> None:
    with pytest.raises(SourceFailed, match="more than 3 redirects"):
        get("https://a.example/", lambda host, port: [PUBLIC], redirecting("/1", "/2", "/3", "/4"))


def test_p37_a_redirect_to_another_host_takes_no_secret_along() -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return (
            httpx2.Response(302, headers={"Location": "https://b.example/"})
            if len(seen) == 1
            else httpx2.Response(200)
        )

    transport = guarded_transport(resolve=lambda host, port: [PUBLIC], inner=httpx2.MockTransport(answer))
    with Http(local_context(loopback=False), transport=transport) as http:
        http.get("https://a.example/", headers={"Authorization": "Bearer secret", "Accept": "text/html"})
    assert "Authorization" not in seen[1].headers
    assert seen[1].headers["Accept"] == "text/html"


def test_a_user_name_in_an_address_is_refused() -> None:
    with pytest.raises(SourceFailed, match="a user name"):
        get("https://me:secret@shop.example/", lambda host, port: [PUBLIC], never)


def test_this_machine_is_reached_only_in_tests(server: HTTPServer) -> None:
    server.expect_request("/page").respond_with_data(b"here")
    with Http(local_context(), transport=guarded_transport(loopback=True)) as http:
        assert http.get(server.url_for("/page")).body == b"here"
    with (
        Http(local_context(loopback=False), transport=guarded_transport()) as http,
        pytest.raises(SourceFailed, match="https is needed"),
    ):
        http.get(server.url_for("/page"))
