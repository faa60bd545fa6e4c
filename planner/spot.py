"""Interruptions: what being stopped now and then does to the hours of a run.

A spot pool (instance type, zone) is one up/down process: losses are clustered, so neither the number of
instances nor of GPUs multiplies the rate (skypilot-org/spot-traces: four instances were all up 0.71 of the
time, one alone 0.73). Symbols: W work, M mean time to loss, D outage, C checkpoint, R restart, tau interval.
All in hours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

# e^709 is the largest double.
_LARGEST_EXPONENT = 700.0
# A part of the longest work then lasts nanoseconds.
_MOST_PARTS = 2**60


@dataclass(frozen=True, slots=True)
class ExpectedRun:
    """What a run of given work is expected to take. [h], losses [1]

    paid: the hours a machine is held. waiting: with no machine, not paid. wall = paid + waiting.
    segments: number of intervals the work is cut into, each ended by a checkpoint.
    """

    paid: float
    waiting: float
    losses: float
    segments: int

    @property
    def wall(self) -> float:
        return self.paid + self.waiting


def young_interval(checkpoint: float, mean_to_loss: float) -> float:
    """Work between checkpoints that wastes least, first order: sqrt(2 C M). Source: Young 1974.

    >>> round(young_interval(0.02, 3.2), 3)
    0.358
    """
    return math.sqrt(2 * checkpoint * mean_to_loss)


def daly_interval(checkpoint: float, mean_to_loss: float) -> float:
    """Daly's higher order of `young_interval`; M itself where C >= 2 M. Source: Daly 2006, eq. 37.

    >>> round(daly_interval(0.02, 3.2), 3)
    0.345
    """
    if checkpoint >= 2 * mean_to_loss:
        return mean_to_loss
    ratio = checkpoint / (2 * mean_to_loss)
    return young_interval(checkpoint, mean_to_loss) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - checkpoint


def first_order_waste(interval: float, checkpoint: float, restart: float, mean_to_loss: float) -> float:
    """Share of time lost: C/tau + (R + tau/2 + C/2)/M. Good while it is small.

    >>> round(first_order_waste(young_interval(0.02, 3.2), 0.02, 0.1, 3.2), 3)
    0.146
    """
    return checkpoint / interval + (restart + interval / 2 + checkpoint / 2) / mean_to_loss


def best_segments(work: float, checkpoint: float, mean_to_loss: float) -> int:
    """Into how many equal parts, each ended by a checkpoint, the work is cut to lose least; 0 for no end.

    The minimum over n of n (e^((W/n + C)/M) - 1), which is convex in n: the first n after which it no longer
    falls, found by doubling and halving. Where even a checkpoint alone never ends, 1. Taking the best n, not
    ceil(W / interval), makes the hours grow with the work: 1.0 h in two parts can lose more than 1.1 h in
    three. A checkpoint that takes no time is written all the time: 0.

    >>> best_segments(10.0, 0.02, 3.2), best_segments(10.0, 0.0, 3.2)
    (29, 0)
    """
    if checkpoint == 0:
        return 0

    def lost(parts: int) -> float:
        exposed = (work / parts + checkpoint) / mean_to_loss
        return parts * math.expm1(exposed) if exposed < _LARGEST_EXPONENT else math.inf

    def falls(parts: int) -> bool:
        return lost(parts) == math.inf or lost(parts + 1) < lost(parts)

    if checkpoint / mean_to_loss >= _LARGEST_EXPONENT:
        return 1
    below, parts = 0, 1
    while falls(parts) and parts < _MOST_PARTS:
        below, parts = parts, 2 * parts
    while parts - below > 1:
        middle = (below + parts) // 2
        below, parts = (middle, parts) if falls(middle) else (below, middle)
    return parts


def expected_run(
    work: float, *, segments: int, checkpoint: float, restart: float, mean_to_loss: float, outage: float
) -> ExpectedRun:
    """Exact expectation under exponential losses, which may also hit checkpoints and restarts.

    E[losses] = n e^(R/M) (e^((tau + C)/M) - 1), paid = M E[losses], waiting = D E[losses], where the work is
    cut into n = segments equal parts of tau; one part alone grows like e^(W/M). segments = 0 is the limit of
    ever more checkpoints that take no time: E[losses] = e^(R/M) W/M.
    Source: exponential-failure renewal argument, e.g. Bougeret et al. 2011.

    Returns infinities where e^x overflows: such a run never ends.
    """
    if work <= 0:
        return ExpectedRun(0.0, 0.0, 0.0, 0)
    exposed = (work / segments + checkpoint) / mean_to_loss if segments else 0.0
    if exposed + restart / mean_to_loss > _LARGEST_EXPONENT:
        return ExpectedRun(math.inf, math.inf, math.inf, segments)
    once = segments * math.expm1(exposed) if segments else work / mean_to_loss
    losses = math.exp(restart / mean_to_loss) * once
    return ExpectedRun(losses * mean_to_loss, losses * outage, losses, segments)


def billed_hours(
    work: Decimal, *, checkpoint_every: Decimal, losses_at: Sequence[Decimal], restart: Decimal
) -> Decimal:
    """Hours billed for one given history: each loss falls back to the last checkpoint and pays a restart.

    losses_at: machine hours since the last (re)start of training at which the machine is lost, in order; one
    that would come after the end is ignored. Checkpoints themselves take no time here.

    >>> billed_hours(Decimal(10), checkpoint_every=Decimal(1), losses_at=[Decimal("4.5")],
    ...              restart=Decimal("0.25"))
    Decimal('10.75')
    """
    saved = Decimal(0)
    billed = Decimal(0)
    for ran in losses_at:
        reached = saved + ran
        if reached >= work:
            break
        billed += ran + restart
        saved = reached // checkpoint_every * checkpoint_every
    return billed + work - saved
