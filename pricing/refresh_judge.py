"""What is thought of each fetched price before it is stored: taken, held for a second look, or set aside.

Everything is stored; what is not trusted is stored as "suspect", which is never planned on. So a price that
was wrongly held back can still be found, and a second reading can be compared with the first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal

from .checks import is_jump
from .offer import Offer
from .store import Known

# A change above this waits until a second fetch says the same. The steepest real one on record, the cut of
# June 2025 at AWS, was -44 %: such steps are rare enough to be looked at twice and must get through.
SECOND_LOOK_ABOVE = Decimal("0.25")
# A price read again unchanged is stored again once a day, so that its age is true. Less than 24 h, because
# a daily timer does not start at the same second.
REPEAT_AFTER = timedelta(hours=20)
# Clocks differ by minutes, time zones by hours; a price dated further ahead has a wrong date.
_AHEAD = timedelta(days=1)
_TENFOLD = Decimal(10)
# For so long a seller's own word holds over what others say of his price.
_OWN_WORD_HOLDS = timedelta(days=7)
# What two readings of one unchanged price may differ in.
_OF_THE_READING = ("observed_at", "fetched_at", "checked_at", "source_ref", "raw_sha256")

Band = tuple[Decimal, Decimal]


@dataclass(frozen=True, slots=True)
class Move:
    """One price and how it moved. what: "new", "changed", "waiting", "quarantined", "conflict", "rejected" or
    "gone"."""

    what: str
    offer: Offer
    before: Offer | None = None
    reason: str | None = None

    @property
    def percent(self) -> Decimal | None:
        """How far the amount moved; None when one of the two is not known. [%]"""
        if self.before is None or not self.before.amount or self.offer.amount is None:
            return None
        return (self.offer.amount / self.before.amount - 1) * 100

    @property
    def text(self) -> str:
        """The move in one line."""
        amount = "unknown" if self.offer.amount is None else f"{self.offer.amount:f}"
        line = f"{self.what}: {self.offer.where} {amount} {self.offer.currency}"
        if self.before is not None and self.before.amount is not None:
            percent = "" if self.percent is None else f", {self.percent:+.1f} %"
            line += f" (was {self.before.amount:f} on {self.before.observed_at:%Y-%m-%d}{percent})"
        return line + (f"; {self.reason}" if self.reason else "")


@dataclass(frozen=True, slots=True)
class Judged:
    """The rows to store, and what to tell about them.

    unchanged: prices that say what is stored already. known: what is known of each price from then on.
    """

    rows: tuple[Offer, ...] = ()
    moves: tuple[Move, ...] = ()
    unchanged: int = 0
    known: Mapping[str, Known] = field(default_factory=dict)

    def count(self, what: str) -> int:
        """How many moves are of this kind."""
        return sum(move.what == what for move in self.moves)


@dataclass(frozen=True, slots=True, kw_only=True)
class Yardstick:
    """What offers are judged by.

    now: when. bands: what comparable things cost, from `bands_of`.
    own: (source, provider) of every source that is the seller himself; others do not overrule him.
    second_look: whether steps of more than 25 % wait; a file imported by hand is a second look itself.
    """

    now: datetime
    bands: Mapping[tuple[str, ...], Band] = field(default_factory=dict)
    own: Collection[tuple[str, str]] = frozenset()
    second_look: bool = True


@dataclass(slots=True)
class _Verdicts:
    rows: list[Offer] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    unchanged: int = 0


def judge(offers: Iterable[Offer], known: Mapping[str, Known], by: Yardstick) -> Judged:
    """Compare each offer with what the store knows of its price; several of one price in order of time.

    known: by price_id, from PriceStore.known.
    """
    verdicts = _Verdicts()
    state = dict(known)
    ordered = sorted(offers, key=lambda offer: (offer.observed_at, offer.observation_id))
    for offer in ordered:
        before = state.get(offer.price_id, Known())
        state[offer.price_id] = _judge_one(offer, before, by, verdicts)
    return Judged(tuple(verdicts.rows), tuple(verdicts.moves), verdicts.unchanged, state)


def _judge_one(offer: Offer, known: Known, by: Yardstick, verdicts: _Verdicts) -> Known:
    """Add the verdict on one offer; returns what is known of its price from then on."""
    before, held = known.accepted, known.set_aside
    if before is not None and _says_the_same(offer, before):
        # A reading that brings the old price back is stored at once: it speaks against the one that waits.
        if held is None and offer.observed_at - before.observed_at < REPEAT_AFTER:
            verdicts.unchanged += 1
            return known
        verdicts.rows.append(offer)
        return Known(offer)
    if before is not None and _is_overruled(offer, before, by):
        if offer.amount == before.amount:
            verdicts.unchanged += 1
            return known
        why = f"{before.source} is the seller's own word"
        return _still_held(known, _set_aside(offer, before, held, "conflict", why, verdicts))
    wrong = _implausible(offer, before, by)
    if wrong is not None:
        return _still_held(known, _set_aside(offer, before, held, "quarantined", wrong, verdicts))
    if before is not None and offer.observed_at < before.observed_at:
        verdicts.rows.append(offer)  # an older observation fills history; it replaces nothing
        return known
    confirmed = held is not None and _confirms(offer, held)
    if confirmed and held is not None and known.decision is not None:
        # Whoever rejected a price does not want it because it comes again.
        verdicts.moves.append(Move("rejected", offer, before, known.decision.text))
        return known
    if by.second_look and _is_large(offer, before) and not confirmed:
        why = "waits for a second observation; until then the old price stays"
        return _still_held(known, _set_aside(offer, before, held, "waiting", why, verdicts))
    verdicts.rows.append(offer)
    if before is None:
        verdicts.moves.append(Move("new", offer))
    elif offer.amount != before.amount:
        verdicts.moves.append(Move("changed", offer, before, "confirmed" if confirmed else None))
    return Known(offer)


def _still_held(known: Known, held: Offer) -> Known:
    """A decision is on one row; another one that is set aside is open again."""
    return known if held is known.set_aside else Known(known.accepted, held)


def _set_aside(
    offer: Offer, before: Offer | None, held: Offer | None, what: str, why: str, verdicts: _Verdicts
) -> Offer:
    """Store the offer as suspect, unless the same one is there already; either way it is told."""
    verdicts.moves.append(Move(what, offer, before, why))
    reason = why if offer.reason is None else f"{why}; {offer.reason}"
    suspect = replace(offer, quality="suspect", reason=reason)
    if held is not None and _says_the_same(suspect, held) and suspect.observed_at >= held.observed_at:
        return held
    verdicts.rows.append(suspect)
    return suspect


def _is_overruled(offer: Offer, before: Offer, by: Yardstick) -> bool:
    """Whether a third party speaks of a price that the seller himself gave lately."""
    his_own = (before.source, before.provider) in by.own and (offer.source, offer.provider) not in by.own
    return his_own and by.now - before.observed_at <= _OWN_WORD_HOLDS


def _implausible(offer: Offer, before: Offer | None, by: Yardstick) -> str | None:
    """Why the offer cannot be right, or None."""
    if offer.observed_at > by.now + _AHEAD:
        return f"dated {offer.observed_at:%Y-%m-%d}, which is yet to come"
    if before is not None:
        return "ten times the last price or a tenth of it" if is_jump(before, offer) else None
    comparable, amount = _comparable(offer)
    if comparable not in by.bands or amount is None:
        return None
    low, high = by.bands[comparable]
    if low <= amount * _TENFOLD and amount <= high * _TENFOLD:
        return None
    return f"{amount:f} where others cost {low:f} to {high:f}"


def _is_large(offer: Offer, before: Offer | None) -> bool:
    """A step of more than a quarter, or a price that is suddenly not known."""
    if before is None or before.amount is None:
        return False
    return offer.amount is None or abs(offer.amount - before.amount) > before.amount * SECOND_LOOK_ABOVE


def _confirms(offer: Offer, held: Offer) -> bool:
    """Whether a later fetch says about the same as the one that was held."""
    earlier, later = held.fetched_at or held.observed_at, offer.fetched_at or offer.observed_at
    both_known = (offer.amount is None) == (held.amount is None)
    return later > earlier and both_known and not _is_large(offer, held)


def _says_the_same(offer: Offer, other: Offer) -> bool:
    alike = {name: getattr(other, name) for name in _OF_THE_READING}
    return replace(offer, **alike).observation_id == other.observation_id


# --- what comparable things cost


def bands_of(offers: Iterable[Offer]) -> dict[tuple[str, ...], Band]:
    """Lowest and highest price of comparable things: per GPU and hour of one model on demand, per piece of
    one item in one condition, per kWh; by currency. For judging a price that has no predecessor."""
    groups: defaultdict[tuple[str, ...], list[Decimal]] = defaultdict(list)
    for offer in offers:
        comparable, amount = _comparable(offer)
        if amount is not None and offer.contract in ("on_demand", "purchase"):
            groups[comparable].append(amount)
    return {key: (min(amounts), max(amounts)) for key, amounts in groups.items()}


def _comparable(offer: Offer) -> tuple[tuple[str, ...], Decimal | None]:
    if offer.kind == "cloud_instance":
        return ("gpu_hour", offer.gpu_model or "?", offer.currency), offer.amount_per_gpu
    return (offer.kind, offer.item, offer.condition or "", offer.unit, offer.currency), offer.amount
