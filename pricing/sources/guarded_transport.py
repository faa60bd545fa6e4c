"""Fetching an address that a user typed or a page named, without being led into the machine's own network.

The name is resolved once, every address it has is judged, and the connection goes to an address that was
judged: a second look-up could answer differently. Each redirect goes through the same door.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .errors import SourceFailed
from .http import PACKAGE, without_query

if TYPE_CHECKING:
    import httpx2

LONGEST_CHAIN = 3
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Sequence[str]]
# Carrier-grade NAT is not "private" to Python's ipaddress, and still nobody's public shop.
_SHARED = ipaddress.ip_network("100.64.0.0/10")


def resolve(host: str, port: int) -> Sequence[str]:
    """Every address of the name. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_public(address: str) -> bool:
    """Whether an address is on the public internet: not loopback, private, link-local (169.254.169.254 gives
    out cloud credentials), shared, multicast or reserved, nor one of these dressed up as IPv6.

    >>> is_public("93.184.216.34"), is_public("169.254.169.254"), is_public("::ffff:10.0.0.1")
    (True, False, False)
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    inner = _inner(found)
    return all(_is_public(each) for each in (found, *inner))


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address) and address in _SHARED:
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _inner(address: Address) -> tuple[Address, ...]:
    """IPv4 addresses carried inside an IPv6 one: mapped, 6to4, Teredo, NAT64."""
    if isinstance(address, ipaddress.IPv4Address):
        return ()
    found: list[Address] = [each for each in (address.ipv4_mapped, address.sixtofour) if each is not None]
    if address.teredo is not None:
        found += address.teredo
    if address in ipaddress.ip_network("64:ff9b::/96"):
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return tuple(found)


def guarded_transport(
    *, loopback: bool = False, resolve: Resolve = resolve, inner: httpx2.BaseTransport | None = None
) -> httpx2.BaseTransport:
    """A transport for sources.http.Http that follows at most three redirects, all of them judged.

    loopback: whether plain http to this machine is allowed; for tests. inner: makes the connections.
    Its requests raise SourceFailed for an address that is refused.
    """
    try:
        import httpx2
    except ImportError:
        from .errors import SourceUnavailable

        raise SourceUnavailable(PACKAGE) from None

    class Guarded(httpx2.BaseTransport):
        def __init__(self) -> None:
            self._inner = inner or httpx2.HTTPTransport(retries=0)

        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            for _ in range(LONGEST_CHAIN + 1):
                answer = self._inner.handle_request(_pinned(request, loopback, resolve))
                place = answer.headers.get("Location")
                if answer.status_code not in _REDIRECTS or place is None:
                    return answer
                answer.close()
                request = httpx2.Request(
                    "GET", request.url.join(place), headers=_kept(request), extensions=request.extensions
                )
            raise SourceFailed(f"{without_query(str(request.url))}: more than {LONGEST_CHAIN} redirects")

        def close(self) -> None:
            self._inner.close()

    return Guarded()


def _pinned(request: httpx2.Request, loopback: bool, resolve: Resolve) -> httpx2.Request:
    """The same request, to an address that was judged. Raises SourceFailed."""
    import httpx2

    url = request.url
    shown = without_query(str(url))
    own = loopback and url.host in ("127.0.0.1", "localhost", "::1")
    if own:
        return request
    if url.scheme != "https" or not url.host:
        raise SourceFailed(f"{shown}: https is needed")
    if url.userinfo:
        raise SourceFailed(f"{shown}: an address with a user name in it is not fetched")
    try:
        addresses = resolve(url.host, url.port or 443)
    except (OSError, UnicodeError):
        raise httpx2.ConnectError("the name does not resolve", request=request) from None
    if not addresses or not all(is_public(address) for address in addresses):
        raise SourceFailed(f"{shown}: leads to an address that is not on the public internet; not fetched")
    extensions: dict[str, Any] = {**request.extensions, "sni_hostname": url.host}
    headers = {**request.headers, "host": url.netloc.decode("ascii")}
    return httpx2.Request(
        request.method, url.copy_with(host=addresses[0]), headers=headers, extensions=extensions
    )


def _kept(request: httpx2.Request) -> dict[str, str]:
    """Headers that may go to another host: none that could hold a secret or name the first host."""
    return {name: request.headers[name] for name in ("User-Agent", "Accept") if name in request.headers}
