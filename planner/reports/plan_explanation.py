"""A plan explained, on one screen: its neighbours, what each limit is worth, what moves its cost most."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from planner.reports import figures
from planner.reports.lists import listing, sentence
from planner.reports.look import Look
from planner.reports.tabular import Cell

_VERDICT = {
    "binds": "binds",
    "found": "binds, as far as searched",
    "none": "does not bind",
    "unknown": "no saving found",
}


def explanation_rows(document: Mapping[str, Any]) -> list[dict[str, Cell]]:
    """Every limit and every input as one row each; amounts as numbers."""
    limits = [
        {
            "part": "limit",
            "name": f"{each['limit']} {each['item']}".strip(),
            **{key: each[key] for key in ("asked", "used", "step", "unit", "verdict", "how")},
            "saving": Decimal(each["saving"]),
            "saving_per_unit": Decimal(each["saving_per_unit"]),
            "saving_at_most": _decimal(each["saving_at_most"]),
        }
        for each in document["limits"]
    ]
    inputs = [
        {
            "part": "input",
            "name": each["input"],
            **{key: each[key] for key in ("low", "high", "range")},
            **{key: Decimal(each[key]) for key in ("cost_low", "cost_high", "span")},
        }
        for each in document["tornado"]
    ]
    return [*limits, *inputs]


def explanation_page(document: Mapping[str, Any], look: Look) -> str:
    """The same for a reader."""
    currency = document["currency"]
    cost, hours = document["cost"], document["time_hours"]
    head = (
        f"{document['plan']} = {_amount(cost['p50'])} {currency} "
        f"(80 % {_amount(cost['p10'])}–{_amount(cost['p90'])}), {float(hours['p50']):,.1f} h"
    )
    page = sentence(head, look) + "".join(sentence(line, look) for line in notes(document))
    page += "\nWhat a limit is worth (one moved at a time, the cheapest plan sought again):\n"
    page += listing(
        [_limit(each) for each in document["limits"]],
        {
            "limit": "LIMIT",
            "asked": "ASKED",
            "used": "USED",
            "verdict": "VERDICT",
            "saving": f"SAVES {currency}",
            "most": "AT MOST",
            "per": "FOR",
        },
        look,
        drop=("asked", "most", "per"),
    )
    page += "\nWhat moves its cost most (one input at a time, the plan kept):\n"
    page += listing(
        [
            {
                "input": each["input"],
                "range": f"{each['low']} to {each['high']}",
                "low": _amount(each["cost_low"]),
                "high": _amount(each["cost_high"]),
                "span": _amount(each["span"]),
                "why": each["range"],
            }
            for each in document["tornado"]
        ],
        {"input": "INPUT", "range": "FROM, TO", "low": "COST", "high": "TO", "span": "SPAN", "why": "RANGE"},
        look,
        drop=("why", "range"),
    )
    return page


def notes(document: Mapping[str, Any]) -> list[str]:
    """What must be known to read the figures."""
    found = []
    for each in document["neighbours"]:
        hours = float(each["hours_change"])
        way = "longer" if hours > 0 else "shorter"
        cost = f"{_amount(each['cost_change'], sign=True)} {document['currency']}"
        found.append(f"beside it: {each['plan']}, {cost} for {abs(hours):,.1f} h {way}")
    searched = document["searched"]
    if searched is not None and searched["gap"] > 0:
        found.append(
            f"the searches are not proven to the end (gap {searched['gap']:.1%}): AT MOST says what a saving "
            "could be; give --seconds for longer ones".replace("%)", " %)")
        )
    if not document["same_prices"]:
        found.append("the stored prices have changed since: limits are solved at the prices of now")
    return found


def _limit(each: Mapping[str, Any]) -> dict[str, Any]:
    step = "" if each["unit"] == "permission" else f"{each['step']} {each['unit']}"
    is_price = each["limit"] == "electricity"
    step = f"{each['unit']} more" if is_price else step
    return {
        "limit": f"{each['limit']} {each['item']}".strip(),
        "asked": each["asked"],
        "used": each["used"] or None,
        "verdict": "a price" if is_price else _VERDICT[each["verdict"]],
        "saving": _amount(each["saving"]),
        "most": None if each["saving_at_most"] is None or is_price else _amount(each["saving_at_most"]),
        "per": step or each["how"],
    }


def _amount(text: str, sign: bool = False) -> str:
    shown = figures.money(Decimal(text))
    return f"+{shown}" if sign and Decimal(text) > 0 else shown


def _decimal(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)
