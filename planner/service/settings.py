"""What a service is started with: where it listens, who may ask, how much at once."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from planner.errors import UsageError

_NAMES_OF_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """Settings of one server process.

    store_url: of prices and of the service's own state; None: the usual store.
    tokens: whether every request needs one; always so off loopback. allowed_hosts: Host headers taken besides
        the loopback's own names; empty off loopback means any, since a proxy in front decides there.
    workers: long jobs worked on at once. concurrent: requests at once, further ones get 503.
    per_minute: requests of one client a minute, pages and API together. body_bytes: most of one request.
    refresh_at: HH:MM in UTC of the daily price refresh; None: somebody else refreshes.
    silent_seconds: a worker that says nothing for so long is dead, and its job is taken by another.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    store_url: str | None = None
    tokens: bool = False
    allowed_hosts: tuple[str, ...] = ()
    workers: int = 1
    concurrent: int = 64
    per_minute: int = 60_000
    body_bytes: int = 1 << 20
    refresh_at: str | None = None
    silent_seconds: float = 30.0

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise UsageError(f"port = {self.port}: must lie between 0 and 65535", "port")
        if not 1 <= self.workers <= 64:
            raise UsageError(f"workers = {self.workers}: must lie between 1 and 64", "workers")
        if not self.on_loopback and not self.tokens:
            raise UsageError(
                f"host = {self.host}: others can reach it, so every request needs a token; "
                "make one with: planner serve token new NAME --role admin, then start with --tokens",
                "host",
            )

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    def takes_host(self, header: str) -> bool:
        """Whether a request that names this host is meant for us, and not for a name rebound to us."""
        name = host_name(header)
        if name in self.allowed_hosts:
            return True
        return is_loopback(name) if self.on_loopback else not self.allowed_hosts


def host_name(header: str) -> str:
    """The name in a Host header, without port and brackets, in lower case."""
    header = header.strip().lower()
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.rpartition(":")[0] if header.count(":") == 1 else header


def is_loopback(host: str) -> bool:
    if host in _NAMES_OF_LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
