"""Fetch from every source, judge, show what moved, store: all of it or, on a crash, nothing of it.

    report = refresh(store, sources(), context)

Sources are asked side by side. One that fails keeps its stored prices, which grow older in sight; the others
go on. What came is judged (refresh_judge.py) and written in one transaction, together with a log of what
each source brought, so a process killed at any moment leaves the store as it was before or after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from . import checks
from .fetches import Fetch, Status
from .offer import Offer
from .refresh_judge import REPEAT_AFTER, Judged, Move, Yardstick, bands_of, judge
from .refresh_run import Brought, ask_all
from .sources import FetchContext, SourceInfo
from .sources import sources as registered
from .store import Known, PriceStore

# A fetch with less than this share of the last one's offers is set aside: a list that shrinks by a fifth
# overnight is a broken answer far more often than a seller who gave up a fifth of his range.
_SHRUNK_BELOW = 0.8
# Two short answers must lie this far apart to count as two: one fault of a seller lasts minutes.
_CONFIRM_AFTER = timedelta(hours=1)
# More broken offers than one in twenty mean that the format has changed.
_BROKEN_ABOVE = 0.05
TOTAL_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport:
    """What became of one source.

    status: "ok", "shrunk", "failed" or "unavailable". message: why, and for an unavailable one what it needs.
    offers: that came; added: rows stored; unchanged: said what is stored already. seconds: until it answered.
    kept, kept_until: for a source that brought nothing, how many prices of its last good fetch, else of its
        seller, stay in use, and when the newest of them was seen.
    """

    source: str
    status: Status
    seconds: float
    message: str | None = None
    offers: int = 0
    added: int = 0
    unchanged: int = 0
    moves: tuple[Move, ...] = ()
    warnings: tuple[str, ...] = ()
    skipped: int = 0
    bad: int = 0
    kept: int = 0
    kept_until: datetime | None = None

    def line(self, now: datetime) -> str:
        """The report in one line."""
        if self.status == "ok":
            counts = [
                _many(self.offers, "offer"),
                f"{self.count('new')} new",
                f"{self.count('changed')} changed",
            ]
            counts += [
                f"{n} {what}"
                for what in ("waiting", "quarantined", "conflict", "rejected", "gone")
                if (n := self.count(what))
            ]
            counts += [_many(self.bad, "unreadable row")] if self.bad else []
            return ", ".join([*counts, f"{self.unchanged} as before"])
        if self.status == "unavailable":
            return f"skipped: needs {self.message}"
        kept = "no price of it is stored yet"
        if self.kept_until is not None:
            age = max(now - self.kept_until, timedelta(0))
            kept = f"kept {_many(self.kept, 'price')}, the newest of {self.kept_until:%Y-%m-%d}, "
            kept += f"{_many(age.days, 'day')} old"
        return f"{self.status}: {self.message}; {kept}"

    def count(self, what: str) -> int:
        """How many moves are of this kind."""
        return sum(move.what == what for move in self.moves)


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """What a refresh did. usable: whether the store holds any price to plan on."""

    sources: tuple[SourceReport, ...]
    began: datetime
    ended: datetime
    added: int
    usable: bool

    @property
    def exit_code(self) -> int:
        """5: nothing to plan on. 6: some failed, or none could be asked. 0: all answered or were skipped.

        A source skipped for want of credentials is no failure; a refresh that asked nobody is no success.
        """
        if not self.usable:
            return 5
        failed = any(each.status in ("failed", "shrunk") for each in self.sources)
        return 6 if failed or self.nobody_asked else 0

    @property
    def nobody_asked(self) -> bool:
        """Whether every source was skipped."""
        return bool(self.sources) and all(each.status == "unavailable" for each in self.sources)

    @property
    def moves(self) -> tuple[Move, ...]:
        """Everything that moved, source by source."""
        return tuple(move for each in self.sources for move in each.moves)


@dataclass(frozen=True, slots=True)
class _Part:
    """One source's part: its report, the entry of the log, the rows to store, what is known after them."""

    report: SourceReport
    fetch: Fetch
    rows: tuple[Offer, ...] = ()
    known: Mapping[str, Known] = field(default_factory=dict)


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def refresh(
    store: PriceStore,
    sources: Iterable[SourceInfo],
    context: FetchContext,
    *,
    total_seconds: float = TOTAL_SECONDS,
    progress: Callable[[str], None] = lambda line: None,
) -> RefreshReport:
    """Ask the sources and store what they say.

    context.clock tells the time, context.deadline_seconds bounds each source. progress is told a line per
    source as it answers. Raises RefreshRunning when another process refreshes this store, StoreUnusable when
    nothing can be written; then the store is as it was.
    """
    with store.only_refresher():
        began = context.clock()
        scope = _scope(context)
        asked = tuple(sources)
        own = {(info.name, info.provider) for info in (*asked, *registered())}
        answers = []
        for brought in ask_all(asked, context, raw=store.raw_answers, total_seconds=total_seconds):
            progress(f"{brought.source}: {brought.text} after {brought.seconds:.1f} s")
            answers.append(brought)
        parts: list[_Part] = []
        # Sellers before third parties, then by name, not by arrival: where two sources speak of one price,
        # the outcome is the same each time. Later ones are judged by what earlier ones said.
        known: dict[str, Known] = {}
        for brought in sorted(answers, key=lambda each: (not each.is_sellers_own, each.source)):
            part = _part(store, brought, scope, known, own)
            known |= part.known
            parts.append(part)
        added = store.publish([row for part in parts for row in part.rows], [part.fetch for part in parts])
        usable = any(
            offer.amount is not None for offer in store.latest(kind=("cloud_instance", "gpu_retail"))
        )
    reports = sorted((part.report for part in parts), key=lambda each: each.source)
    return RefreshReport(tuple(reports), began, context.clock(), added, usable)


def _part(
    store: PriceStore, brought: Brought, scope: str, known: Mapping[str, Known], own: set[tuple[str, str]]
) -> _Part:
    earlier = [each for each in store.fetches(brought.source) if each.scope == scope]
    good = next((each for each in reversed(earlier) if each.status == "ok"), None)
    if brought.result is None:
        status: Status = "failed" if brought.needs is None else "unavailable"
        return _nothing(store, brought, scope, status, brought.failure or brought.needs or "", good)
    offers, broken = _sound(brought.result.offers)
    if len(broken) > len(brought.result.offers) * _BROKEN_ABOVE:
        many = f"{len(broken)} of {len(brought.result.offers)} offers break a rule: {broken[0]}"
        return _nothing(store, brought, scope, "failed", many, good)
    families = _families(offers)
    if good is not None and not brought.separate:
        loss = _loss(good, len(offers), families)
        if loss and not _is_confirmed(earlier[-1], len(offers), families, brought.fetched_at):
            return _nothing(store, brought, scope, "shrunk", loss, good, len(offers), families)
    judged = judge_against(store, offers, Yardstick(now=brought.fetched_at, own=own), known)
    moves = (*judged.moves, *_gone(store, offers, good))
    report = SourceReport(
        source=brought.source,
        status="ok",
        seconds=brought.seconds,
        offers=len(offers),
        added=len(judged.rows),
        unchanged=judged.unchanged,
        moves=moves,
        warnings=(*brought.result.warnings, *broken, *_dear(offers)),
        skipped=sum(brought.result.skipped.values()),
        bad=sum(brought.result.bad.values()) + len(broken),
    )
    return _Part(report, _log(brought, scope, report, families, judged), judged.rows, judged.known)


def judge_against(
    store: PriceStore, offers: tuple[Offer, ...], by: Yardstick, newer: Mapping[str, Known] | None = None
) -> Judged:
    """Judge offers by what the store knows of their prices and, for new ones, of comparable things.

    newer: what is known already and not stored yet.
    """
    ids = {offer.price_id for offer in offers}
    known = store.known(ids) | {key: value for key, value in (newer or {}).items() if key in ids}
    unseen = {offer.kind for offer in offers if offer.price_id not in known}
    comparable = store.latest(kind=unseen, contract=("on_demand", "purchase")) if unseen else ()
    return judge(offers, known, replace(by, bands=bands_of(comparable)))


def _nothing(
    store: PriceStore,
    brought: Brought,
    scope: str,
    status: Status,
    message: str,
    good: Fetch | None,
    offers: int = 0,
    families: tuple[str, ...] = (),
) -> _Part:
    kept, until = (good.offers, good.fetched_at) if good else _kept(store, brought.provider)
    report = SourceReport(
        source=brought.source,
        status=status,
        seconds=brought.seconds,
        message=message,
        offers=offers,
        kept=kept,
        kept_until=until,
    )
    return _Part(report, _log(brought, scope, report, families, Judged()))


def _kept(store: PriceStore, provider: str) -> tuple[int, datetime | None]:
    """How many prices of the seller are in use without a fetch of ours, and when the newest was seen."""
    offers = store.latest(provider=provider)
    return len(offers), max((offer.observed_at for offer in offers), default=None)


def _log(
    brought: Brought, scope: str, report: SourceReport, families: tuple[str, ...], judged: Judged
) -> Fetch:
    return Fetch(
        source=brought.source,
        scope=scope,
        status=report.status,
        fetched_at=brought.fetched_at,
        message=report.message,
        payload_sha256=brought.payload_sha256,
        families=families,
        offers=report.offers,
        added=report.added,
        waiting=judged.count("waiting"),
        quarantined=judged.count("quarantined"),
    )


def _sound(offers: tuple[Offer, ...]) -> tuple[tuple[Offer, ...], list[str]]:
    """The offers that pass the checks, and a line for each of the others."""
    found = {id(each.offer): each.message for each in checks.errors(offers) if each.rule != "jump"}
    return tuple(offer for offer in offers if id(offer) not in found), list(found.values())


def _dear(offers: tuple[Offer, ...]) -> tuple[str, ...]:
    return tuple(each.message for each in checks.verify(offers) if each.severity == "warning")


# --- the shrink guard


def _families(offers: tuple[Offer, ...]) -> tuple[str, ...]:
    return tuple(sorted({offer.gpu_model or offer.item for offer in offers}))


def _loss(good: Fetch, count: int, families: tuple[str, ...]) -> str | None:
    """What the last good fetch had and this one lacks; None when that is no reason to doubt it."""
    missing = sorted(set(good.families) - set(families))
    if count >= good.offers * _SHRUNK_BELOW and not missing:
        return None
    lacks = f", without {', '.join(missing[:3])}{' and more' if len(missing) > 3 else ''}" if missing else ""
    before = f"{good.offers} came on {good.fetched_at:%Y-%m-%d}"
    return f"{count} offers where {before}{lacks}; set aside until seen again"


def _is_confirmed(last: Fetch, count: int, families: tuple[str, ...], now: datetime) -> bool:
    """Whether an equally short answer came before, long enough ago."""
    as_short = last.offers * _SHRUNK_BELOW <= count and set(last.families) <= set(families)
    return last.status == "shrunk" and as_short and now - last.fetched_at >= _CONFIRM_AFTER


def _gone(store: PriceStore, offers: tuple[Offer, ...], good: Fetch | None) -> tuple[Move, ...]:
    """Prices that the last good fetch had and this one lacks. Their rows stay and grow old."""
    if good is None or not offers:
        return ()
    now_there = {offer.price_id for offer in offers}
    before = store.fetched_since(offers[0].source, good.fetched_at - REPEAT_AFTER)
    return tuple(Move("gone", offer) for price_id, offer in before.items() if price_id not in now_there)


def _scope(context: FetchContext) -> str:
    """What is asked for, as text: only fetches that asked for the same are compared."""
    types = "all" if context.instance_types is None else ",".join(sorted(context.instance_types))
    regions = ",".join(context.regions) or "default"
    return f"regions={regions} types={types} os={','.join(context.operating_systems)}"
