"""planner.pricing.history: what the shipped history shows, and how steps are found."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from priced import JUNE, offer

from planner.pricing.history import series_of
from planner.pricing.store import PriceStore


def test_the_cut_of_june_2025_stands_in_the_history_with_its_source(loaded: PriceStore) -> None:
    (series,) = series_of(
        loaded.history(item="p4d.24xlarge", region="us-east-1", contract="on_demand", provider="aws")
    )
    (cut,) = [step for step in series.changes if step.percent is not None and step.percent < -1]
    assert (cut.offer.amount, f"{cut.offer.observed_at:%Y-%m}") == (Decimal("21.957642"), "2025-06")
    assert round(cut.percent or 0, 1) == Decimal("-33.0")
    assert cut.offer.source == "karpenter-provider-aws"


def _series(*amounts: str | None) -> list[Decimal | None]:
    return [None if amount is None else Decimal(amount) for amount in amounts]


def test_only_the_first_the_changed_and_the_last_observation_are_steps() -> None:
    given = [
        offer(amount=amount, observed_at=JUNE + timedelta(days=day))
        for day, amount in enumerate(_series("5", "5", "4", "4", "4", None, "6", "6"))
    ]
    (series,) = series_of(given)
    assert [step.offer.amount for step in series.changes] == _series("5", "4", None, "6", "6")
    assert [step.percent for step in series.changes] == [None, Decimal(-20), None, Decimal(50), Decimal(0)]


def test_the_amount_at_an_instant_is_the_last_one_seen_by_then() -> None:
    given = [offer(amount=Decimal(day + 1), observed_at=JUNE + timedelta(days=day)) for day in range(3)]
    (series,) = series_of(given)
    assert series.at(JUNE - timedelta(seconds=1)) is None
    assert series.at(JUNE + timedelta(hours=30)) == 2
    assert series.at(datetime(2030, 1, 1, tzinfo=UTC)) == 3


def test_a_suspect_observation_is_no_step() -> None:
    odd = offer(amount=Decimal("0.01"), quality="suspect", reason="odd", observed_at=JUNE + timedelta(days=1))
    (series,) = series_of([offer(), odd])
    assert len(series.steps) == 1
