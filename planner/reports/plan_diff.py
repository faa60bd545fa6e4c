"""What changed between two plans of one kind: figures, prices, assumptions, options that came or went."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from planner import money
from planner.answer import SCHEMA_VERSION
from planner.errors import UsageError

Document = Mapping[str, Any]
_ABOUT = ("as_of", "snapshot", "currency", "seed", "limits")


def diff_of(before: Document, after: Document) -> dict[str, Any]:
    """The differences, from `before` to `after`. Raises UsageError for two kinds, or two currencies."""
    if before["kind"] != after["kind"]:
        raise UsageError(f"a plan of kind {before['kind']} and one of kind {after['kind']} do not compare")
    if before["currency"] != after["currency"]:
        raise UsageError(
            f"one plan is in {before['currency']}, the other in {after['currency']}; plan one of them again"
        )
    old, new = _by_name(before), _by_name(after)
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "diff",
        "currency": after["currency"],
        "about": [
            {"what": key, "before": before.get(key), "after": after.get(key)}
            for key in _ABOUT
            if before.get(key) != after.get(key)
        ],
        "changed": [
            change for name in old if name in new and (change := _change(name, old[name], new[name]))
        ],
        "gone": [name for name in old if name not in new],
        "came": [name for name in new if name not in old],
        "prices": _prices(before, after),
        "assumptions": _assumptions(before, after),
    }


def _by_name(document: Document) -> dict[str, Mapping[str, Any]]:
    """Options by what they are, points of a schedule by their place on the front; the first of each name."""
    found: dict[str, Mapping[str, Any]] = {}
    for each in document.get("options") or document.get("front") or ():
        found.setdefault(_name(each), each)
    return found


def _name(plan: Mapping[str, Any]) -> str:
    if "point" in plan:
        return f"point {plan['point']}, {plan['kind']}"
    parts = (
        f"{plan['count']} × {plan['hardware']}",
        plan["provider"],
        plan["region"],
        plan["purchase_model"],
    )
    return ", ".join(part for part in parts if part)


def _change(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any] | None:
    cost_old, cost_new = Decimal(old["cost"]["p50"]), Decimal(new["cost"]["p50"])
    hours_old, hours_new = old["time_hours"]["p50"], new["time_hours"]["p50"]
    if cost_old == cost_new and hours_old == hours_new:
        return None
    return {
        "option": name,
        "cost_before": money.text(cost_old),
        "cost_after": money.text(cost_new),
        "cost_change": money.text(cost_new - cost_old),
        "hours_before": hours_old,
        "hours_after": hours_new,
    }


def _prices(before: Document, after: Document) -> list[dict[str, Any]]:
    """Prices whose amount moved, by what is sold, where and how."""

    def used(document: Document) -> dict[tuple[str, ...], Mapping[str, Any]]:
        plans = [document, *(document.get("options") or ())]
        return {
            tuple(str(price.get(key)) for key in ("item", "provider", "region", "contract", "unit")): price
            for plan in plans
            for price in plan.get("prices") or ()
        }

    old, new = used(before), used(after)
    keys = ("item", "provider", "region", "contract", "unit")
    return [
        {
            **dict(zip(keys, key, strict=True)),
            "amount_before": old[key].get("amount"),
            "amount_after": price.get("amount"),
            "observed_before": old[key].get("observed_at"),
            "observed_after": price.get("observed_at"),
        }
        for key, price in new.items()
        if key in old and old[key].get("amount") != price.get("amount")
    ]


def _assumptions(before: Document, after: Document) -> list[dict[str, Any]]:
    old = {each["key"]: each["text"] for each in before.get("assumptions") or ()}
    new = {each["key"]: each["text"] for each in after.get("assumptions") or ()}
    return [
        {"key": key, "before": old.get(key), "after": new.get(key)}
        for key in dict.fromkeys((*old, *new))
        if old.get(key) != new.get(key)
    ]
