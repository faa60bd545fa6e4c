"""CPU seconds of the schedule optimizer on made instances, beside the textbook model: bench_optimizer.py.

Instances are made here, from seed 0, without the planner's data. Per job: a lognormal amount of work; rented
options of 6 GPU types × 6 counts × contracts and regions (on demand, spot, committed); own options of
1 to 12 (or 24) rigs. 40 % of the jobs have a predecessor; a chain of jobs shares one month, its release is
the start of that month, and `time` counts from there: the critical path in hours. Rigs work 85 % of the time;
up to 16 can be bought, from the first month on; one commitment takes any level.

Printed per case: CPU seconds over all processes (this one and the solver's), wall seconds, rows, the widest
gap, and the bar. "relaxation" leaves out the placement by the hour: the model that the first figures of this
method were measured on. "placed" is what planner.optimizer.schedule_front.front returns: every row kept by
the hour. "textbook" is one big model by scipy.optimize.milp: all options, an integer number of rigs with
Σ k x ≤ N, no filter; a solve that hits its limit counts with the limit (the ratio is then at least that).

Machines differ: compare ratios, or figures of one machine. --only NAME runs one case; --repeat N repeats.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from planner.optimizer import linear_model, queue_dp, schedule_front, solver
from planner.optimizer.flat import flatten
from planner.optimizer.milp_front import MilpFront
from planner.optimizer.problem import Commitment, Job, Option, Problem, RigType

MONTH_HOURS = (744.0, 672.0, 744.0, 720.0, 744.0, 720.0, 744.0, 744.0, 720.0, 744.0, 720.0, 744.0)
# GPU types: (work done per hour by one, list price per hour). Made up, ordered like the market.
GPUS = ((0.35, 0.5), (0.6, 0.9), (1.0, 1.3), (1.9, 2.4), (2.6, 3.1), (4.2, 5.2))
COUNTS = (1, 2, 4, 8, 16, 32)
RIG_WORK, RIG_PRICE, RIG_POWER_PRICE = 4.0, 4000.0, 0.55  # per hour; to buy; per hour running


def instance(jobs: int, cloud: int, own: int, months: int, seed: int = 0) -> Problem:
    """The made instance; see the module's first words."""
    dice = np.random.default_rng(seed)
    hours = (MONTH_HOURS * math.ceil(months / 12))[:months]
    opens = np.concatenate(([0.0], np.cumsum(hours)))
    month: list[int] = []
    made = []
    for j in range(jobs):
        before = int(dice.integers(j)) if j and dice.random() < 0.4 else None
        month.append(month[before] if before is not None else int(dice.integers(months)))
        start = float(opens[month[j]])
        work = float(dice.lognormal(math.log(2500.0), 0.9))
        options = (*_rented(dice, work, cloud), *_owned(work, own))
        made.append(
            Job(
                f"job-{j}",
                start,
                None,
                start,
                (month[j],),
                () if before is None else (before,),
                options,
            )
        )
    rig = RigType("rig", (RIG_PRICE, *[None] * (months - 1)), most=16)
    commitment = Commitment("commitment", 0.35, sum(hours), load_factor=0.9)
    return Problem(hours, tuple(made), (rig,), (commitment,), availability=0.85)


def _rented(dice: np.random.Generator, work: float, count: int) -> list[Option]:
    options = []
    contracts = ("on demand", "spot", "committed")
    for n in range(count):
        speed, price = GPUS[n % len(GPUS)]
        gpus = COUNTS[n // len(GPUS) % len(COUNTS)]
        place = n // (len(GPUS) * len(COUNTS))
        contract = contracts[place % 3]
        region = 1.0 + 0.25 * float(dice.random())
        fit = 0.8 + 0.4 * float(dice.random())
        hours = work / (speed * fit * gpus**0.9)
        paid = hours * price * gpus * region
        if contract == "spot":
            options.append(
                Option(f"r{n}", hours * (1.05 + 0.25 * float(dice.random())), paid * 0.55, gpus=gpus)
            )
        elif contract == "committed":
            options.append(Option(f"r{n}", hours, 0.0, gpus=gpus, commitment=0, list_spend=paid))
        else:
            options.append(Option(f"r{n}", hours, paid, gpus=gpus))
    return options


def _owned(work: float, count: int) -> list[Option]:
    options = []
    for n in range(count):
        rigs = n % 12 + 1
        slow, frugal = (1.0, 1.0) if n < 12 else (1.15, 0.85)  # a power limit
        hours = slow * work / (RIG_WORK * rigs**0.92)
        options.append(Option(f"o{n}", hours, hours * rigs * RIG_POWER_PRICE * frugal, rig=0, rigs=rigs))
    return options


def queue_instance(jobs: int, cloud: int, own: int, seed: int = 0) -> Problem:
    """One job after another, whole hours, one rig type: what queue_dp solves."""
    base = instance(jobs, cloud, own, 12, seed)
    made = []
    for j, job in enumerate(base.jobs):
        options = tuple(
            dataclasses.replace(
                o, hours=float(math.ceil(o.hours)), cost=o.cost + o.list_spend * 0.8, commitment=None
            )
            for o in job.options
        )
        before = (j - 1,) if j else ()
        made.append(dataclasses.replace(job, release=0.0, origin=0.0, predecessors=before, options=options))
    hours = (1e6,)
    rigs = tuple(dataclasses.replace(rig, net_cost=(RIG_PRICE,)) for rig in base.rigs)
    jobs_ = tuple(dataclasses.replace(job, months=(0,)) for job in made)
    return Problem(hours, jobs_, rigs, one_queue=True)


def cpu_seconds() -> float:
    """Of this process and of children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def relaxed_front(problem: Problem, points: int, gap: float, seconds: float) -> tuple[int, float, list[str]]:
    """(rows, widest gap, lines) of the model alone, at `points` times from the fastest to the cheapest."""
    with solver.Solver() as shared:
        work = MilpFront(problem, shared, gap, time.monotonic() + seconds)
        work.place = False
        schedule_front.search(work, points, gap, None)
        rows = work.found.front()
    lines = [
        f"      {row.time:9.1f} h {row.cost:12.2f}  {sum(map(sum, row.bought)):2d} rigs  gap {row.gap:.3%}"
        for row in rows
    ]
    return len(rows), max(row.gap for row in rows), lines


def placed_front(problem: Problem, points: int, gap: float, seconds: float) -> tuple[int, float, list[str]]:
    """The same of the whole answer."""
    rows = schedule_front.front(problem, points=points, gap=gap, seconds=seconds)
    lines = [
        f"      {row.time:9.1f} h {row.cost:12.2f}  {sum(map(sum, row.bought)):2d} rigs  gap {row.gap:.3%}"
        for row in rows
    ]
    return len(rows), max(row.gap for row in rows), lines


def queue_front(problem: Problem) -> tuple[int, float, list[str]]:
    """All points of the one-queue front."""
    curve = queue_dp.whole_front(problem)
    return len(curve.time), 0.0, []


def textbook(problem: Problem, seconds: float, gap: float) -> str:
    """One solve at least cost by the plain model."""
    before = cpu_seconds()
    options = flatten(problem)
    build = linear_model.Builder()
    x = build.columns(len(options), options.cost, 0.0, 1.0, whole=True)
    rig = problem.rigs[0]
    number = int(build.columns(1, rig.net_cost[0] or 0.0, 0.0, float(rig.most), whole=True)[0])
    terms = [c.term_hours for c in problem.commitments]
    level = build.columns(len(terms), np.array(terms))
    for j in range(len(problem.jobs)):
        mine = np.flatnonzero(options.job == j)
        build.row([(x[mine], 1.0)], 1.0, 1.0)
        build.row([(x[mine], options.rigs[mine].astype(float)), (number, -1.0)], high=0.0)
    for month, hours in enumerate(problem.month_hours):
        mine = np.array([problem.jobs[j].months[0] == month for j in options.job])
        held = options.rigs * options.hours / problem.availability
        build.row([(x[mine], held[mine]), (number, -hours)], high=0.0)
        for c, column in zip(problem.commitments, level, strict=True):
            build.row(
                [(x[mine], options.spend[mine]), (int(column), -hours * c.load_factor / (1 - c.discount))],
                high=0.0,
            )
    with solver.Solver((solver.SCIPY,)) as scipy:
        solved = scipy.solve(build.model(), gap=gap, seconds=seconds)
    took = cpu_seconds() - before
    return f"one solve {took:.1f} s CPU, {solved.status}, cost {solved.objective:.0f}, gap {solved.gap:.2%}"


Answer = tuple[int, float, list[str]]


def measured(name: str, bar: float, repeat: int, run: Callable[[], Answer], show: bool) -> float:
    """Runs it, prints its line, returns the median CPU seconds."""
    cpu, wall, answer = [], [], (0, 0.0, list[str]())
    for _ in range(repeat):
        before, at = cpu_seconds(), time.monotonic()
        answer = run()
        cpu.append(cpu_seconds() - before)
        wall.append(time.monotonic() - at)
    spread = f"{min(cpu):.1f}/{statistics.median(cpu):.1f}/{max(cpu):.1f}" if repeat > 1 else f"{cpu[0]:.1f}"
    verdict = (
        "" if math.isinf(bar) else f" (bar {bar:g}: {'met' if statistics.median(cpu) <= bar else 'MISSED'})"
    )
    print(
        f"{name:<34} {spread} s CPU{verdict}, {statistics.median(wall):.1f} s wall, "
        f"{answer[0]} rows, widest gap {answer[1]:.3%}"
    )
    for line in answer[2] if show else ():
        print(line)
    sys.stdout.flush()
    return statistics.median(cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="part of a case's name")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--rows", action="store_true", help="print the rows")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--textbook-seconds", type=float, default=120.0)
    asked = parser.parse_args()
    mid = instance(50, 288, 12, 12, asked.seed)
    large = instance(200, 976, 24, 36, asked.seed)
    queue = queue_instance(50, 288, 12, asked.seed)
    cases: list[tuple[str, float, Callable[[], Answer]]] = [
        ("50 x 300 relaxation, 30 points", 40.0, lambda: relaxed_front(mid, 30, 1e-3, 600)),
        ("50 x 300 placed, 30 points", 40.0, lambda: placed_front(mid, 30, 1e-3, 600)),
        ("200 x 1000 relaxation, 12 points", 120.0, lambda: relaxed_front(large, 12, 5e-3, 600)),
        ("200 x 1000 placed, 12 points", 120.0, lambda: placed_front(large, 12, 5e-3, 600)),
        ("one queue 50 x 300, whole front", 2.0, lambda: queue_front(queue)),
    ]
    for name, bar, run in cases:
        if asked.only in name:
            measured(name, bar, asked.repeat, run, asked.rows)
    for name, problem, gap in (("50 x 300 textbook", mid, 1e-3), ("200 x 1000 textbook", large, 5e-3)):
        if asked.only in name:
            print(f"{name:<34} {textbook(problem, asked.textbook_seconds, gap)}")


if __name__ == "__main__":
    main()
