"""Ask all sources at once, each in a thread of its own, and never wait longer than the deadline.

A thread cannot be stopped. One that overruns is left behind: it is a daemon, it writes nothing but raw
answers, and what it brings later is not looked at.
"""

from __future__ import annotations

import hashlib
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from .errors import PricingError
from .raw_answers import RawAnswers
from .sources import FetchContext, ParseResult, SourceInfo, SourceUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What one source answered. Exactly one of result, needs and failure is set.

    provider: whose prices it brings.
    needs: what is missing before it can be asked; failure: why it gave nothing.
    payload_sha256: of the answer when it was one page, which finds it among the raw answers; else over all.
    separate: its pages are unrelated (one shop each), so that one that is missing says nothing on the rest.
    """

    source: str
    provider: str
    fetched_at: datetime
    seconds: float
    result: ParseResult | None = None
    needs: str | None = None
    failure: str | None = None
    payload_sha256: str | None = None
    separate: bool = False

    @property
    def is_sellers_own(self) -> bool:
        """Whether the source is the seller of what it speaks of."""
        return self.result is not None and any(
            offer.provider == self.provider for offer in self.result.offers
        )

    @property
    def text(self) -> str:
        """What happened, in a few words, for progress."""
        if self.result is not None:
            return f"answered, {len(self.result.offers)} offers"
        return f"skipped: needs {self.needs}" if self.needs is not None else f"failed: {self.failure}"


def ask_all(
    sources: Iterable[SourceInfo],
    context: FetchContext,
    *,
    raw: RawAnswers | None,
    total_seconds: float,
    monotonic: Callable[[], float] = time.monotonic,
) -> Iterator[Brought]:
    """Yield each source's answer as it comes; at the deadline, a failure for each that is still at it.

    context.deadline_seconds bounds one source, total_seconds all of them together. [s]
    """
    asked = {info.name: info for info in sources}
    answers: queue.SimpleQueue[Brought] = queue.SimpleQueue()
    began = monotonic()
    limit = min(context.deadline_seconds, total_seconds)
    for info in asked.values():
        work = threading.Thread(
            target=_answer, args=(info, replace(context, deadline_seconds=limit), raw, answers), daemon=True
        )
        work.start()
    waiting = dict(asked)
    while waiting:
        left = began + limit - monotonic()
        try:
            brought = answers.get(timeout=max(left, 0))
        except queue.Empty:
            break
        if waiting.pop(brought.source, None) is not None:
            yield replace(brought, seconds=monotonic() - began)
    for name, info in waiting.items():
        yield Brought(
            source=name,
            provider=info.provider,
            fetched_at=context.clock(),
            seconds=monotonic() - began,
            failure=f"no whole answer within {limit:g} s",
        )


def _answer(
    info: SourceInfo, context: FetchContext, raw: RawAnswers | None, answers: queue.SimpleQueue[Brought]
) -> None:
    """The work of one thread: whatever happens, one Brought is put."""
    try:
        brought = _ask(info, context, raw)
    except SourceUnavailable as error:
        brought = _without(info, context, needs=error.needs)
    except PricingError as error:
        brought = _without(info, context, failure=" ".join(str(error).split()))
    except OSError as error:
        brought = _without(info, context, failure=f"{type(error).__name__}: {error.strerror or 'no reason'}")
    except Exception as error:  # noqa: BLE001 - a fault in one source must not stop the others (cases.md C40)
        # The kind only: the text of an unforeseen error may quote a request with its key.
        brought = _without(
            info, context, failure=f"{type(error).__name__} inside the source; a fault of ours"
        )
    answers.put(brought)


def _ask(info: SourceInfo, context: FetchContext, raw: RawAnswers | None) -> Brought:
    instance = info.make()
    pages = list(instance.fetch(context))
    fetched_at = context.clock()
    digest = hashlib.sha256()
    for page in pages:
        digest.update(page.sha256.encode())
        if raw is not None:
            raw.keep(page)
    return Brought(
        source=info.name,
        provider=info.provider,
        fetched_at=fetched_at,
        seconds=0.0,
        result=instance.parse(pages, fetched_at=fetched_at),
        payload_sha256=pages[0].sha256 if len(pages) == 1 else digest.hexdigest(),
        separate=bool(getattr(instance, "separate_pages", False)),
    )


def _without(
    info: SourceInfo, context: FetchContext, *, needs: str | None = None, failure: str | None = None
) -> Brought:
    return Brought(
        source=info.name,
        provider=info.provider,
        fetched_at=context.clock(),
        seconds=0.0,
        needs=needs,
        failure=failure,
    )
