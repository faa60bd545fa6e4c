"""How one price moved: its observations as a step function of time."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from .offer import Offer
from .queries import newness


@dataclass(frozen=True, slots=True)
class Step:
    """One observation and how far it lies from the one before.

    percent: against the last known amount; None for the first one and for an unknown amount. [%]
    """

    offer: Offer
    percent: Decimal | None


@dataclass(frozen=True, slots=True)
class Series:
    """The observations of one price, oldest first, none of them suspect."""

    steps: tuple[Step, ...]

    @property
    def label(self) -> str:
        """What it is the price of, in a few words."""
        offer = self.steps[0].offer
        parts = [offer.provider, offer.zone or offer.region, offer.contract]
        parts += [f"{offer.term_months} months"] if offer.term_months else []
        parts += [f"{offer.payment} upfront"] if offer.payment else []
        parts += [offer.condition] if offer.condition else []
        return f"{offer.item} {' '.join(parts)}, {offer.currency} per {offer.unit.replace('_', ' ')}"

    @property
    def changes(self) -> tuple[Step, ...]:
        """The first observation, each that brought another amount, and the last: enough to draw the steps."""
        if not self.steps:
            return ()
        kept = [self.steps[0]]
        kept += [
            step
            for before, step in zip(self.steps, self.steps[1:], strict=False)
            if step.offer.amount != before.offer.amount
        ]
        return tuple(kept) if kept[-1] is self.steps[-1] else (*kept, self.steps[-1])

    def at(self, when: datetime) -> Decimal | None:
        """The amount that had been observed by then; None before the first and where it was not known."""
        index = bisect_right([step.offer.observed_at for step in self.steps], when) - 1
        return self.steps[index].offer.amount if index >= 0 else None


def series_of(offers: Iterable[Offer]) -> tuple[Series, ...]:
    """Observations sorted into one series a price, the longest first. Suspect ones are left out."""
    groups: defaultdict[str, list[Offer]] = defaultdict(list)
    for offer in offers:
        if offer.quality != "suspect":
            groups[offer.price_id].append(offer)
    found = [Series(_steps(sorted(group, key=newness))) for group in groups.values()]
    return tuple(sorted(found, key=lambda series: (-len(series.steps), series.label)))


def _steps(offers: list[Offer]) -> tuple[Step, ...]:
    steps = []
    last: Decimal | None = None
    for offer in offers:
        percent = None
        if offer.amount is not None and last is not None:
            percent = (offer.amount / last - 1) * 100
        steps.append(Step(offer, percent))
        last = offer.amount if offer.amount is not None else last
    return tuple(steps)
