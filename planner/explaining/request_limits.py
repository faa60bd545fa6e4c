"""What each limit of a single run's plan is worth: the whole request planned again with one key moved.

Everything that could run the job is priced and compared each time, so these figures are exact, not searched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner import money
from planner.errors import Infeasible, NoPrice, UsageError
from planner.request import OptimizeRequest

from .records import Worth

if TYPE_CHECKING:
    from planner.plan import Plan

_HOUR = Decimal(1)
Changed = tuple[str, str, str, Decimal, str, str, OptimizeRequest]


def limits_of(
    document: Mapping[str, Any],
    option: Mapping[str, Any],
    optimize: Callable[[OptimizeRequest], Plan],
) -> tuple[tuple[Worth, ...], bool]:
    """(worth of every limit, whether the store still says what the plan was made from).

    The cheapest option under all limits is compared, whichever option is explained.
    Raises UsageError where the file does not say what was asked for.
    """
    given = document.get("request")
    if not given:
        raise UsageError("this plan file does not hold its request; plan again: planner optimize …")
    request = OptimizeRequest.of(**{**given, "as_of": document["as_of"]})
    base = optimize(request)
    cost = min(each.cost.p50 for each in base.options)
    found = []
    for limit, item, asked, step, unit, how, changed in _moves(request, document):
        try:
            then = min(each.cost.p50 for each in optimize(changed).options)
        except (Infeasible, NoPrice):
            continue
        saving = cost - then
        found.append(
            Worth(
                limit=limit,
                item=item,
                asked=asked,
                step=step,
                unit=unit,
                saving=saving,
                at_most=saving,
                verdict="binds" if saving else "none",
                how=how,
                used=_used(limit, option, document),
                kept=_kept(limit, option),
            )
        )
    return tuple(found), base.snapshot == document["snapshot"]


def _moves(request: OptimizeRequest, document: Mapping[str, Any]) -> Iterator[Changed]:
    currency = request.currency
    if request.deadline is not None:
        later = _later(request.deadline)
        asked = str(document["limits"].get("deadline", ""))
        yield "deadline", "", asked, _HOUR, "h", "an hour later", replace(request, deadline=later)
    if not request.spot and request.spot is not None:
        yield "spot", "", "none", Decimal(1), "permission", "spot offers as well", replace(request, spot=None)
    twice = request.max_gpus * 2
    yield (
        "quota", "", f"{request.max_gpus} GPUs at most", Decimal(request.max_gpus), "GPU", "twice as many",
        replace(request, max_gpus=twice),
    )  # fmt: skip
    for key in ("gpu", "provider", "region", "precision"):
        names = getattr(request, key)
        if names:
            asked, freed = ", ".join(names), replace(request, **{key: ()})  # type: ignore[arg-type]
            yield key, "", asked, Decimal(1), "permission", f"any {key}", freed
    price = electricity_of(document, request)
    if price is not None:
        dearer = replace(request, electricity_price=price + Decimal("0.01"))
        asked = f"{price:f} {currency}/kWh"
        yield "electricity", "", asked, Decimal(1), f"0.01 {currency}/kWh", "dearer", dearer


def electricity_of(document: Mapping[str, Any], request: OptimizeRequest) -> Decimal | None:
    """The price of a kWh that the plan used; None where it used none. [currency/kWh]"""
    if request.electricity_price is not None:
        return request.electricity_price
    for option in document["options"]:
        for line in option["cost_lines"]:
            if line["unit"] == "kWh":
                return Decimal(line["unit_price"])
    return None


def _later(deadline: Decimal | datetime) -> Decimal | datetime:
    return deadline + timedelta(hours=1) if isinstance(deadline, datetime) else deadline + _HOUR


def _used(limit: str, option: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    if limit == "deadline":
        return f"{option['time_hours']['p50']:.2f} h"
    if limit == "quota":
        return f"{option['gpu_count']} GPUs"
    if limit == "electricity":
        return f"{_kwh(option):f} kWh"
    return str(option.get(limit, "")) if limit in ("gpu", "provider", "region") else ""


def _kept(limit: str, option: Mapping[str, Any]) -> Decimal | None:
    return money.quantity(_kwh(option) * Decimal("0.01")) if limit == "electricity" else None


def _kwh(option: Mapping[str, Any]) -> Decimal:
    return money.total(Decimal(line["quantity"]) for line in option["cost_lines"] if line["unit"] == "kWh")
