"""How often the predicted speeds would pick the dearer of two cards, and what that costs.

    validate_decisions("measured.csv")

For each measured workload and precision, and each two GPU types that ran it on one GPU and have a price: the
card that costs less per sample by predicted speed, each predicted without any row of its own, against the one
that does by measured speed. A card stands for a workload with its fastest measured run. Beside the model
stand two rules that need no model: the ratio of memory bandwidths, and that of datasheet FLOPS.

A workload is one training script (recipe), model and size: costs per sample of two scripts do not compare.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .answer import SCHEMA_VERSION, moment
from .errors import NoPrice
from .models.hardware import catalogue

if TYPE_CHECKING:
    from .market import Market, Quote
    from .models.validation import RowResult

ON_DEMAND = frozenset({"on_demand"})
RULES = ("bandwidth_ratio", "flops_ratio")
"""What a pick may rest on besides the model; speeds by a rule are in no unit, only their ratio counts."""


@dataclass(frozen=True, slots=True)
class CardPrice:
    """The cheapest on-demand price of one GPU of a card. usd_per_gpu_hour: [USD/h]"""

    gpu: str
    usd_per_gpu_hour: Decimal
    quote: Quote

    def to_json(self) -> dict[str, Any]:
        offer = self.quote.offer
        return {
            "gpu": self.gpu,
            "usd_per_gpu_hour": f"{self.usd_per_gpu_hour:f}",
            "provider": offer.provider,
            "item": offer.item,
            "region": offer.region,
            "observed_at": moment(offer.observed_at),
            "source": self.quote.source,
        }


@dataclass(frozen=True, slots=True)
class Speed:
    """One card on one workload, in samples/s of one GPU: measured, predicted, and by each rule (no unit)."""

    gpu: str
    measured: float
    predicted: float
    by_rule: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Decision:
    """Two cards on one workload. best: cheaper per sample as measured; pick: as predicted.

    regret: what the pick costs more than the best, as a share of the best's cost. regret_by_rule: the same
    for each rule's pick.
    """

    workload: str
    size: int | None
    precision: str
    script: str
    cards: tuple[str, str]
    best: str
    pick: str
    regret: float
    regret_by_rule: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        return {
            "workload": self.workload,
            "size": self.size,
            "precision": self.precision,
            "script": self.script,
            "gpu_a": self.cards[0],
            "gpu_b": self.cards[1],
            "best": self.best,
            "pick": self.pick,
            "regret": round(self.regret, 6),
            **{f"regret_{rule}": round(value, 6) for rule, value in self.regret_by_rule.items()},
        }


@dataclass(frozen=True, slots=True)
class DecisionReport:
    """body: the contract's keys of `planner validate decisions`, JSON-ready. decisions: one for each pair."""

    body: dict[str, Any]
    decisions: tuple[Decision, ...]

    def to_json(self) -> dict[str, Any]:
        return {"schema_version": SCHEMA_VERSION, "kind": "validate_decisions", **self.body}


def validate_decisions(path: Path | str, as_of: datetime | None = None) -> DecisionReport:
    """Regret of every pick between two cards that were measured on one workload.

    path: a table of throughput rows. as_of: prices as known then; None: the end of today.
    Raises OSError and BadData for a file that is no such table, NothingStored and NoPrice.
    """
    from .market import stored_market
    from .models.validation import validate_throughput
    from .planning import default_as_of

    rows = validate_throughput(path, leave_out="gpu").rows
    usable = [r for r in rows if r.ape is not None and r.row.gpu_count == 1]
    market = stored_market(as_of or default_as_of())
    cards = sorted({r.row.gpu for r in usable})
    prices = {gpu: price for gpu in cards if (price := cheapest_price(gpu, market)) is not None}
    if usable and not prices:
        raise NoPrice("none of the measured cards has an on-demand price; see: planner prices list")
    decisions = tuple(
        _decision(key, a, b, prices)
        for key, speeds in speeds_by_workload(r for r in usable if r.row.gpu in prices).items()
        for a, b in combinations(speeds, 2)
    )
    body = {
        "as_of": moment(market.as_of),
        "currency": market.currency,
        "rows": len(rows),
        "scored": len(usable),
        **regrets([decision.regret for decision in decisions]),
        "baselines": {
            rule: regrets([decision.regret_by_rule[rule] for decision in decisions]) for rule in RULES
        },
        "without_price": [gpu for gpu in cards if gpu not in prices],
        "prices": [prices[gpu].to_json() for gpu in sorted(prices)],
        "wrong": [decision.to_json() for decision in decisions if decision.regret > 0],
    }
    return DecisionReport(body, decisions)


def regrets(found: Sequence[float]) -> dict[str, Any]:
    """Mean and worst regret and the share of wrong picks, as fractions; None where there is no pair.

    >>> regrets([0.0, 0.0, 0.3, 0.1])
    {'pairs': 4, 'mean_regret': 0.1, 'worst_regret': 0.3, 'wrong_share': 0.5}
    """
    if not found:
        return {"pairs": 0, "mean_regret": None, "worst_regret": None, "wrong_share": None}
    return {
        "pairs": len(found),
        "mean_regret": round(sum(found) / len(found), 6),
        "worst_regret": round(max(found), 6),
        "wrong_share": round(sum(regret > 0 for regret in found) / len(found), 6),
    }


def cheapest_price(gpu: str, market: Market) -> CardPrice | None:
    """The least of all on-demand prices per GPU of instances with that card; None where none is usable."""
    found = []
    for instance in catalogue.instances():
        if instance.gpu != gpu:
            continue
        for sale in market.cloud(instance.id, ON_DEMAND, ()):
            assert sale.quote is not None
            per_instance = sale.quote.offer.unit == "instance_hour"
            share = Decimal(instance.gpu_count if per_instance else 1)
            found.append(CardPrice(gpu, sale.quote.unit_price / share, sale.quote))
    return min(found, key=lambda card: (card.usd_per_gpu_hour, card.quote.offer.price_id), default=None)


_Workload = tuple[str, str, int | None, str]


def speeds_by_workload(rows: Iterable[RowResult]) -> dict[_Workload, list[Speed]]:
    """(script, model, size, precision) -> each card's fastest measured run of it, cards in order of name."""
    found: dict[_Workload, dict[str, RowResult]] = {}
    for result in rows:
        recipe = result.row.recipe
        if recipe is None or result.row.throughput is None:
            continue
        key = (recipe.id, result.row.model, recipe.size, result.row.precision)
        cards = found.setdefault(key, {})
        known = cards.get(result.row.gpu)
        if known is None or _samples(result, result.row.throughput) > _samples(known, known.row.throughput):
            cards[result.row.gpu] = result
    return {
        key: [_speed(cards[gpu]) for gpu in sorted(cards)] for key, cards in sorted(found.items(), key=str)
    }


def _samples(result: RowResult, throughput: float | None) -> float:
    return (throughput or 0.0) * result.row.samples_per_unit


def _speed(result: RowResult) -> Speed:
    from .models.calibration.dataset import table_of

    card = catalogue.gpu(result.row.gpu)
    return Speed(
        gpu=result.row.gpu,
        measured=_samples(result, result.row.throughput),
        predicted=_samples(result, result.predicted),
        by_rule={
            "bandwidth_ratio": card.bandwidth_bytes_per_second,
            "flops_ratio": float(table_of([result.row]).peak_flops[0]),
        },
    )


def _decision(key: _Workload, a: Speed, b: Speed, prices: Mapping[str, CardPrice]) -> Decision:
    script, model, size, precision = key
    pair = (a, b)
    price = {speed.gpu: float(prices[speed.gpu].usd_per_gpu_hour) for speed in pair}
    cost = {speed.gpu: price[speed.gpu] / speed.measured for speed in pair}
    best = min(cost, key=cost.__getitem__)

    def regret(speeds: Mapping[str, float]) -> tuple[str, float]:
        pick = min(price, key=lambda gpu: price[gpu] / speeds[gpu])
        return pick, cost[pick] / cost[best] - 1

    pick, lost = regret({speed.gpu: speed.predicted for speed in pair})
    by_rule = {rule: regret({speed.gpu: speed.by_rule[rule] for speed in pair})[1] for rule in RULES}
    return Decision(
        workload=model,
        size=size,
        precision=precision,
        script=script,
        cards=(a.gpu, b.gpu),
        best=best,
        pick=pick,
        regret=lost,
        regret_by_rule=by_rule,
    )
