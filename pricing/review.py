"""Prices that were set aside, and a person's word on them: accepted ones are used from then on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from .decisions import Decision, Verdict
from .errors import PricingError
from .offer import Offer
from .store import Known, PriceStore

_SHORTEST_PREFIX = 4


class NotHeld(PricingError):
    """No price that was set aside goes by that id, or several do."""


def decide(
    store: PriceStore, named: str, verdict: Verdict, *, by: str, reason: str, now: datetime
) -> tuple[Known, Decision]:
    """Accept or reject a price that was set aside; returns it and what was written down.

    named: the id of its row, or the first characters of it. by, reason: for whoever reads the log later.
    An accepted price is stored again as the newest of its instant, in use; the row that was set aside stays
    as it is. A rejected one is not taken when it comes again. Raises NotHeld, StoreUnusable.
    """
    known = _named(store.held(), named)
    held = known.set_aside
    assert held is not None
    if known.decision is not None and known.decision.verdict == verdict:
        raise NotHeld(f"{held.where}: {known.decision.text}")
    accepted = _in_use(held, by, reason, now) if verdict == "accepted" else None
    decision = Decision(
        observation_id=held.observation_id,
        verdict=verdict,
        decided_at=now,
        decided_by=by,
        reason=reason,
        stored_as=None if accepted is None else accepted.observation_id,
    )
    store.decide(decision, () if accepted is None else (accepted,))
    return known, decision


def _in_use(held: Offer, by: str, reason: str, now: datetime) -> Offer:
    # Newer than the row it replaces, whatever this machine's clock says.
    later = max(now, (held.fetched_at or held.observed_at) + timedelta(microseconds=1))
    word = f"accepted by {by} on {now:%Y-%m-%d}: {reason}"
    return replace(
        held,
        quality="ok",
        reason=None,
        note=word if held.note is None else f"{word}; {held.note}",
        fetched_at=later,
    )


def _named(held: Sequence[Known], named: str) -> Known:
    found = [
        known
        for known in held
        if known.set_aside is not None and known.set_aside.observation_id.startswith(named)
    ]
    if len(named) < _SHORTEST_PREFIX or not found:
        raise NotHeld(
            f'no price that was set aside has the id "{named}"; ids, of {_SHORTEST_PREFIX} characters at '
            "least: planner prices review"
        )
    if len(found) > 1:
        ids = ", ".join(known.set_aside.observation_id for known in found if known.set_aside is not None)
        raise NotHeld(f'"{named}" is the beginning of several ids: {ids}')
    return found[0]
