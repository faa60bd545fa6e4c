"""What a fetch brings and what a parse gives."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

from ..offer import Offer
from .errors import BadAnswer, SourceFailed, TooManyBadRows

# A page is held whole while it is parsed; what is larger comes as a file and is read as a stream.
LARGEST_PAGE_BYTES = 64 * 2**20
_CHUNK_BYTES = 2**20


class RawPage:
    """One answer as it came, and what was asked.

    ref: where it is from, a URL or the call, without credentials; becomes Offer.source_ref.
    request: what parsing needs and the answer does not repeat, say {"region": "eu-west-1"}.
    body: the bytes, when the answer fits into memory (≤ 64 MiB); else `path`, a file that the caller of
        fetch may delete once it is parsed.
    """

    def __init__(
        self,
        body: bytes | None = None,
        *,
        ref: str,
        request: Mapping[str, str] | None = None,
        path: Path | None = None,
    ) -> None:
        if (body is None) == (path is None):
            raise ValueError("a page is either a body or a file")
        if body is not None and len(body) > LARGEST_PAGE_BYTES:
            raise BadAnswer(f"{ref}: {len(body):,} bytes; a page of at most {LARGEST_PAGE_BYTES:,} is meant")
        self._body = body
        self.path = path
        self.ref = ref
        self.request: Mapping[str, str] = MappingProxyType(dict(request or {}))

    @property
    def body(self) -> bytes:
        """The bytes of an answer that fits into memory. Raises BadAnswer for one that does not."""
        if self._body is not None:
            return self._body
        with self.open() as file:
            body = file.read(LARGEST_PAGE_BYTES + 1)
        if len(body) > LARGEST_PAGE_BYTES:
            raise BadAnswer(f"{self.ref}: over {LARGEST_PAGE_BYTES:,} bytes; read it as a stream")
        return body

    def open(self) -> BinaryIO:
        """The bytes as a stream, from the start."""
        if self._body is not None:
            return BytesIO(self._body)
        assert self.path is not None
        return self.path.open("rb")

    @cached_property
    def sha256(self) -> str:
        """Address of the raw answer: what Offer.raw_sha256 holds."""
        digest = hashlib.sha256()
        with self.open() as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class ParseResult:
    """The offers of an answer, and an account of every row that became none.

    rows: rows looked at.
    skipped: rows left out on purpose (another tenancy, a type we know nothing about), by reason.
    bad: rows that should have read and did not, by reason.
    warnings: what is true and surprising, one line each.
    """

    offers: tuple[Offer, ...]
    rows: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    bad: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class Tally:
    """Counts rows while a source parses.

    limit: share of bad rows from which on the whole answer is refused. A seller adds odd rows every week;
        one in twenty is more than that and means that the format has changed.
    """

    def __init__(self, source: str, limit: float = 0.05) -> None:
        self._source = source
        self._limit = limit
        self.rows = 0
        self._passed = 0
        self.skipped: Counter[str] = Counter()
        self.bad: Counter[str] = Counter()
        self._first_bad: str | None = None
        self._warnings: dict[str, None] = {}

    def row(self, count: int = 1) -> None:
        """Rows were looked at."""
        self.rows += count

    def skip(self, reason: str, count: int = 1) -> None:
        """Rows were left out on purpose."""
        self.skipped[reason] += count

    def pass_over(self, reason: str, count: int) -> None:
        """Rows were not even read, by a mark on their face; they say nothing on how well the rest reads."""
        if count:
            self.rows += count
            self._passed += count
            self.skipped[reason] += count

    def spoilt(self, reason: str, example: str) -> None:
        """A row did not read. example: enough of it to find it again."""
        self.bad[reason] += 1
        self._first_bad = self._first_bad or f"{reason}: {example[:160]}"

    def warn(self, message: str) -> None:
        """Something true and surprising; the same message counts once."""
        self._warnings[message] = None

    def result(self, offers: list[Offer]) -> ParseResult:
        """All counts beside the offers. Raises TooManyBadRows."""
        bad = self.bad.total()
        looked_at = self.rows - self._passed
        if bad > looked_at * self._limit:
            raise TooManyBadRows(
                f"{self._source}: {bad} of {looked_at} rows do not read (first: {self._first_bad}). "
                "Nothing of this answer is used; the format may have changed."
            )
        return ParseResult(
            tuple(offers), self.rows, dict(self.skipped), dict(self.bad), tuple(self._warnings)
        )


class Deadline:
    """The time one fetch may take, all its calls and waits together."""

    def __init__(self, seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._ends = monotonic() + seconds
        self._seconds = seconds

    @property
    def left(self) -> float:
        """Seconds until it ends; negative once it has."""
        return self._ends - self._monotonic()

    def check(self, what: str) -> None:
        """Raises SourceFailed once the time is over. what: the call that was under way."""
        if self.left < 0:
            raise SourceFailed(f"{what}: not whole within {self._seconds:g} s")


def utc_now() -> datetime:
    """The clock used unless a test brings its own."""
    return datetime.now(UTC)


Clock = Callable[[], datetime]
