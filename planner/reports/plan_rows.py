"""The options of a plan as flat rows, and which of them a reader should see first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from planner.reports.tabular import Cell

Option = Mapping[str, Any]

ALWAYS_SHOWN = ("p4d.24xlarge", "rtx-4090")
"""The two sides of the question most people come with: eight A100 in the cloud, or a rig of RTX 4090."""

PAID_AHEAD = ("buy", "reserved")
"""Kinds of purchase that are paid before the run begins and outlive it."""


def option_rows(document: Mapping[str, Any], project: str | None = None) -> list[dict[str, Cell]]:
    """One row per option of a plan document, every figure as it stands there; money as Decimal.

    project: a label of the user's for the first column; no column where None.
    """
    currency = str(document["currency"]).lower()
    return [_row(option, currency, project) for option in document["options"]]


def _row(option: Option, currency: str, project: str | None) -> dict[str, Cell]:
    cost, hours, speed, memory = (option[key] for key in ("cost", "time_hours", "throughput", "memory"))
    label: dict[str, Cell] = {} if project is None else {"project": project}
    return label | {
        "rank": option["rank"],
        "option": option["id"],
        "pareto": option["pareto"],
        "dominated_by": option["dominated_by"],
        "provider": option["provider"],
        "hardware": option["hardware"],
        "count": option["count"],
        "gpu": option["gpu"],
        "gpu_count": option["gpu_count"],
        "purchase_model": option["purchase_model"],
        "region": option["region"],
        **{f"cost_{currency}_{part}": Decimal(cost[part]) for part in ("p10", "p50", "p90")},
        **{f"time_hours_{part}": hours[part] for part in ("p10", "p50", "p90")},
        f"cost_{currency}_per_epoch": _money(option["cost_per_epoch"]),
        f"price_{currency}_per_gpu_hour": _money(option["price_per_gpu_hour"]),
        f"cash_upfront_{currency}": _money(option["cash_upfront"]),
        "precision": speed["precision"],
        "global_batch_size": speed["global_batch_size"],
        "micro_batch_size": speed["micro_batch_size"],
        "accumulation": speed["accumulation"],
        "activation_checkpointing": speed["activation_checkpointing"],
        "samples_per_second": speed["value"],
        "samples_per_second_low": speed["low"],
        "samples_per_second_high": speed["high"],
        "throughput_tier": speed["tier"],
        "memory_used_share": memory["used_share"],
        "fits": memory["fits"],
        "price_age_days": oldest_days(option),
    }


def oldest_days(option: Option) -> int | None:
    """Age of the oldest price the option rests on. [days]"""
    return max((price["age_days"] for price in option["prices"]), default=None)


def worth_showing(options: Sequence[Option]) -> list[Option]:
    """The front; of what it leaves, the best of each kind of purchase; and every machine of ALWAYS_SHOWN,
    once for each kind of purchase that is paid as the run goes.

    `options` stand best first, as a plan ranks them, and keep their order.
    """
    there: set[Any] = set()
    shown = []
    for option in options:
        purchase = option["purchase_model"]
        wants: set[Any] = set() if option["pareto"] else {purchase}
        if purchase not in PAID_AHEAD and any(name in option["hardware"] for name in ALWAYS_SHOWN):
            wants.add((option["hardware"], option["count"], purchase))
        if option["pareto"] or wants - there:
            shown.append(option)
        there |= wants
    return shown


def _money(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)
