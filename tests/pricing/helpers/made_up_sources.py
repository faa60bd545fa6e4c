"""Sources that say what a test tells them to, and a clock that a test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from planner.pricing.offer import Offer
from planner.pricing.sources import FetchContext, ParseResult, RawPage, SourceInfo

NOW = datetime(2026, 9, 11, 6, tzinfo=UTC)


class MovableClock:
    """Tells the time it was set to."""

    def __init__(self, now: datetime = NOW) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **span: float) -> None:
        self.now += timedelta(**span)


def saying(name: str, *offers: Offer, before: Callable[[], None] = lambda: None, **info: Any) -> SourceInfo:
    """A source whose every fetch brings these offers, dated when they are fetched.

    before: what happens first when it is asked: raise, hang, count.
    """

    class Said:
        """Says what it was told to."""

        def fetch(self, context: FetchContext) -> Iterator[RawPage]:
            before()
            yield RawPage(
                repr([offer.to_record() for offer in offers]).encode(), ref=f"https://{name}.example"
            )

        def parse(
            self, pages: Iterable[RawPage], *, fetched_at: datetime, observed_at: datetime | None = None
        ) -> ParseResult:
            (page,) = pages
            dated = [
                replace(
                    offer,
                    source=name,
                    observed_at=observed_at or fetched_at,
                    fetched_at=fetched_at,
                    raw_sha256=page.sha256,
                )
                for offer in offers
            ]
            return ParseResult(tuple(dated), rows=len(dated))

    return SourceInfo(name, name, "", True, info.get("make", Said))


def failing(name: str, error: Exception) -> SourceInfo:
    """A source that raises when it is asked."""

    def fail() -> None:
        raise error

    return saying(name, before=fail)


def context(clock: MovableClock, **changed: Any) -> FetchContext:
    """What a refresh in a test asks with."""
    return FetchContext(clock=clock, **changed)
