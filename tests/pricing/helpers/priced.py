"""Offers for tests: one plain offer with any field changed, and a strategy for arbitrary valid ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from planner.pricing.offer import Component, Offer

JUNE = datetime(2025, 6, 1, tzinfo=UTC)


def offer(**changed: Any) -> Offer:
    """An eight-GPU instance on demand at 21.96 USD/h, with the named fields changed."""
    plain: dict[str, Any] = {
        "kind": "cloud_instance",
        "provider": "aws",
        "item": "p4d.24xlarge",
        "region": "us-east-1",
        "contract": "on_demand",
        "unit": "instance_hour",
        "amount": Decimal("21.96"),
        "currency": "USD",
        "observed_at": JUNE,
        "source": "test",
        "gpu_model": "a100-sxm4-40gb",
        "gpu_count": 8,
        "gpu_mem_mib": 40960,
        "gpu_form": "sxm",
    }
    return Offer(**{**plain, **changed})


_moments = st.integers(0, 10**9).map(
    lambda seconds: datetime(2000, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
)
_amounts = st.decimals(Decimal("0.000001"), Decimal(10**9), places=6)
_words = st.text(st.characters(codec="utf-8", categories=("L", "N", "P")), min_size=1, max_size=12)


def _components() -> st.SearchStrategy[tuple[Component, ...]]:
    parts = st.builds(Component, _words, _amounts, st.just("gpu_hour"), _amounts)
    return st.lists(parts, max_size=2).map(tuple)


@st.composite
def offers(draw: st.DrawFn) -> Offer:
    """Any valid offer, with few enough keys and times that some collide."""
    low, amount, high = sorted(draw(st.lists(_amounts, min_size=3, max_size=3)))
    ranged = draw(st.booleans())
    quality = draw(st.sampled_from(["ok", "stale", "estimated", "suspect"]))
    return offer(
        contract=draw(st.sampled_from(["on_demand", "spot"])),
        amount=draw(st.sampled_from([amount, None])),
        amount_low=low if ranged else None,
        amount_high=high if ranged else None,
        observed_at=JUNE + timedelta(days=draw(st.integers(0, 2))),
        fetched_at=draw(st.none() | st.integers(0, 2).map(lambda days: JUNE + timedelta(days=days))),
        valid_from=draw(st.none() | _moments),
        upfront=draw(st.none() | _amounts),
        quality=quality,
        reason=None if quality == "ok" else draw(_words),
        components=draw(_components()),
        sample_n=draw(st.none() | st.integers(0, 1000)),
        zone=draw(st.sampled_from([None, None, "us-east-1a"])),
        note=draw(st.none() | _words),
    )
