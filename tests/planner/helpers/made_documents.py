"""Schedule plans of made-up payments: one by hand, and any number at random."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

ZONES = ("UTC", "Europe/Berlin", "America/Los_Angeles", "Asia/Kolkata", "Australia/Lord_Howe")
Payment = dict[str, Any]


def written(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def payment(quantity: str, unit_price: str, due: datetime, **given: Any) -> Payment:
    """A payment of the ledger: operating compute of one second before `due`, unless told otherwise."""
    amount = Decimal(quantity) * Decimal(unit_price)
    return {
        "due": written(due), "service_start": written(given.pop("start", due)),
        "service_end": written(given.pop("end", due + timedelta(seconds=1))), "category": "compute",
        "expenditure": "operating", "description": "run: compute", "job": "", "project": "", "team": "",
        "tags": {}, "provider": "aws", "region": "us-east-1", "hardware": "p4d.24xlarge", "sku": "",
        "purchase_model": "on_demand", "quantity": quantity, "unit": "instance-hour",
        "unit_price": unit_price, "amount": f"{amount:f}", "list_amount": None, "asset": "",
        "energy_kwh": None, "co2_kg": None, "price_ids": [], "source": "made up", **given,
    }  # fmt: skip


def document(
    ledger: list[Payment], *, starts: datetime, ends: datetime, zone: str = "UTC", currency: str = "USD",
    discount_rate: float = 0.0, purchases: Any = (), commitments: Any = (), jobs: Any = (),
) -> dict[str, Any]:  # fmt: skip
    """A plan file of one point."""
    total = sum((Decimal(each["amount"]) for each in ledger), Decimal(0))
    cost = dict.fromkeys(("p10", "p50", "p90"), f"{total:f}")
    hours = dict.fromkeys(("p10", "p50", "p90"), 1.0)
    point = {
        "point": 1, "kind": "hybrid", "cost": cost, "present_value": f"{total:f}", "cash_upfront": "0.00",
        "finish": written(ends), "time_hours": hours, "late_hours": 0.0, "energy_kwh": None, "co2_kg": None,
        "gap": 0.0, "proven": True, "meets_limits": True, "purchases": list(purchases),
        "commitments": list(commitments), "jobs": list(jobs), "ledger": ledger, "notes": [],
        "risk": {"draws": 0, "on_time": None, "in_budget": None, "cost_cvar95": f"{total:f}",
                 "finish_p10": written(ends), "finish_p90": written(ends), "not_separable_from": []},
    }  # fmt: skip
    return {
        "schema_version": "1.0", "kind": "schedule", "name": "made up", "as_of": "2026-12-01T00:00:00Z",
        "snapshot": "sha256:made", "currency": currency, "seed": 0, "objective": "finish",
        "starts": written(starts), "ends": written(ends), "time_zone": zone, "discount_rate": discount_rate,
        "limits": {}, "schedule": {}, "front": [point], "chosen": 1, "prices": [], "excluded": [],
        "assumptions": [], "warnings": [], "oldest_price": None,
    }  # fmt: skip


def _decimals(least: str, most: str, places: int) -> st.SearchStrategy[str]:
    found = st.decimals(Decimal(least), Decimal(most), places=places, allow_nan=False)
    return found.map(lambda value: f"{value:f}")


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Runs, rigs bought and perhaps sold, promises, payments ahead and credits, in any time zone."""
    zone = draw(st.sampled_from(ZONES))
    months, year, month = draw(st.integers(1, 15)), draw(st.integers(2026, 2028)), draw(st.integers(1, 12))
    starts = datetime(year, month, 1, tzinfo=ZoneInfo(zone)).astimezone(UTC)
    last = month - 1 + months
    ends = datetime(year + last // 12, last % 12 + 1, 1, tzinfo=ZoneInfo(zone)).astimezone(UTC)
    moments = st.integers(0, int((ends - starts).total_seconds()) - 2).map(
        lambda seconds: starts + timedelta(seconds=seconds)
    )
    ledger: list[Payment] = []
    for number in range(draw(st.integers(0, 6))):
        ledger += draw(_run(f"job-{number}", moments, ends))
    purchases = []
    for number in range(draw(st.integers(0, 2))):
        bought, payments = draw(_rig(f"rig-{number}", moments, ends))
        purchases.append(bought)
        ledger += payments
    promises = []
    for number in range(draw(st.integers(0, 2))):
        promise, payments = draw(_promise(f"plan-{number}", starts, ends, zone))
        promises.append(promise)
        ledger += payments
    return document(
        ledger, starts=starts, ends=ends, zone=zone, currency=draw(st.sampled_from(("USD", "EUR", "CNY"))),
        discount_rate=draw(st.sampled_from((0.0, 0.08))), purchases=purchases, commitments=promises,
    )  # fmt: skip


@st.composite
def _run(draw: st.DrawFn, job: str, moments: st.SearchStrategy[datetime], ends: datetime) -> list[Payment]:
    start = draw(moments)
    end = min(ends, start + timedelta(seconds=draw(st.integers(1, 90 * 86400))))
    quantity, price = draw(_decimals("0.000001", "2000", 12)), draw(_decimals("0.0001", "99", 6))
    listed = draw(st.sampled_from((None, Decimal(1), Decimal("1.5"))))
    ahead = draw(st.sampled_from(("operating", "operating", "prepaid")))
    due = start if ahead == "prepaid" else max(start, end - timedelta(seconds=1))
    about = {
        "job": job, "project": draw(st.sampled_from(("", "language", "=vision"))),
        "team": draw(st.sampled_from(("", "research"))), "expenditure": ahead, "start": start, "end": end,
        "provider": draw(st.sampled_from(("aws", "gcp", "lambda"))),
        "tags": draw(st.sampled_from(({}, {"stage": "production"}))),
        "purchase_model": draw(st.sampled_from(("on_demand", "spot"))),
        "description": f"{job}: compute", "price_ids": [f"price-of-{job}"],
    }  # fmt: skip
    if listed is not None:
        about["list_amount"] = f"{Decimal(quantity) * Decimal(price) * listed:f}"
    found = [payment(quantity, price, due, **about)]
    if draw(st.booleans()):
        found.append(payment("1", f"-{draw(_decimals('0.01', '9', 4))}", due, description="credit"))
    return found


@st.composite
def _rig(
    draw: st.DrawFn, rig: str, moments: st.SearchStrategy[datetime], ends: datetime
) -> tuple[dict[str, Any], list[Payment]]:
    ordered, count, asset = draw(moments), draw(st.integers(1, 3)), f"{rig}@made"
    usable = min(ends - timedelta(seconds=1), ordered + timedelta(days=draw(st.integers(0, 60))))
    sold = ends - timedelta(seconds=1) if draw(st.booleans()) else None
    about = {"expenditure": "capital", "asset": asset, "hardware": rig, "provider": "own", "region": "",
             "purchase_model": "buy", "unit": "each", "start": ordered, "end": ordered}  # fmt: skip
    found = [
        payment(str(count), draw(_decimals("1", "9999", 4)), ordered, category="purchase",
                description=f"{asset}: purchase part {part}", **about)
        for part in range(draw(st.integers(1, 3)))
    ]  # fmt: skip
    each = draw(_decimals("0.01", "5000", 8))
    if sold is not None:
        about |= {"expenditure": "disposal", "start": sold, "end": sold, "unit": "rig"}
        said = f"{asset}: sold"
        found.append(payment(str(count), f"-{each}", sold, category="resale", description=said, **about))
    bought = {
        "asset": asset, "rig": rig, "count": count, "ordered": written(ordered), "usable": written(usable),
        "unit_price": "0.00", "sold": written(sold) if sold else None,
        "resale_each": each if sold else None, "life_months": draw(st.sampled_from((1, 36, 48))),
    }  # fmt: skip
    return bought, found


@st.composite
def _promise(
    draw: st.DrawFn, name: str, starts: datetime, ends: datetime, zone: str
) -> tuple[dict[str, Any], list[Payment]]:
    from planner.reports.finance.months import pieces

    level, found = draw(_decimals("0.01", "20", 6)), []
    for _, start, end in pieces(starts, ends, ZoneInfo(zone)):
        hours = Decimal(int((end - start).total_seconds())) / 3600
        found.append(
            payment(f"{hours:f}", level, end - timedelta(seconds=1), category="commitment", unit="h",
                    description=f"promised spend {name}", purchase_model="savings_plan", start=start,
                    end=end, region="", hardware="")
        )  # fmt: skip
    promise = {
        "id": name, "provider": "aws", "kind": "savings_plan", "level_per_hour": level,
        "discount": draw(st.sampled_from((0.28, 0.5))), "start": written(starts), "end": written(ends),
        "used_share": draw(st.sampled_from((0.0, 0.6543, 1.0))), "held": False,
    }  # fmt: skip
    return promise, found
