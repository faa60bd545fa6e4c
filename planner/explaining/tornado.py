"""The inputs that move a plan's cost most, each moved alone while the plan is kept as it is.

Ranges are the ones the plan was simulated with: the 80 % band of a predicted speed, the 10 % and 90 % points
of an assumption. An input for which no range is known is moved by a tenth either way, and says so. Hours are
moved without rounding to a seller's billing step. Left out, since their ranges are inside the simulation
only: how often spot machines are taken, and resale forgone of rigs at hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from planner import money
from planner.assumptions import Assumptions, assumptions

from .lines import BY_HOURS, Costed, Line, costed
from .records import Bar

MOST_BARS = 10
_TENTH = Decimal("0.1")
_CONVENTION = "a tenth either way: no range is known"
_SECONDS_PER_YEAR = 365 * 24 * 3600

# Of one line: by what factor it moves. A line that an input does not touch has the factor 1.
Move = Callable[[Line], float]


def tornado(document: Mapping[str, Any], plan: Mapping[str, Any]) -> tuple[Bar, ...]:
    """The ten inputs of the widest span, widest first; those that move nothing are left out."""
    cost = costed(document, plan)
    assume = assumptions(_assumed(document))
    bars = [*_speeds(cost), *_work(cost), *_prices(cost, document), *_energy(cost, assume)]
    bars += [*_resale(cost, plan, assume), *_start_up(cost, assume)]
    moving = [bar for bar in bars if bar.span]
    return tuple(sorted(moving, key=lambda bar: (-bar.span, bar.input))[:MOST_BARS])


def _assumed(document: Mapping[str, Any]) -> dict[str, Decimal]:
    """What the user put in place of assumptions."""
    given = (document.get("schedule") or document.get("request") or {}).get("assume") or {}
    return {key: Decimal(str(value)) for key, value in given.items()}


def _bar(cost: Costed, name: str, low: str, high: str, range: str, moves: tuple[Move, Move]) -> Bar:
    def moved(move: Move) -> Decimal:
        changes = (line.amount * Decimal(str(move(line) - 1.0)) for line in cost.lines)
        return money.quantity(cost.total + sum(changes, Decimal(0)))

    return Bar(name, low, high, range, moved(moves[0]), moved(moves[1]))


def _tenth(cost: Costed, name: str, touched: Callable[[Line], bool]) -> Bar:
    def by(factor: float) -> Move:
        return lambda line: factor if touched(line) else 1.0

    return _bar(cost, name, "−10 %", "+10 %", _CONVENTION, (by(0.9), by(1.1)))


def _groups(cost: Costed, key: Callable[[Line], str | None]) -> Iterable[str]:
    return sorted({name for line in cost.lines if (name := key(line)) is not None})


def _share(option: Mapping[str, Any], item: str) -> float:
    """What part of a run's hours one time line is."""
    hours = {line["item"]: float(line["hours"]) for line in option["time_lines"]}
    return hours.get(item, 0.0) / max(sum(hours.values()), 1e-12)


def _speeds(cost: Costed) -> Iterator[Bar]:
    """Each workload on each card, over the 80 % band of its step time."""
    found: dict[str, dict[int, tuple[float, float]]] = {}
    for place, run in enumerate(cost.runs):
        speed, share = run.option["throughput"], _share(run.option, "training")
        ends = ("step_seconds_low", "step_seconds_high")
        fast, slow = (speed[key] / speed["step_seconds"] - 1 for key in ends)
        name = f"speed of {run.workload} on {run.option['gpu']}"
        found.setdefault(name, {})[place] = (1 + share * fast, 1 + share * slow)
    for name, factors in found.items():

        def by(end: int, factors: Mapping[int, tuple[float, float]] = factors) -> Move:
            def move(line: Line) -> float:
                moved = line.category in BY_HOURS and line.job in factors
                return factors[line.job or 0][end] if moved else 1.0

            return move

        yield _bar(cost, name, "fast", "slow", "80 % band of the estimate", (by(0), by(1)))


def _work(cost: Costed) -> Iterator[Bar]:
    """How much each job trains."""
    for group in dict.fromkeys(run.group for run in cost.runs):
        places = {place for place, run in enumerate(cost.runs) if run.group == group}
        yield _tenth(
            cost,
            f"amount of training of {group}",
            lambda line, places=places: line.category in BY_HOURS and line.job in places,  # type: ignore[misc]
        )


def _prices(cost: Costed, document: Mapping[str, Any]) -> Iterator[Bar]:
    """Each rented machine, each rig bought (its resale goes with it), the keep, promises and currencies."""
    assume = assumptions(_assumed(document))

    def rented(line: Line) -> str | None:
        if line.category != "compute":
            return None
        return f"{line.purchase_model.replace('_', ' ')} price of {line.hardware}"

    for name in _groups(cost, rented):
        if name.startswith("spot "):
            spread = float(assume["spot_price_spread"])
            yield _spread(cost, name, spread, lambda line, name=name: rented(line) == name)  # type: ignore[misc]
        else:
            yield _tenth(cost, name, lambda line, name=name: rented(line) == name)  # type: ignore[misc]

    def bought(line: Line) -> str | None:
        paid = line.category in ("purchase", "resale", "tax")
        return f"purchase price of {line.hardware}" if paid else None

    for name in _groups(cost, bought):
        yield _tenth(cost, name, lambda line, name=name: bought(line) == name)  # type: ignore[misc]
    keep = {"hosting": "staff and hosting", "staff": "staff", "commitment": "promised spend",
            "amortised": "a rig's hour over its life", "maintenance": "upkeep"}  # fmt: skip
    for category, name in keep.items():
        yield _tenth(cost, name, lambda line, category=category: line.category == category)  # type: ignore[misc]
    of_runs = (price for run in cost.runs for price in run.option["prices"])
    foreign = {
        price["id"]: price["currency"]
        for price in [*(document.get("prices") or ()), *of_runs]
        if price["currency"] != document["currency"]
    }

    def currency(line: Line) -> str | None:
        return next((f"rate of {foreign[each]}" for each in line.price_ids if each in foreign), None)

    for name in _groups(cost, currency):
        yield _tenth(cost, name, lambda line, name=name: currency(line) == name)  # type: ignore[misc]


def _spread(cost: Costed, name: str, spread: float, touched: Callable[[Line], bool]) -> Bar:
    def by(factor: float) -> Move:
        return lambda line: factor if touched(line) else 1.0

    said = "10 % and 90 % points of the assumption"
    return _bar(cost, name, f"÷ {spread:g}", f"× {spread:g}", said, (by(1 / spread), by(spread)))


def _energy(cost: Costed, assume: Assumptions) -> Iterator[Bar]:
    spread = float(assume["electricity_spread"])
    yield _spread(cost, "electricity price", spread, lambda line: line.category == "energy")
    yield _tenth(cost, "power draw and PUE of owned rigs", lambda line: line.category == "energy")


def _resale(cost: Costed, plan: Mapping[str, Any], assume: Assumptions) -> Iterator[Bar]:
    """V e^(-k t): a decay k' instead of k moves the resale by e^(-(k' - k) t)."""
    years: dict[str, float] = {}
    for bought in plan.get("purchases") or ():
        if bought["sold"] is not None:
            held = datetime.fromisoformat(bought["sold"]) - datetime.fromisoformat(bought["usable"])
            years[bought["rig"]] = held.total_seconds() / _SECONDS_PER_YEAR
    figure = assume.figure("resale_decay_per_year")

    def by(end: Decimal) -> Move:
        def move(line: Line) -> float:
            held = years.get(line.hardware) if line.category == "resale" else None
            return 1.0 if held is None else math.exp(-float(end - figure.value) * held)

        return move

    if years:
        said = "10 % and 90 % points of the assumption"
        wide = (f"{figure.low - figure.value:+f}/y", f"{figure.high - figure.value:+f}/y")
        yield _bar(cost, "how fast rigs lose value", *wide, said, (by(figure.low), by(figure.high)))


def _start_up(cost: Costed, assume: Assumptions) -> Iterator[Bar]:
    figure = assume.figure("cloud_start_hours")
    if not figure.value:
        return
    rented = {
        place: _share(run.option, "start-up")
        for place, run in enumerate(cost.runs)
        if run.option["provider"] != "own"
    }

    def by(end: Decimal) -> Move:
        factor = float(end / figure.value) - 1

        def move(line: Line) -> float:
            touched = line.category == "compute" and line.job in rented
            return 1 + rented[line.job or 0] * factor if touched else 1.0

        return move

    said = "10 % and 90 % points of the assumption"
    ends = (f"{figure.low:f} h", f"{figure.high:f} h")
    yield _bar(cost, "start-up of rented machines", *ends, said, (by(figure.low), by(figure.high)))
