"""From optimizer steps to hours: start-up, training, checkpoints, and what interruptions add."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from . import money
from .answer import Job, TimeLine
from .assumptions import Assumptions, Figure
from .options import Variant
from .spot import best_segments, expected_run
from .terms import Interruptions, Terms

_SECONDS_PER_HOUR = 3600
# A hundred thousand years: past it, and infinity with it, a run is not expected to end.
_ENDLESS_HOURS = 1e9


@dataclass(frozen=True, slots=True)
class Timed:
    """The hours of one run. paid: those in which the machine is held; wall: all of them. [h]

    lines: their terms, which add up to wall; made when asked for, since most rows are only compared.
    """

    wall: Decimal
    paid: Decimal
    lines: Callable[[], tuple[TimeLine, ...]]
    interruptions: Interruptions | None = None


class Run:
    """One variant doing the whole job. Its hours are worked out once, whatever is paid for them."""

    def __init__(self, variant: Variant, job: Job, terms: Terms) -> None:
        self.variant = variant
        self.job = job
        self._terms = terms
        # (paid hours, price per GPU) -> what a seller's price is multiplied by; many regions share it.
        self.billed: dict[tuple[Decimal, bool], Decimal] = {}

    @cached_property
    def training(self) -> Decimal:
        """steps × seconds of a step. [h]"""
        return money.quantity(self.job.steps * self.variant.step.step_seconds / _SECONDS_PER_HOUR)

    @cached_property
    def start(self) -> Figure:
        """From the request until training runs. [h]"""
        owned = self.variant.machine.provider == "own"
        return self._terms.assume.figure("own_start_hours" if owned else "cloud_start_hours")

    @cached_property
    def steady(self) -> Timed:
        """On hardware that nobody takes away: start-up, training and periodic checkpoints."""
        interval = self._terms.assume["checkpoint_interval_hours"]
        writes = max(1, math.ceil(self.training / interval)) if interval else 1
        saving = money.quantity(writes * self._terms.checkpoint_hours)
        total = money.quantity(self.start.value) + self.training + saving

        def lines() -> tuple[TimeLine, ...]:
            formula = (
                f"{writes:,} writes × {_seconds(self._terms.checkpoint_hours)}: one each {interval:f} h "
                "and at the end"
            )
            return self._lines(TimeLine("checkpoints", saving, formula, "assumptions", "assumed"))

        return Timed(total, total, lines)

    @cached_property
    def interrupted(self) -> Timed | None:
        """On spot; None where the run is not expected to end: too much work between losses."""
        assume = self._terms.assume
        figure = assume.figure("spot_mean_hours_to_loss")
        mean_to_loss, checkpoint = float(figure.value), float(self._terms.checkpoint_hours)
        outage, restart = float(assume["spot_mean_outage_hours"]), float(assume["spot_restart_hours"])
        work = float(self.training)
        segments = best_segments(work, checkpoint, mean_to_loss)
        interval = work / segments if segments else 0.0
        expected = expected_run(
            work,
            segments=segments,
            checkpoint=checkpoint,
            restart=restart,
            mean_to_loss=mean_to_loss,
            outage=outage,
        )
        if expected.wall > _ENDLESS_HOURS:
            return None
        redone = max(money.ZERO, money.quantity(expected.paid) - self.training)
        waiting = money.quantity(expected.waiting)
        paid = money.quantity(self.start.value) + self.training + redone

        def lines() -> tuple[TimeLine, ...]:
            losses = f"{expected.losses:.3g} losses"
            again = (
                f"{losses} expected, one each {mean_to_loss:g} h; checkpoint of "
                f"{_seconds(self._terms.checkpoint_hours)} each {interval:.3g} h; restart {restart:g} h: "
                "n e^(R/M) (e^((tau+C)/M) - 1) M - training"
            )
            idle = f"{losses} × {outage:g} h without capacity, not billed"
            return self._lines(
                TimeLine("checkpoints and work redone", redone, again, figure.source, "modelled"),
                TimeLine("waiting for capacity", waiting, idle, figure.source, "modelled"),
            )

        facts = Interruptions(expected, interval, checkpoint, restart, mean_to_loss, outage)
        return Timed(paid + waiting, paid, lines, facts)

    def _lines(self, *more: TimeLine) -> tuple[TimeLine, ...]:
        """Start-up, training and what else takes time."""
        start, seconds = self.start, self.variant.step.step_seconds
        return (
            TimeLine("start-up", money.quantity(start.value), start.note, start.source, "assumed"),
            TimeLine(
                "training",
                self.training,
                f"{self.job.steps:,} steps × {seconds:.6g} s / 3600",
                "step time estimate",
                "modelled",
            ),
            *(line for line in more if line.hours),
        )


def checkpoint_hours(parameters: int, assume: Assumptions) -> Decimal:
    """One write of the whole training state. [h]"""
    size = parameters * assume["checkpoint_bytes_per_parameter"]
    return size / assume["checkpoint_bytes_per_second"] / _SECONDS_PER_HOUR


def _seconds(hours: Decimal) -> str:
    return f"{float(hours) * _SECONDS_PER_HOUR:.3g} s"
