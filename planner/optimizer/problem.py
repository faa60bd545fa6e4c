"""A whole schedule as numbers: what a solver, the checker and the brute-force oracle all read.

Nothing here knows of providers, prices or models: `planner/schedule/` makes a Problem out of a schedule file
and turns a Choice back into a plan. Money is float in one currency; exact sums are made afterwards from the
lines of the options that were chosen. Months are numbered from 0; hours count from the start of month 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# Options are compared within a class only: what one class shares (rigs, a commitment) the others do not.
OptionClass = Literal["cloud", "committed", "own"]


@dataclass(frozen=True, slots=True)
class Option:
    """One way to run one job.

    id: unique within the job; places of it in Job.options are what a Choice names.
    hours: wall time, with expected restarts. [h]
    cost: what choosing it adds by itself: paid hours × price, energy, storage. [currency]
    rig: index into Problem.rigs, None for rented; rigs: how many of it are held for `hours`. [1]
    gpus: GPUs in all; counts against `pool`, an index into Problem.pools; None: no quota.
    commitment: index into Problem.commitments that `list_spend` draws on; None: paid as it goes.
    list_spend: what the run costs at list price, drawn from the commitment. [currency]
    energy_kwh, co2_kg: None where unknown.
    """

    id: str
    hours: float
    cost: float
    rig: int | None = None
    rigs: int = 0
    gpus: int = 1
    pool: int | None = None
    commitment: int | None = None
    list_spend: float = 0.0
    energy_kwh: float | None = None
    co2_kg: float | None = None

    @property
    def option_class(self) -> OptionClass:
        """own, committed or cloud."""
        if self.rig is not None:
            return "own"
        return "cloud" if self.commitment is None else "committed"


@dataclass(frozen=True, slots=True)
class Job:
    """One run. release, deadline: hours from the start of month 0. [h] deadline None: none.

    origin: the time objective counts this job's finish from here: 0 for the project's finish, `release` for
        turnaround, `deadline` for lateness. [h]
    months: the months whose rigs and commitments its hours may draw on, ascending; its window.
    predecessors: indices of jobs that must end before it starts.
    weight: of its lateness or turnaround where the objective sums; 1 otherwise.
    """

    id: str
    release: float
    deadline: float | None
    origin: float
    months: tuple[int, ...]
    predecessors: tuple[int, ...]
    options: tuple[Option, ...]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class RigType:
    """Rigs that stand ready or may be bought.

    net_cost: by month of first use: one more rig bought so that it works from that month on: price, less its
        resale at the end of the horizon, plus what it costs to keep (hosting, staff); present value where the
        schedule discounts. None: cannot be had in that month (lead time). [currency]
    at_hand: rigs already there from month 0 on. most: at hand and bought together, never more.
    watts: wall power of one at load, against Problem.watts. [W]
    """

    id: str
    net_cost: tuple[float | None, ...]
    at_hand: int = 0
    most: int = 8
    watts: float = 0.0


@dataclass(frozen=True, slots=True)
class Commitment:
    """A discount for an hourly spend promised over the whole horizon, used or not.

    discount: off the list price, in (0, 1). level L [currency/h] covers list spend of L/(1 − discount) an
        hour and costs L × hours of the term. step: levels are multiples of it; 0: any level.
    load_factor: share of hours in which the cover is usable (use it or lose it, hour by hour), in (0, 1].
    held: level already paid for; costs nothing more. most: highest level. [currency/h]
    """

    id: str
    discount: float
    term_hours: float
    step: float = 0.0
    load_factor: float = 1.0
    held: float = 0.0
    most: float = float("inf")


@dataclass(frozen=True, slots=True)
class Pool:
    """A quota: at most `gpus` GPUs of one kind, in one place and under one contract, at once."""

    id: str
    gpus: int


@dataclass(frozen=True, slots=True)
class Problem:
    """Everything that is decided together.

    month_hours: of each month, from the calendar (672 to 745). [h]
    availability: share of a rig's hours that it works. (0, 1]
    budget: most the whole plan may cost. month_budget: most cash that may leave in each month: direct cost of
        the jobs of that month, purchases, commitment fees; None: no limit. [currency]
    watts: most power of all rigs together; None: no limit. [W]
    objective: what `time` of a Choice is: the largest finish − origin over jobs ("largest"), or their
        weighted sum, never below 0 each ("sum"). [h]
    one_queue: own rigs run one job at a time, each job on as many rigs as it asks for (the small team's rig).
    """

    month_hours: tuple[float, ...]
    jobs: tuple[Job, ...]
    rigs: tuple[RigType, ...] = ()
    commitments: tuple[Commitment, ...] = ()
    pools: tuple[Pool, ...] = ()
    availability: float = 1.0
    budget: float | None = None
    month_budget: tuple[float | None, ...] | None = None
    watts: float | None = None
    objective: Literal["largest", "sum"] = "largest"
    one_queue: bool = False

    @property
    def horizon_hours(self) -> float:
        """All months together. [h]"""
        return sum(self.month_hours)


@dataclass(frozen=True, slots=True)
class Choice:
    """One point of the front: what is bought and promised, and how and when each job runs.

    option: of each job, the place in its options. start: of each job; placed hour by hour, so that capacity,
        precedence, release and quota hold at every instant, not only by the month. [h]
    bought: bought[rig type][month of first use], rigs. level: of each commitment. [currency/h]
    cost: Σ option cost + Σ bought × net_cost + Σ (level − held) × term_hours. [currency]
    time: the objective's value at `start`. [h]
    bound: no plan with this time or less is cheaper than this. gap: (cost − bound) / cost; 0 where proven.
    proven: whether the search for it ended by itself, or its bound is within the gap asked for; False where
        time ran out with this plan in hand.
    """

    option: tuple[int, ...]
    start: tuple[float, ...]
    bought: tuple[tuple[int, ...], ...]
    level: tuple[float, ...]
    cost: float
    time: float
    bound: float
    proven: bool

    @property
    def gap(self) -> float:
        """Share of the cost that is not proven to be needed. [0, 1]"""
        return max(0.0, (self.cost - self.bound) / self.cost) if self.cost > 0 else 0.0
