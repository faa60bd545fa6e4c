"""From optimizer steps to hours: start-up, training, checkpoints, and what interruptions add."""

from __future__ import annotations

import math
from decimal import Decimal

from . import money
from .answer import Job, TimeLine
from .assumptions import Assumptions
from .options import Variant
from .spot import expected_run, young_interval
from .terms import Interruptions, Run, Terms

_SECONDS_PER_HOUR = 3600
# Nobody writes a checkpoint oftener than each five minutes, however cheap the write. [h]
_SHORTEST_INTERVAL = 1 / 12


def run_of(variant: Variant, job: Job) -> Run:
    """Training hours of the whole job: steps × seconds of a step."""
    seconds = job.steps * variant.step.step_seconds
    return Run(
        money.quantity(seconds / _SECONDS_PER_HOUR),
        f"{job.steps:,} steps × {variant.step.step_seconds:.6g} s / 3600",
    )


def checkpoint_hours(parameters: int, assume: Assumptions) -> Decimal:
    """One write of the whole training state. [h]"""
    size = parameters * assume["checkpoint_bytes_per_parameter"]
    return size / assume["checkpoint_bytes_per_second"] / _SECONDS_PER_HOUR


def uninterrupted_hours(variant: Variant, run: Run, terms: Terms) -> tuple[TimeLine, ...]:
    """Start-up, training and periodic checkpoints on hardware that nobody takes away."""
    lines = [_start(variant, terms), _training(run)]
    interval = terms.assume["checkpoint_interval_hours"]
    writes = max(1, math.ceil(run.training / interval)) if interval else 1
    hours = money.quantity(writes * terms.checkpoint_hours)
    if hours:
        formula = (
            f"{writes:,} writes × {_seconds(terms.checkpoint_hours)}: one each {interval:f} h and at the end"
        )
        lines.append(TimeLine("checkpoints", hours, formula, "assumptions", "assumed"))
    return tuple(lines)


def interrupted_hours(
    variant: Variant, run: Run, terms: Terms
) -> tuple[tuple[TimeLine, ...], Decimal, Interruptions | None]:
    """Time lines of a run on spot, the hours of it that are paid, and what the simulation needs.

    None instead of the last where the run would not end: too much work between losses.
    """
    start, training = _start(variant, terms), _training(run)
    mean_to_loss = float(terms.assume["spot_mean_hours_to_loss"])
    outage = float(terms.assume["spot_mean_outage_hours"])
    restart = float(terms.assume["spot_restart_hours"])
    checkpoint = float(terms.checkpoint_hours)
    interval = max(young_interval(checkpoint, mean_to_loss), _SHORTEST_INTERVAL)
    expected = expected_run(
        float(run.training),
        interval=interval,
        checkpoint=checkpoint,
        restart=restart,
        mean_to_loss=mean_to_loss,
        outage=outage,
    )
    if not math.isfinite(expected.wall):
        return (start, training), start.hours + run.training, None
    redone = money.quantity(max(Decimal(0), money.quantity(expected.paid) - run.training))
    waiting = money.quantity(expected.waiting)
    source = terms.assume.figure("spot_mean_hours_to_loss").source
    lines = [start, training]
    if redone:
        formula = (
            f"{expected.losses:.3g} losses expected: one each {mean_to_loss:g} h, checkpoint each "
            f"{interval:.3g} h (sqrt(2CM)) of {_seconds(terms.checkpoint_hours)}, restart {restart:g} h; "
            "n e^(R/M) (e^((tau+C)/M) - 1) M - training"
        )
        lines.append(TimeLine("checkpoints and work redone", redone, formula, source, "modelled"))
    if waiting:
        formula = f"{expected.losses:.3g} losses × {outage:g} h without capacity, not billed"
        lines.append(TimeLine("waiting for capacity", waiting, formula, source, "modelled"))
    facts = Interruptions(expected, interval, checkpoint, restart, mean_to_loss, outage)
    return tuple(lines), money.total((start.hours, run.training, redone)), facts


def _start(variant: Variant, terms: Terms) -> TimeLine:
    owned = variant.machine.provider == "own"
    figure = terms.assume.figure("own_start_hours" if owned else "cloud_start_hours")
    return TimeLine("start-up", money.quantity(figure.value), figure.note, figure.source, "assumed")


def _training(run: Run) -> TimeLine:
    return TimeLine("training", run.training, run.formula, "step time estimate", "modelled")


def _seconds(hours: Decimal) -> str:
    return f"{float(hours) * _SECONDS_PER_HOUR:.3g} s"
