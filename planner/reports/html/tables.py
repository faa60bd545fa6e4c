"""The tables of the page: what each figure is, where it comes from, how old it is and how it is known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from planner.reports.charts import rows
from planner.reports.plan_file import Document, is_schedule, name_of, number_of

Plan = Mapping[str, Any]
MOST_PAYMENTS = 1500


@dataclass(frozen=True, slots=True)
class Table:
    """caption: its title. heads: (text, whether a number). body: cells as text. open: shown at once.

    note: a sentence beneath, "" for none.
    """

    caption: str
    heads: Sequence[tuple[str, bool]]
    body: Sequence[Sequence[str]]
    note: str = ""
    open: bool = False


def tables(document: Document, plan: Plan) -> list[Table]:
    """Every table of one plan, in reading order."""
    schedule = is_schedule(document)
    found = [_front(document, plan)]
    found += (
        [_cash(document, plan), _jobs(document, plan)] if schedule else [_cost(document, plan), _time(plan)]
    )
    found += [_purchases(document, plan), _ledger(document, plan)] if schedule else [_speed(plan)]
    found += [_prices(document, plan), _assumptions(document), _excluded(document)]
    return [table for table in found if table.body]


def amount(text: str | Decimal, digits: int = 2) -> str:
    return f"{Decimal(text):,.{digits}f}"


def exact(text: str) -> str:
    """All of it, grouped: unit prices and quantities are not rounded."""
    found = Decimal(text).normalize()
    return f"{found:,f}"


def when(text: str | None) -> str:
    return "" if text is None else f"{text[:10]} {text[11:16]}"


def _front(document: Document, plan: Plan) -> Table:
    money = document["currency"]
    schedule = is_schedule(document)
    plans = document["front"] if schedule else [o for o in document["options"] if o["pareto"] or o is plan]
    heads = [
        ("plan", True),
        ("what", False),
        (f"{money} P50", True),
        ("P10", True),
        ("P90", True),
        ("hours P50", True),
        ("P10", True),
        ("P90", True),
        (f"upfront {money}", True),
        ("risk", False),
    ]
    body = [
        [("▸ " if number_of(p) == number_of(plan) else "") + str(number_of(p)), name_of(p)]
        + [amount(p["cost"][key]) for key in ("p50", "p10", "p90")]
        + [f"{p['time_hours'][key]:,.1f}" for key in ("p50", "p10", "p90")]
        + [amount(p["cash_upfront"]), _risk(p)]
        for p in plans
    ]
    return Table(
        "The front: no plan here is both cheaper and faster than another",
        heads,
        body,
        "▸ marks the plan this page shows. P50 is the central estimate; P10 and P90 are simulated.",
        True,
    )


def _risk(plan: Plan) -> str:
    risk = plan.get("risk") or plan.get("chance") or {}
    parts = []
    for label, keys in (("on time", ("on_time", "deadline")), ("in budget", ("in_budget", "budget"))):
        chance = next((risk[key] for key in keys if risk.get(key) is not None), None)
        if chance is not None:
            parts.append(f"{chance:.0%} {label}")
    if plan.get("gap"):
        parts.append(f"gap {plan['gap']:.1%}")
    return ", ".join(parts) or "no limit given"


def _cash(document: Document, plan: Plan) -> Table:
    sums, kinds = rows.cash_by_month(document, plan), ("operating", "capital", "prepaid", "disposal")
    heads = [("month", False), *((kind, True) for kind in kinds), ("net", True), ("so far", True)]
    body = [
        [
            month,
            *(amount(sums[month, kind]) if (month, kind) in sums else "" for kind in kinds),
            amount(net),
            amount(so_far),
        ]
        for month, net, so_far in rows.totals(document, plan)
    ]
    whole = f"{exact(plan['cost']['p50'])} {document['currency']}"
    note = f"The last sum is the plan's cost, {whole}; cells are rounded to cents."
    return Table(f"Cash by month, {document['currency']}", heads, body, note, True)


def _jobs(document: Document, plan: Plan) -> Table:
    at, money = rows.zone(document), document["currency"]
    heads = [
        ("run", False),
        ("workload", False),
        ("on", False),
        ("how", False),
        ("starts", False),
        ("ends", False),
        ("deadline", False),
        ("hours", True),
        (f"{money} by itself", True),
        ("kWh", True),
        ("speed from", False),
    ]
    body = []
    for job in sorted(plan["jobs"], key=lambda each: (each["start"], each["id"])):
        moments = [
            f"{rows.local(job[k], at):%Y-%m-%d %H:%M}" if job[k] else "none"
            for k in ("start", "end", "deadline")
        ]
        energy = "unknown" if job["energy_kwh"] is None else amount(job["energy_kwh"], 1)
        tier = job["detail"].get("throughput", {}).get("tier", "")
        body.append(
            [
                job["id"],
                job["workload"],
                rows.place(job),
                job["purchase_model"].replace("_", " "),
                *moments,
                f"{job['time_hours']['p50']:,.1f}",
                amount(job["cost"]["p50"]),
                energy,
                tier,
            ]
        )
    return Table(f"Runs, times in {at}", heads, body, "A run's cost does not hold its share of rigs bought.")


def _cost(document: Document, plan: Plan) -> Table:
    heads = [
        ("part", False),
        ("quantity", True),
        ("unit", False),
        ("unit price", True),
        (document["currency"], True),
        ("how", False),
        ("basis", False),
        ("source", False),
        ("seen", False),
    ]
    body = [
        [
            line["item"],
            exact(line["quantity"]),
            line["unit"],
            exact(line["unit_price"]),
            amount(line["amount"], 4),
            line["formula"],
            line["basis"],
            line["source"],
            (line["observed_at"] or "")[:10] or "computed",
        ]
        for line in plan["cost_lines"]
    ]
    note = f"They add up to {exact(plan['cost']['p50'])} {document['currency']}."
    return Table("What the cost is made of", heads, body, note, True)


def _time(plan: Plan) -> Table:
    body = [
        [line["item"], f"{line['hours']:,.4f}", line["formula"], line["basis"], line["source"]]
        for line in plan["time_lines"]
    ]
    heads = [("part", False), ("hours", True), ("how", False), ("basis", False), ("source", False)]
    return Table("What the time is made of", heads, body, "", True)


def _speed(plan: Plan) -> Table:
    speed = plan["throughput"]
    body = [
        [
            "throughput",
            f"{speed['value']:,.2f}",
            f"{speed['low']:,.2f} to {speed['high']:,.2f}",
            "samples/s",
            speed["tier"],
        ],
        [
            "optimizer step",
            f"{speed['step_seconds']:.5f}",
            f"{speed['step_seconds_low']:.5f} to {speed['step_seconds_high']:.5f}",
            "s",
            speed["tier"],
        ],
    ]
    heads = [("figure", False), ("central", True), ("80 % band", False), ("unit", False), ("tier", False)]
    return Table(f"Speed, {speed['precision']}, batch {speed['global_batch_size']}", heads, body)


def _purchases(document: Document, plan: Plan) -> Table:
    heads = [
        ("rigs", False),
        ("count", True),
        ("ordered", False),
        ("usable", False),
        (f"{document['currency']} each", True),
        ("sold", False),
        ("for, each", True),
    ]
    body = [
        [
            b["asset"],
            str(b["count"]),
            when(b["ordered"]),
            when(b["usable"]),
            amount(b["unit_price"]),
            when(b["sold"]) or "kept",
            "" if b["resale_each"] is None else amount(b["resale_each"]),
        ]
        for b in plan["purchases"]
    ]
    return Table("Rigs bought, times in UTC", heads, body)


def _ledger(document: Document, plan: Plan) -> Table:
    money = document["currency"]
    payments = plan["ledger"]
    caption = f"Every payment, due in UTC: {len(payments)}"
    note = f"They add up to {exact(plan['cost']['p50'])} {money}."
    if len(payments) > MOST_PAYMENTS:
        sums: dict[tuple[str, str, str], Decimal] = defaultdict(Decimal)
        for line in payments:
            sums[line["category"], line["provider"], line["source"]] += Decimal(line["amount"])
        body = [[*key, amount(total, 4)] for key, total in sorted(sums.items())]
        return Table(
            f"{caption}, added up",
            [("category", False), ("provider", False), ("source", False), (money, True)],
            body,
            f"{note} planner report finance writes each of them.",
        )
    heads = [
        ("due", False),
        ("what", False),
        ("booked as", False),
        ("quantity", True),
        ("unit", False),
        ("unit price", True),
        (money, True),
        ("price", False),
        ("source", False),
    ]
    body = [
        [
            when(line["due"]),
            line["description"],
            line["expenditure"],
            exact(line["quantity"]),
            line["unit"],
            exact(line["unit_price"]),
            amount(line["amount"], 4),
            ", ".join(line["price_ids"]) or "none stored",
            line["source"],
        ]
        for line in payments
    ]
    return Table(caption, heads, body, note)


def _prices(document: Document, plan: Plan) -> Table:
    used = document["prices"] if is_schedule(document) else plan["prices"]
    heads = [
        ("price", False),
        ("amount", True),
        ("per", False),
        ("rate", True),
        ("quality", False),
        ("seen", False),
        ("age, days", True),
        ("source", False),
        ("reference", False),
    ]
    body = [
        [
            p["id"],
            f"{exact(p['amount'])} {p['currency']}",
            p["unit"],
            exact(p["fx_rate"]),
            p["quality"],
            p["observed_at"][:10],
            str(p["age_days"]),
            p["source"],
            p["source_ref"],
        ]
        for p in sorted(used, key=lambda each: (-each["age_days"], each["id"]))
    ]
    return Table(
        f"Prices used: {len(body)}, oldest first", heads, body, "rate: plan currency for one of the price's."
    )


def _assumptions(document: Document) -> Table:
    body = [[a["key"], a["text"], a["source"]] for a in document["assumptions"]]
    return Table(
        f"Assumptions: {len(body)}",
        [("key", False), ("what is taken as true", False), ("source", False)],
        body,
    )


def _excluded(document: Document) -> Table:
    body = [[e["id"], e["code"].replace("_", " "), e["reason"]] for e in document["excluded"]]
    return Table(f"Left out: {len(body)}", [("what", False), ("kind", False), ("why", False)], body)
