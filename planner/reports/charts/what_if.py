"""Rows of the two charts that ask "what if": other prices (tornado), more of the same (break-even).

Both hold the plan still: nothing is planned again, which the captions say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Any

from planner.reports.plan_file import Document, is_schedule, name_of

from .rows import totals

Plan = Mapping[str, Any]
Row = dict[str, Any]
STEP = Decimal("0.2")
_MOST_DRIVERS = 8


def tornado_rows(document: Document, plan: Plan) -> list[Row]:
    """Each price 20 % lower and higher, speed at its 80 % band, and all at once as simulated."""
    base = Decimal(plan["cost"]["p50"])
    drivers = [
        (name, base - STEP * amount, base + STEP * amount, "price −20 %", "price +20 %")
        for name, amount in _parts(document, plan).items()
        if amount
    ]
    if not is_schedule(document):
        slow, fast = _at_speeds(plan)
        drivers.append(("speed", slow, fast, "low end of its 80 % band", "high end of its 80 % band"))
    cost = plan["cost"]
    drivers.append(
        ("all at once", Decimal(cost["p10"]), Decimal(cost["p90"]), "P10, simulated", "P90, simulated")
    )
    drivers.sort(key=lambda driver: -abs(driver[2] - driver[1]))
    return [
        {"driver": name, "side": side, "setting": setting, "cost": float(value)}
        for name, low, high, low_said, high_said in drivers[: _MOST_DRIVERS + 1]
        for side, value, setting in (("low", low, low_said), ("high", high, high_said))
    ]


def _parts(document: Document, plan: Plan) -> dict[str, Decimal]:
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for line in plan["ledger"] if is_schedule(document) else plan["cost_lines"]:
        name = line["category"] if "category" in line else _part(line["item"])
        sums[name] += Decimal(line["amount"])
    return dict(sums)


def _part(item: str) -> str:
    return "purchase" if item.startswith("purchase ") else item


def _at_speeds(plan: Plan) -> tuple[Decimal, Decimal]:
    """Cost at the slow and the fast end of the speed's band: what is paid by the hour follows."""
    speed, base = plan["throughput"], Decimal(plan["cost"]["p50"])
    hours = sum(line["hours"] for line in plan["time_lines"]) or 1.0
    training = sum(line["hours"] for line in plan["time_lines"] if line["item"] == "training")
    hourly = sum(
        (Decimal(line["amount"]) for line in plan["cost_lines"] if _by_the_hour(line["unit"])), Decimal(0)
    )
    share = hourly * Decimal(training / hours)
    return tuple(base + share * (Decimal(speed["value"] / end) - 1) for end in (speed["low"], speed["high"]))  # type: ignore[return-value]


def _by_the_hour(unit: str) -> bool:
    return "hour" in unit or unit == "kWh"


def schedule_breakeven(document: Document) -> tuple[list[Row], str] | str:
    """Cash so far of the cheapest plan that only rents and the cheapest that owns; or why there is none."""
    cloud = next((p for p in document["front"] if p["kind"] == "cloud"), None)
    owning = next((p for p in document["front"] if p["kind"] != "cloud"), None)
    if cloud is None or owning is None:
        kind = "owns something" if cloud is None else "only rents"
        return f"every plan of this front {kind}: there are no two ways to compare"
    rows, sums = [], []
    for plan, way in ((cloud, "rent"), (owning, "own")):
        paid = list(totals(document, plan))
        sums.append({month: so_far for month, _, so_far in paid})
        rows += [
            {"at": month, "way": f"{way}: {name_of(plan)}", "so_far": float(so_far)}
            for month, _, so_far in paid
        ]
    shared = sorted(sums[0].keys() & sums[1].keys())
    stays = [m for m in shared if all(sums[1][later] <= sums[0][later] for later in shared if later >= m)]
    said = f"Owning is ahead for good from {stays[0]}." if stays else "Owning is not ahead by the end."
    return rows, said + " Cash as it falls due; the rigs' resale counts in the month it comes in."


def run_breakeven(document: Document) -> tuple[list[Row], str] | str:
    """What n such runs cost, one after another, rented and on a rig bought for them; or why there is none."""
    options = document["options"]
    rents = [
        o
        for o in options
        if o["provider"] != "own" and o["purchase_model"] not in ("buy", "amortised", "own")
    ]
    buys = [o for o in options if o["purchase_model"] == "buy"]
    if not rents or not buys:
        return "this plan does not hold both a rented and a bought way"
    rent = min(rents, key=lambda o: Decimal(o["cost"]["p50"]))
    each = Decimal(rent["cost"]["p50"])
    split = [(o, *_upfront_and_each(o)) for o in buys]
    buy, upfront, per_run = min(split, key=lambda s: (s[1] / max(each - s[2], Decimal("1e-9")), s[1]))
    saved = each - per_run
    runs = int((upfront / saved).to_integral_value(ROUND_CEILING)) if saved > 0 else None
    last = 2 * runs if runs else 100
    steps = sorted({round(last * at / 20) for at in range(21)})
    rows = [
        {"at": count, "way": way, "so_far": float(start + count * step)}
        for way, start, step in (
            (f"rent: {name_of(rent)}", Decimal(0), each),
            (f"own: {name_of(buy)}", upfront, per_run),
        )
        for count in steps
    ]
    said = (
        f"Buying costs no more from run {runs:,} on."
        if runs
        else "Buying never catches up: a run costs more on it."
    )
    return rows, f"{said} Runs one after another at today's prices; the rig is sold for nothing."


def _upfront_and_each(option: Plan) -> tuple[Decimal, Decimal]:
    upfront = sum(
        (Decimal(line["amount"]) for line in option["cost_lines"] if _part(line["item"]) == "purchase"),
        Decimal(0),
    )
    return upfront, Decimal(option["cost"]["p50"]) - upfront
