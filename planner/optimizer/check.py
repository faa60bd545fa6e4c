"""A second opinion on every plan, that shares no code with what made it.

Money is added again in whole numbers (units of 1e-40) from quantity × unit price, hours from steps × seconds,
and every verdict about the front is compared with a witness or with all other points. A disagreement is a
fault of ours: the plan is not printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from typing import TYPE_CHECKING

from ..errors import InternalError

if TYPE_CHECKING:
    from ..answer import PlanOption

# Half a step of the rounding (1e-6 h) for each of up to four time lines, and float seconds.
_HOURS_TOLERANCE = 1e-5
_PLACES = 40
_SCALE = 10**_PLACES
_DIGITS = Context(prec=120)

Point = tuple[int, int]


def check_options(
    options: Sequence[PlanOption], places: Sequence[str], points: Sequence[tuple[str, Decimal, Decimal]]
) -> None:
    """Raises InternalError where the options contradict themselves, one another or the points.

    points: (place, hours, cost) of everything that was compared. places: where among them each option stands.
    """
    raw = {place: (_whole(hours), _whole(cost)) for place, hours, cost in points}
    place_of = {option.id: place for option, place in zip(options, places, strict=True)}
    if len(place_of) != len(options) or len(set(places)) != len(options) or len(raw) != len(points):
        raise InternalError("two options have one id or place")
    for option in options:
        _check_money(option)
        _check_hours(option)
        if raw[place_of[option.id]] != (_whole(option.time_hours.p50), _whole(option.cost.p50)):
            raise InternalError(f"{option.id}: compared at another cost or time than printed")
    _check_front(options, place_of, raw)


def _whole(value: Decimal) -> int:
    """The number in units of 1e-40."""
    scaled = _DIGITS.scaleb(value, _PLACES)
    whole = int(scaled)
    if whole != scaled:
        raise InternalError(f"{value} has more than {_PLACES} decimals")
    return whole


def _check_money(option: PlanOption) -> None:
    total = 0
    for line in option.cost_lines:
        amount = _whole(line.amount)
        if _whole(line.quantity) * _whole(line.unit_price) != amount * _SCALE:
            raise InternalError(f"{option.id}: {line.item} is not quantity × unit price")
        total += amount
    if total != _whole(option.cost.p50):
        raise InternalError(f"{option.id}: the cost lines do not add up to {option.cost.p50}")
    if not option.cost.p10 <= option.cost.p50 <= option.cost.p90:
        raise InternalError(f"{option.id}: P10, P50 and P90 of the cost are out of order")


def _check_hours(option: PlanOption) -> None:
    told = float(option.time_hours.p50)
    if abs(sum(float(line.hours) for line in option.time_lines) - told) > _HOURS_TOLERANCE:
        raise InternalError(f"{option.id}: the time lines do not add up to {told} h")
    speed = option.throughput
    trained = speed.steps * speed.step_seconds / 3600
    printed = next(float(line.hours) for line in option.time_lines if line.item == "training")
    if abs(trained - printed) > _HOURS_TOLERANCE:
        raise InternalError(f"{option.id}: steps × seconds is {trained} h, not {printed}")
    batch = speed.micro_batch_size * speed.accumulation * option.gpu_count
    if batch != speed.global_batch_size:
        raise InternalError(f"{option.id}: its micro-batches make a global batch of {batch}")
    if not option.time_hours.p10 <= option.time_hours.p50 <= option.time_hours.p90:
        raise InternalError(f"{option.id}: P10, P50 and P90 of the time are out of order")


def _check_front(
    options: Sequence[PlanOption], place_of: Mapping[str, str], raw: Mapping[str, Point]
) -> None:
    """Front points against every point; all others against one on the front that must beat them."""
    front = {place_of[option.id]: option.id for option in options if option.pareto}
    for option in options:
        if option.pareto != (option.dominated_by is None):
            raise InternalError(f"{option.id}: both on the front and dominated, or neither")
        witness = None if option.dominated_by is None else place_of.get(option.dominated_by, "")
        if witness is not None and (
            witness not in front or not _beats(raw[witness], raw[place_of[option.id]])
        ):
            raise InternalError(f"{option.id}: said to be beaten by {option.dominated_by}, which does not")
    best = [raw[place] for place in front]
    for place, name in front.items():
        if any(_beats(other, raw[place]) for other in raw.values()):
            raise InternalError(f"{name}: on the front, but another option beats it")
    for place, (hours, cost) in raw.items():
        if place in front:
            continue
        for other_hours, other_cost in best:
            if other_hours <= hours and other_cost <= cost and (other_hours < hours or other_cost < cost):
                break
        else:
            raise InternalError(f"row {place}: nothing on the front beats it, yet it is not there")


def _beats(a: Point, b: Point) -> bool:
    return a[0] <= b[0] and a[1] <= b[1] and a != b
