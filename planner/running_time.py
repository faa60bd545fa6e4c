"""From optimizer steps to hours: start-up, training, checkpoints, and what interruptions add."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from . import money
from .answer import Job, TimeLine
from .assumptions import Assumptions
from .options import Variant
from .spot import expected_run, young_interval
from .terms import Interruptions, Terms

_SECONDS_PER_HOUR = 3600
# Nobody writes a checkpoint oftener than each five minutes, however cheap the write. [h]
_SHORTEST_INTERVAL = 1 / 12


@dataclass(frozen=True, slots=True)
class Timed:
    """The hours of one run. lines add up to wall; paid is the part in which the machine is held. [h]"""

    lines: tuple[TimeLine, ...]
    wall: Decimal
    paid: Decimal
    interruptions: Interruptions | None = None


class Run:
    """One variant doing the whole job. Its hours are worked out once, whatever is paid for them."""

    def __init__(self, variant: Variant, job: Job, terms: Terms) -> None:
        self.variant = variant
        self.job = job
        self._terms = terms

    @cached_property
    def training(self) -> TimeLine:
        """steps × seconds of a step."""
        seconds = self.variant.step.step_seconds
        hours = money.quantity(self.job.steps * seconds / _SECONDS_PER_HOUR)
        formula = f"{self.job.steps:,} steps × {seconds:.6g} s / 3600"
        return TimeLine("training", hours, formula, "step time estimate", "modelled")

    @cached_property
    def start(self) -> TimeLine:
        """From the request until training runs."""
        owned = self.variant.machine.provider == "own"
        figure = self._terms.assume.figure("own_start_hours" if owned else "cloud_start_hours")
        return TimeLine("start-up", money.quantity(figure.value), figure.note, figure.source, "assumed")

    @cached_property
    def steady(self) -> Timed:
        """On hardware that nobody takes away: start-up, training and periodic checkpoints."""
        lines = [self.start, self.training]
        interval = self._terms.assume["checkpoint_interval_hours"]
        writes = max(1, math.ceil(self.training.hours / interval)) if interval else 1
        hours = money.quantity(writes * self._terms.checkpoint_hours)
        if hours:
            formula = (
                f"{writes:,} writes × {_seconds(self._terms.checkpoint_hours)}: one each {interval:f} h "
                "and at the end"
            )
            lines.append(TimeLine("checkpoints", hours, formula, "assumptions", "assumed"))
        total = money.total(line.hours for line in lines)
        return Timed(tuple(lines), total, total)

    @cached_property
    def interrupted(self) -> Timed | None:
        """On spot; None where the run is not expected to end: too much work between losses."""
        assume = self._terms.assume
        figure = assume.figure("spot_mean_hours_to_loss")
        mean_to_loss, checkpoint = float(figure.value), float(self._terms.checkpoint_hours)
        outage, restart = float(assume["spot_mean_outage_hours"]), float(assume["spot_restart_hours"])
        interval = max(young_interval(checkpoint, mean_to_loss), _SHORTEST_INTERVAL)
        training = self.training.hours
        expected = expected_run(
            float(training),
            interval=interval,
            checkpoint=checkpoint,
            restart=restart,
            mean_to_loss=mean_to_loss,
            outage=outage,
        )
        if not math.isfinite(expected.wall):
            return None
        redone = max(money.ZERO, money.quantity(expected.paid) - training)
        waiting = money.quantity(expected.waiting)
        lines = [self.start, self.training]
        if redone:
            formula = (
                f"{expected.losses:.3g} losses expected, one each {mean_to_loss:g} h; checkpoint of "
                f"{_seconds(self._terms.checkpoint_hours)} each {interval:.3g} h; restart {restart:g} h: "
                "n e^(R/M) (e^((tau+C)/M) - 1) M - training"
            )
            lines.append(TimeLine("checkpoints and work redone", redone, formula, figure.source, "modelled"))
        if waiting:
            formula = f"{expected.losses:.3g} losses × {outage:g} h without capacity, not billed"
            lines.append(TimeLine("waiting for capacity", waiting, formula, figure.source, "modelled"))
        paid = money.total((self.start.hours, training, redone))
        facts = Interruptions(expected, interval, checkpoint, restart, mean_to_loss, outage)
        return Timed(tuple(lines), paid + waiting, paid, facts)


def checkpoint_hours(parameters: int, assume: Assumptions) -> Decimal:
    """One write of the whole training state. [h]"""
    size = parameters * assume["checkpoint_bytes_per_parameter"]
    return size / assume["checkpoint_bytes_per_second"] / _SECONDS_PER_HOUR


def _seconds(hours: Decimal) -> str:
    return f"{float(hours) * _SECONDS_PER_HOUR:.3g} s"
