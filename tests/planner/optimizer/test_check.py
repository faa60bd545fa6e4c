"""The second opinion notices every way in which a plan could contradict itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest
from made_up import machine, offer, plan

from planner.answer import PlanOption
from planner.errors import InternalError
from planner.optimizer.check import check_options

Options = list[PlanOption]
Places = list[str]
Points = list[tuple[str, Decimal, Decimal]]


def _sound() -> tuple[Options, Places, Points]:
    hours = {"a100-sxm4-40gb": 2.0, "a100-sxm4-80gb": 4.0}
    slow = machine("slow", gpu="a100-sxm4-80gb")
    offers = [offer("fast", "10"), offer("slow", "1"), offer("slow", "3", region="eu-west-1")]
    options = list(plan([machine("fast"), slow], offers, hours).options)
    points = [(str(i), o.time_hours.p50, o.cost.p50) for i, o in enumerate(options)]
    return options, [place for place, _, _ in points], points


def test_a_sound_plan_passes() -> None:
    check_options(*_sound())


def _line(options: Options, **changed: object) -> None:
    line = replace(options[0].cost_lines[0], **changed)  # type: ignore[arg-type]
    options[0] = replace(options[0], cost_lines=(line,))


def _amount(o: Options, _: Places, __: Points) -> None:
    _line(o, amount=o[0].cost_lines[0].amount + Decimal("0.000001"))


def _another_line(o: Options, _: Places, __: Points) -> None:
    o[0] = replace(o[0], cost_lines=o[0].cost_lines * 2)


def _time(o: Options, _: Places, __: Points) -> None:
    o[0] = replace(o[0], time_lines=(replace(o[0].time_lines[1], hours=Decimal(5)), *o[0].time_lines))


def _steps(o: Options, _: Places, __: Points) -> None:
    o[0] = replace(o[0], throughput=replace(o[0].throughput, steps=7))


def _batch(o: Options, _: Places, __: Points) -> None:
    o[0] = replace(o[0], throughput=replace(o[0].throughput, micro_batch_size=3))


def _range(o: Options, _: Places, __: Points) -> None:
    o[0] = replace(o[0], cost=replace(o[0].cost, p10=o[0].cost.p50 + 1))


def _hours_range(o: Options, _: Places, __: Points) -> None:
    o[0] = replace(o[0], time_hours=replace(o[0].time_hours, p90=Decimal("0.1")))


def _beaten_on_the_front(o: Options, _: Places, __: Points) -> None:
    o[-1] = replace(o[-1], pareto=True, dominated_by=None)


def _wrong_witness(o: Options, _: Places, __: Points) -> None:
    o[-1] = replace(o[-1], dominated_by=o[1].id)


def _unknown_witness(o: Options, _: Places, __: Points) -> None:
    o[-1] = replace(o[-1], dominated_by="nobody")


def _missing_on_the_front(o: Options, p: Places, points: Points) -> None:
    points.append(("hidden", Decimal("0.5"), Decimal("0.5")))


def _left_out(o: Options, p: Places, points: Points) -> None:
    points.append(("hidden", Decimal("0.5"), Decimal(1000)))


def _twice(o: Options, p: Places, points: Points) -> None:
    o[1] = replace(o[1], id=o[0].id)


def _other_cost(o: Options, p: Places, points: Points) -> None:
    points[0] = (points[0][0], points[0][1], points[0][2] - Decimal("0.01"))


@pytest.mark.parametrize(
    "tamper",
    [
        _amount,
        _another_line,
        _time,
        _steps,
        _batch,
        _range,
        _hours_range,
        _beaten_on_the_front,
        _wrong_witness,
        _unknown_witness,
        _missing_on_the_front,
        _left_out,
        _twice,
        _other_cost,
    ],
    ids=lambda tamper: tamper.__name__.strip("_"),
)
def test_a_plan_that_contradicts_itself_is_not_printed(
    tamper: Callable[[Options, Places, Points], None],
) -> None:
    options, places, points = _sound()
    tamper(options, places, points)
    with pytest.raises(InternalError):
        check_options(options, places, points)
