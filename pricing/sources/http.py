"""Asking a seller over https: time-outs, a size limit, and patience as the seller asks for it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from . import FetchContext
from .errors import BadAnswer, SourceFailed, SourceUnavailable
from .page import LARGEST_PAGE_BYTES

if TYPE_CHECKING:
    import httpx2
    from tenacity import RetryCallState

PACKAGE = "httpx2 and tenacity: pip install 'training-planner[prices]'"
TRIES = 5
# Answers that the same question may not get a minute later.
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
_FIRST_WAIT_SECONDS = 1.0
_LONGEST_WAIT_SECONDS = 30.0
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_CHUNK_BYTES = 2**16
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came. ref: the address without its query, which may hold a key."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    ref: str


class _Transient(Exception):
    """Worth another try; after_seconds: how long the seller asks to wait."""

    def __init__(self, why: str, after_seconds: float | None = None) -> None:
        super().__init__(why)
        self.after_seconds = after_seconds


class Http:
    """One source's connection to its seller. Close it, or use it in a `with`.

    Redirects are not followed: a price API has none, and a page that has them is for its source to judge.
    Every try and wait counts against the deadline of the fetch, a body that trickles too.
    """

    def __init__(self, context: FetchContext, **client: Any) -> None:
        try:
            import httpx2
            import tenacity  # noqa: F401
        except ImportError:
            raise SourceUnavailable(PACKAGE) from None
        self._context = context
        self._deadline = context.deadline()
        self._client = httpx2.Client(
            timeout=httpx2.Timeout(context.read_seconds, connect=context.connect_seconds),
            follow_redirects=False,
            headers={"User-Agent": "training-planner"},
            **client,
        )

    def __enter__(self) -> Http:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def get(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        limit_bytes: int = LARGEST_PAGE_BYTES,
    ) -> Answer:
        """The answer to GET, whole. Raises SourceFailed, BadAnswer when it is larger than the limit."""
        return self._patiently(url, lambda: self._get(url, params, headers, limit_bytes))

    def download(self, url: str, path: Path, *, limit_bytes: int) -> None:
        """Write the answer to `path`. Raises as `get` does; then `path` may hold a part of it."""
        self._patiently(url, lambda: self._download(url, path, limit_bytes))

    # --- one try

    def _get(
        self, url: str, params: Mapping[str, str] | None, headers: Mapping[str, str] | None, limit: int
    ) -> Answer:
        body = bytearray()
        with self._stream(url, params, headers) as answer:
            for chunk in self._chunks(answer, url, limit):
                body += chunk
            return Answer(answer.status_code, dict(answer.headers), bytes(body), without_query(url))

    def _download(self, url: str, path: Path, limit: int) -> None:
        with self._stream(url, None, None) as answer, path.open("wb") as file:
            for chunk in self._chunks(answer, url, limit):
                file.write(chunk)

    @contextmanager
    def _stream(
        self, url: str, params: Mapping[str, str] | None, headers: Mapping[str, str] | None
    ) -> Iterator[httpx2.Response]:
        import httpx2

        self._check_address(url)
        try:
            with self._client.stream("GET", url, params=params, headers=headers) as answer:
                self._check_status(answer, url)
                yield answer
        except httpx2.TransportError as error:
            # The kind only: the text may repeat the whole address.
            raise _Transient(type(error).__name__) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise SourceFailed(f"{without_query(url)}: {type(error).__name__}") from None

    def _chunks(self, answer: httpx2.Response, url: str, limit: int) -> Iterator[bytes]:
        size = 0
        for chunk in answer.iter_bytes(_CHUNK_BYTES):
            size += len(chunk)
            if size > limit:
                raise BadAnswer(f"{without_query(url)}: over {limit:,} bytes; stopped")
            self._deadline.check(without_query(url))
            yield chunk

    def _check_address(self, url: str) -> None:
        scheme, host, _ = _scheme_host_port(url)
        if scheme == "https" and host:
            return
        if self._context.loopback and scheme == "http" and host in _LOOPBACK:
            return
        raise SourceFailed(f"{without_query(url)}: https is needed")

    def _check_status(self, answer: httpx2.Response, url: str) -> None:
        status = answer.status_code
        if status in _TRANSIENT:
            wait = retry_after_seconds(answer.headers.get("Retry-After"), self._context.clock())
            raise _Transient(f"status {status}", wait)
        if not 200 <= status < 300:
            raise SourceFailed(f"{without_query(url)}: status {status}")

    # --- several tries

    def _patiently(self, url: str, once: Callable[[], Result]) -> Result:
        import tenacity

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_Transient),
            stop=self._give_up,
            wait=_wait_seconds,
            sleep=self._context.sleep,
            reraise=True,
        )
        try:
            return retrying(once)
        except _Transient as error:
            raise SourceFailed(f"{without_query(url)}: {error}, at each try within the deadline") from None

    def _give_up(self, state: RetryCallState) -> bool:
        """After the last try, or when the wait would end after the deadline."""
        return state.attempt_number >= TRIES or state.upcoming_sleep > self._deadline.left


def _wait_seconds(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, _Transient) and error.after_seconds is not None:
        return error.after_seconds
    # Full jitter, so that many planners do not come back in step.
    longest = min(_FIRST_WAIT_SECONDS * 2 ** (state.attempt_number - 1), _LONGEST_WAIT_SECONDS)
    return random.uniform(0, longest)


def retry_after_seconds(text: str | None, now: datetime) -> float | None:
    """What a Retry-After header asks for, in seconds or as a date; None when it asks for nothing readable.

    >>> retry_after_seconds("7", datetime(2026, 9, 1, tzinfo=UTC))
    7.0
    """
    if not text:
        return None
    if text.strip().isdecimal():
        return float(text.strip()[:9])
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max((when - now).total_seconds(), 0.0)


def without_query(url: str) -> str:
    """The address without query, fragment and user name: fit for messages and for the store.

    >>> without_query("https://prices.example/api?key=secret")
    'https://prices.example/api'
    """
    scheme, host, port = _scheme_host_port(url)
    if not host:
        return "an address that does not read"
    return f"{scheme}://{host}{f':{port}' if port else ''}{urlsplit(url).path}"


def same_server(one: str, other: str) -> bool:
    """Whether both addresses have the same scheme, host and port."""
    return _scheme_host_port(one) == _scheme_host_port(other)


def _scheme_host_port(url: str) -> tuple[str, str, int | None]:
    """The parts of an address; the host is empty when it does not read."""
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname or "", parts.port
    except ValueError:
        return "", "", None
