"""Where prices come from: one class per source, found by name.

A source is a class with two halves and announces itself:

    @source("acme-cloud", provider="acme", needs="an API key in ACME_KEY")
    class AcmeCloud:
        def fetch(self, context: FetchContext) -> Iterator[RawPage]: ...
        def parse(self, pages, *, fetched_at, observed_at=None) -> ParseResult: ...

`fetch` talks to the network with the seller's own client, yields each answer as it came (RawPage: bytes,
where from, what was asked) and judges nothing. It raises SourceUnavailable(needs) when credentials or a
package are missing, SourceFailed when the seller does not answer, BadAnswer when pages repeat.

`parse` is pure: no network, no clock, no environment; so every source is tested from recorded files. It is
given all pages of one fetch, in order, because one price may need several (a mean over time, a sum of
parts). It returns offers with source, source_ref, raw_sha256 and fetched_at set, and counts every row that
became none: skipped (not asked for, a type that is not known) or bad (did not read; over 5 % raises
TooManyBadRows). Amounts are Decimal from text. Where exactly one row is meant and several are left it raises
AmbiguousRows with their ids.
    fetched_at: when the answers were read (UTC).
    observed_at: when the seller said so, where that differs, as for a recorded answer; None means the date
        in the answer when it is a dated document, else fetched_at.

Both halves are called on a fresh instance made without arguments; arguments with defaults serve tests.
The class is made lazily: importing this package imports no cloud client, nor the modules of the sources.

A module in this folder is known by one line of `_MODULES`. Packages outside join through the entry-point
group "training_planner.price_sources", each entry naming a module to import, through the same door. One that
does not import is listed as unavailable; the others go on.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Protocol, TypeVar

from .errors import (
    AmbiguousRows,
    BadAnswer,
    DuplicateSource,
    SourceError,
    SourceFailed,
    SourceUnavailable,
    TooManyBadRows,
    UnknownSource,
)
from .page import Clock, Deadline, ParseResult, RawPage, Tally, utc_now

ENTRY_POINTS = "training_planner.price_sources"
# Order is the order of reports.
_MODULES = (
    "aws", "gcp", "azure", "skypilot_catalog", "gpuhunt_catalog", "retail_pages", "retail_feeds",
    "electricity", "exchange_rates",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchContext:
    """What to ask for, and how long to wait.

    regions: vendor codes, of several vendors at once if need be; () means the source's own default, which it
        names in its docstring. A source takes those of its vendor's form: `regions_of`.
    instance_types: the types wanted, likewise: `types_of`; None means every type with a GPU that we know.
    operating_systems: "linux", "windows".
    days: length of the window for histories such as spot prices. [day]
    clock: gives the present instant in UTC; sleep: waits, in seconds, between tries; monotonic: a clock
        that nobody sets, for deadlines. [s]
    connect_seconds, read_seconds: time-outs of one call; deadline_seconds: of the whole fetch. [s]
    directory: where large answers are kept while they are parsed; needed by sources that say so.
    base_urls: other addresses by source name, for a mirror or a test server.
    loopback: whether plain http to this machine is allowed; for tests.
    settings: what the user configured for one source, by its name.
    """

    regions: tuple[str, ...] = ()
    instance_types: frozenset[str] | None = None
    operating_systems: tuple[str, ...] = ("linux",)
    days: int = 30
    clock: Clock = utc_now
    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    connect_seconds: float = 5.0
    read_seconds: float = 30.0
    deadline_seconds: float = 120.0
    directory: Path | None = None
    base_urls: dict[str, str] = field(default_factory=dict)
    loopback: bool = False
    settings: dict[str, dict[str, str]] = field(default_factory=dict)

    def regions_of(self, form: str, default: tuple[str, ...]) -> tuple[str, ...]:
        """The wanted regions that have the vendor's form (a regular expression), else the default.

        Raises SourceUnavailable when regions are wanted and none is this vendor's: then there is nothing to
        ask, and an empty answer would look like a list that shrank.
        """
        own = tuple(region for region in self.regions if re.fullmatch(form, region))
        if self.regions and not own:
            raise SourceUnavailable(f"a region of this seller; asked for: {', '.join(self.regions)}")
        return own or default

    def types_of(self, form: str, default: Iterable[str]) -> tuple[str, ...]:
        """The wanted instance types that have the vendor's form, else the default; sorted.

        Raises SourceUnavailable when types are wanted and none is this vendor's.
        """
        if self.instance_types is None:
            return tuple(sorted(default))
        own = tuple(sorted(name for name in self.instance_types if re.fullmatch(form, name)))
        if not own:
            raise SourceUnavailable("an instance type of this seller among those asked for")
        return own

    def deadline(self) -> Deadline:
        """Starts the clock of one fetch; `check` it between calls."""
        return Deadline(self.deadline_seconds, self.monotonic)


class Source(Protocol):
    """The two halves."""

    def fetch(self, context: FetchContext) -> Iterator[RawPage]:
        """The seller's answers. Raises SourceUnavailable, SourceFailed, BadAnswer."""
        ...

    def parse(
        self, pages: Iterable[RawPage], *, fetched_at: datetime, observed_at: datetime | None = None
    ) -> ParseResult:
        """The offers in them. Raises BadAnswer and its kin."""
        ...


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """A registered source.

    needs: what must be there before it can fetch; "" when nothing.
    default: whether a plain refresh asks it; the others (large downloads, dated quotes) by name only.
    make: gives a fresh instance.
    """

    name: str
    provider: str
    needs: str
    default: bool
    make: Callable[[], Source]

    @property
    def summary(self) -> str:
        """First line of the class's docstring."""
        return (getattr(self.make, "__doc__", None) or "").strip().partition("\n")[0]


_registry: dict[str, SourceInfo] = {}
_loaded: list[bool] = []
SourceClass = TypeVar("SourceClass", bound=Callable[[], Source])


def source(
    name: str, *, provider: str, needs: str = "", default: bool = True
) -> Callable[[SourceClass], SourceClass]:
    """Register the decorated class. Raises DuplicateSource when another class has the name."""

    def register(cls: SourceClass) -> SourceClass:
        known = _registry.get(name)
        # The same class again is a module imported twice, not a second source.
        if known is not None and _full_name(known.make) != _full_name(cls):
            raise DuplicateSource(
                f'two price sources are named "{name}": {_full_name(known.make)} and {_full_name(cls)}. '
                "Rename or remove one."
            )
        _registry[name] = SourceInfo(name, provider, needs, default, cls)
        return cls

    return register


def sources() -> tuple[SourceInfo, ...]:
    """Every source, those of this package first."""
    _load()
    return tuple(_registry.values())


def find(name: str) -> SourceInfo:
    """The source of that name. Raises UnknownSource with the nearest names."""
    _load()
    if name in _registry:
        return _registry[name]
    close = get_close_matches(name, _registry, n=1)
    hint = f' Did you mean "{close[0]}"?' if close else ""
    raise UnknownSource(f'no price source "{name}".{hint} Sources: {", ".join(_registry)}')


def _load() -> None:
    if _loaded:
        return
    from importlib.metadata import entry_points

    for module in _MODULES:
        import_module(f".{module}", __package__)
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            entry.load()
        except (ImportError, AttributeError) as error:
            source(entry.name, provider=entry.name, needs=str(error))(_Broken(entry.name, str(error)))
    _loaded.append(True)


class _Broken:
    """A joined package that does not import; it is listed, and cannot be asked."""

    def __init__(self, name: str, why: str) -> None:
        self._needs = f'the package of source "{name}", which does not import ({why})'

    def __call__(self) -> Source:
        return self

    def fetch(self, context: FetchContext) -> Iterator[RawPage]:
        raise SourceUnavailable(self._needs)

    def parse(
        self, pages: Iterable[RawPage], *, fetched_at: datetime, observed_at: datetime | None = None
    ) -> ParseResult:
        raise SourceUnavailable(self._needs)


def _full_name(make: Callable[[], Source]) -> str:
    kind = make if isinstance(make, type) else type(make)
    return f"{kind.__module__}.{kind.__qualname__}"


__all__ = [
    "AmbiguousRows",
    "BadAnswer",
    "Deadline",
    "DuplicateSource",
    "FetchContext",
    "ParseResult",
    "RawPage",
    "Source",
    "SourceError",
    "SourceFailed",
    "SourceInfo",
    "SourceUnavailable",
    "Tally",
    "TooManyBadRows",
    "UnknownSource",
    "find",
    "source",
    "sources",
]
