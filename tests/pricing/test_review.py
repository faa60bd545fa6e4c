"""A price that was set aside is used once a person says so, and it is written down who did."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from made_up_sources import NOW, MovableClock, context, saying
from priced import offer

from planner.pricing.refresh import refresh
from planner.pricing.review import NotHeld, decide
from planner.pricing.store import PriceStore
from planner.pricing.verify import verify_store

P5 = offer(item="p5.48xlarge", amount=Decimal("98.32"))
CUT = replace(P5, amount=Decimal("55.04"))
TENTH = replace(P5, amount=Decimal("5.504"))


def _ask(store: PriceStore, clock: MovableClock, said: object) -> list[str]:
    report = refresh(store, [saying("aws", said)], context(clock))  # type: ignore[arg-type]
    return [move.what for move in report.moves]


def _amounts(store: PriceStore) -> list[Decimal | None]:
    return [each.amount for each in store.latest()]


def _held_id(store: PriceStore) -> str:
    (known,) = store.held()
    assert known.set_aside is not None
    return known.set_aside.observation_id


def _holding(store: PriceStore, said: object) -> MovableClock:
    clock = MovableClock()
    _ask(store, clock, P5)
    clock.forward(hours=1)
    _ask(store, clock, said)
    return clock


@pytest.mark.parametrize("said", [CUT, TENTH], ids=["waiting", "quarantined"])
def test_an_accepted_price_is_used_from_then_on_and_stays_when_it_comes_again(
    store: PriceStore, said: object
) -> None:
    clock = _holding(store, said)
    assert _amounts(store) == [P5.amount]
    known, decision = decide(
        store, _held_id(store)[:8], "accepted", by="ann", reason="seen on the bill", now=clock()
    )
    (used,) = store.latest()
    assert (used.amount, used.quality) == (known.set_aside.amount if known.set_aside else None, "ok")
    assert used.note == "accepted by ann on 2026-09-11: seen on the bill"
    assert decision.stored_as == used.observation_id
    assert store.decisions() == (decision,)
    assert store.held() == ()
    clock.forward(days=1)
    assert _ask(store, clock, said) == []
    assert verify_store(store).errors == 0


def test_a_rejected_price_is_not_taken_though_it_comes_again(store: PriceStore) -> None:
    clock = _holding(store, CUT)
    decide(store, _held_id(store), "rejected", by="ann", reason="a test account", now=clock())
    for _ in range(2):
        clock.forward(hours=2)
        assert _ask(store, clock, CUT) == ["rejected"]
        assert _amounts(store) == [P5.amount]
    with pytest.raises(NotHeld, match="rejected by ann on 2026-09-11: a test account"):
        decide(store, _held_id(store), "rejected", by="bob", reason="again", now=clock())
    decide(store, _held_id(store), "accepted", by="bob", reason="it is real", now=clock())
    assert _amounts(store) == [CUT.amount]
    assert [(each.verdict, each.decided_by) for each in store.decisions()] == [
        ("rejected", "ann"),
        ("accepted", "bob"),
    ]


def test_another_price_than_the_rejected_one_is_looked_at_anew(store: PriceStore) -> None:
    clock = _holding(store, CUT)
    decide(store, _held_id(store), "rejected", by="ann", reason="no", now=clock())
    lower = replace(P5, amount=Decimal("30"))
    clock.forward(hours=2)
    assert _ask(store, clock, lower) == ["waiting"]
    clock.forward(hours=2)
    assert _ask(store, clock, lower) == ["changed"]


def test_an_id_that_is_not_held_is_refused(store: PriceStore) -> None:
    _holding(store, CUT)
    for named in ("", _held_id(store)[:3], "0" * 32):
        with pytest.raises(NotHeld, match="planner prices review"):
            decide(store, named, "accepted", by="ann", reason="?", now=NOW + timedelta(days=1))
    assert store.decisions() == ()
