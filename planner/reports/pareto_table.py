"""The answer to "what will it cost and take, on what?" as one page of text.

The front stands first, cheapest to fastest; under it the best of what it leaves, for comparison. On a narrow
screen columns are left out in the order of DROPPED; into a pipe everything is written and nothing is cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from planner.reports import figures
from planner.reports.lists import fitting, sentence, table
from planner.reports.look import Look
from planner.reports.plan_rows import Option, oldest_days, worth_showing
from planner.reports.tabular import Cell

DROPPED = ("batch", "precision", "per_gpu_hour", "age", "region", "per_epoch", "memory", "chance", "range")
"""Columns that make room, first to go first."""

OWNED = {
    "own": "power, wear and resale forgone of a rig at hand",
    "buy": "the whole purchase now",
    "amortised": "hours of a bought rig over its life",
}
"""What the three prices of a rig mean; they are never mixed."""

_SHOWN_ASSUMPTIONS = 3
_NARROW, _NAME = 100, 25
"""On a terminal of fewer columns, names are folded to so many: then 80 hold all that decides."""

RIGHT = frozenset({"cost", "range", "time", "per_epoch", "per_gpu_hour", "memory", "age", "chance"})
"""Columns of figures, set right."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The rows of the table and what stands in each cell, before anyone lays them out.

    headings: column -> heading, of the columns that any row fills. cells: column -> text, one mapping a row.
    """

    headings: Mapping[str, str]
    options: Sequence[Option]
    names: Sequence[str]
    cells: Sequence[Mapping[str, str]]


def shown(document: Mapping[str, Any], everything: bool = False) -> Shown:
    """What the table shows of a plan document. everything: all options, not only those worth seeing first."""
    options = document["options"] if everything else worth_showing(document["options"])
    names = labels(options)
    digits = max((len(str(option["rank"])) for option in options), default=1)
    headings = _headings(document) | {"rank": f"{'#':>{digits}}"}
    cells = [_cells(option, name, digits) for option, name in zip(options, names, strict=True)]
    filled = {key: heading for key, heading in headings.items() if any(row[key] for row in cells)}
    return Shown(filled, options, names, cells)


def pareto_table(document: Mapping[str, Any], look: Look, everything: bool = False) -> str:
    """A plan document as text. everything: all options, not only those worth showing first."""
    found = shown(document, everything)
    options, names, headings = found.options, found.names, found.headings
    cells = [{**row, "option": _folded(row["option"], look)} for row in found.cells]
    keys = list(headings)
    keys = fitting(keys, lambda key: _width([headings[key], *(row[key] for row in cells)]), look, DROPPED)
    body = table(
        [headings[key] for key in keys],
        [[row[key] for key in keys] for row in cells],
        {i for i, key in enumerate(keys) if key in RIGHT},
        look,
        ["bold" if option["pareto"] else "" for option in options],
    )
    above = "".join(sentence(line, look) for line in header(document))
    below = "".join(sentence(line, look) for line in footer(document, options, names))
    return f"{above}\n{body}\n{below}"


def brief_rows(document: Mapping[str, Any]) -> list[dict[str, Cell]]:
    """The same rows for Markdown and HTML: fewer columns than CSV, figures in full."""
    options = worth_showing(document["options"])
    currency = str(document["currency"])
    return [
        {
            "rank": option["rank"],
            "front": "★" if option["pareto"] else "",
            "option": name,
            "region": option["region"],
            f"total {currency}": Decimal(option["cost"]["p50"]),
            f"{currency} p10": Decimal(option["cost"]["p10"]),
            f"{currency} p90": Decimal(option["cost"]["p90"]),
            "hours": option["time_hours"]["p50"],
            f"{currency} per epoch": _decimal(option["cost_per_epoch"]),
            f"{currency} per GPU-hour": _decimal(option["price_per_gpu_hour"]),
            "precision": option["throughput"]["precision"],
            "memory used share": option["memory"]["used_share"],
            "price age days": oldest_days(option),
        }
        for option, name in zip(options, labels(options), strict=True)
    ]


def labels(options: Sequence[Option]) -> list[str]:
    """What each option is called; its region is added where the name alone would stand twice."""
    names = [_label(option) for option in options]
    twice = {name for name, times in Counter(names).items() if times > 1}
    return [
        f"{name} {option['region']}" if name in twice and option["region"] else name
        for option, name in zip(options, names, strict=True)
    ]


def header(document: Mapping[str, Any]) -> list[str]:
    """What is being asked, and how fresh the prices are."""
    job, currency = document["job"], document["currency"]
    amount = (
        f"{_number(job['epochs'])} {'epoch' if Decimal(job['epochs']) == 1 else 'epochs'}"
        if job["epochs"] is not None
        else ""
    )
    work = f"{figures.count(job['samples'])} samples"
    if job["size"] is not None:
        work += f" × {job['size']:,} {job['size_unit']}"
        if job["size_unit"] == "tokens":
            work += f" = {figures.count(job['samples'] * job['size'])} tokens"
    precisions = sorted({option["throughput"]["precision"] for option in document["options"]})
    about = [job["workload"], amount, work, f"global batch {job['global_batch_size']:,}", *_few(precisions)]
    oldest_day = str(document["oldest_price"])[:10]
    quotes = {price["id"] for option in document["options"] for price in option["prices"]}
    oldest = max((oldest_days(option) or 0 for option in document["options"]), default=0)
    lines = [
        " · ".join(part for part in about if part),
        f"Prices: {len(quotes)} quotes, oldest {figures.age(oldest)} ({oldest_day}) · "
        f"as of {str(document['as_of'])[:10]} · {currency} excl. tax",
    ]
    if document["limits"]:
        limits = " · ".join(f"{key.replace('_', ' ')} {value}" for key, value in document["limits"].items())
        lines.append(f"Limits: {limits}")
    return lines


def footer(document: Mapping[str, Any], options: Sequence[Option], names: Sequence[str]) -> list[str]:
    """What the marks mean, the ends of the front, what was assumed and left out, what to do next."""
    currency = document["currency"]
    front = [(option, name) for option, name in zip(options, names, strict=True) if option["pareto"]]
    in_all = len(document["options"])
    lines = [f"★ = no other option is both cheaper and faster ({len(front)} of {in_all} options)"]
    for what, (option, name) in (("Cheapest", front[0]), ("Fastest", front[-1])) if front else ():
        cost, time = figures.money(Decimal(option["cost"]["p50"])), figures.hours(option["time_hours"]["p50"])
        lines.append(f"{what}: {name}, {cost} {currency} in all, {time} h")
    kinds = {option["purchase_model"] for option in options}
    if kinds & OWNED.keys():
        lines.append("; ".join(f"{kind} = {means}" for kind, means in OWNED.items() if kind in kinds))
    assumptions = document["assumptions"]
    lines += [f"Assumed: {assumption['text']}" for assumption in assumptions[:_SHOWN_ASSUMPTIONS]]
    if len(assumptions) > _SHOWN_ASSUMPTIONS:
        lines.append(f"Assumed: {len(assumptions) - _SHOWN_ASSUMPTIONS} things more; --format json lists all")
    if document["excluded"]:
        reasons = Counter(excluded["code"] for excluded in document["excluded"]).most_common(4)
        said = ", ".join(f"{code.replace('_', ' ')} {times}" for code, times in reasons)
        lines.append(f"Left out: {len(document['excluded'])} ({said}; --format json says why)")
    lines.append("Next: --explain 1 (every term of a row), --all (every option), --provider aws, -o plan.csv")
    return lines


def _headings(document: Mapping[str, Any]) -> dict[str, str]:
    currency = document["currency"]
    return {
        "rank": "#", "option": "OPTION", "region": "REGION", "cost": f"TOTAL {currency}",
        "range": "80 % RANGE", "time": "HOURS", "chance": "CHANCE", "per_epoch": f"{currency}/EPOCH",
        "per_gpu_hour": f"{currency}/GPU-H", "precision": "PRECISION", "batch": "BATCH", "memory": "MEMORY",
        "age": "PRICE AGE",
    }  # fmt: skip


def _cells(option: Option, name: str, digits: int) -> dict[str, str]:
    cost, speed, memory = option["cost"], option["throughput"], option["memory"]
    chances = [chance for chance in option["chance"].values() if chance is not None]
    tight = " tight" if memory["fits"] == "too_close" else ""
    steps = f"×{speed['accumulation']}" if speed["accumulation"] > 1 else ""
    return {
        "rank": f"{option['rank']:>{digits}}{'★' if option['pareto'] else ''}",
        "option": name,
        "region": option["region"],
        "cost": figures.money(Decimal(cost["p50"])),
        "range": figures.money_range(Decimal(cost["p10"]), Decimal(cost["p90"])),
        "time": figures.hours(option["time_hours"]["p50"]),
        "chance": figures.share(min(chances)) if chances else "",
        "per_epoch": _optional(option["cost_per_epoch"]),
        "per_gpu_hour": _optional(option["price_per_gpu_hour"]),
        "precision": speed["precision"],
        "batch": f"{speed['micro_batch_size']}{steps}{' ckpt' if speed['activation_checkpointing'] else ''}",
        "memory": figures.share(memory["used_share"]) + tight,
        "age": figures.age(oldest_days(option)),
    }


def _label(option: Option) -> str:
    many = f"{option['count']}× " if option["count"] > 1 else ""
    return f"{many}{option['hardware']} {option['purchase_model'].replace('_', '-')}"


def _folded(name: str, look: Look) -> str:
    """The name over as many lines as a narrow terminal needs, broken where its parts end."""
    if not look.wrap or look.width is None or look.width >= _NARROW:
        return name
    lines = []
    while len(name) > _NAME:
        word = name.rfind(" ", 0, _NAME + 1)
        at = (word if word > 0 else max(name.rfind(mark, 0, _NAME) for mark in "._-")) + 1 or _NAME
        lines.append(name[:at].rstrip())
        name = name[at:]
    return "\n".join([*lines, name])


def _width(cells: Sequence[str]) -> int:
    return max(len(line) for cell in cells for line in cell.split("\n"))


def _few(names: Sequence[str]) -> Sequence[str]:
    return names if len(names) == 1 else [f"{len(names)} precisions"] if names else []


def _number(value: float) -> str:
    return f"{value:,.10g}"


def _optional(amount: str | None) -> str:
    return "" if amount is None else figures.money(Decimal(amount))


def _decimal(amount: str | None) -> Decimal | None:
    return None if amount is None else Decimal(amount)
