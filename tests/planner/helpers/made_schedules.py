"""Random small schedules with everything in them, for the optimizer's tests."""

from __future__ import annotations

import random

from planner.optimizer.problem import Commitment, Job, Option, Pool, Problem, RigType


def option(
    dice: random.Random, number: int, rigs: list[RigType], pools: int, commitments: int, small: bool
) -> Option:
    hours = float(dice.randint(1, 5) if small else dice.randint(2, 60))
    cost = float(dice.randint(1, 400))
    kind = dice.random()
    if rigs and kind < 0.45:
        rig = dice.randrange(len(rigs))
        return Option(f"o{number}", hours, cost / 8, rig=rig, rigs=dice.randint(1, 3))
    gpus = dice.choice((1, 2, 4, 8))
    pool = dice.randrange(pools) if pools and dice.random() < 0.6 else None
    if commitments and kind < 0.65:
        return Option(f"o{number}", hours, 0.0, gpus=gpus, pool=pool, commitment=0, list_spend=cost * 1.1)
    return Option(f"o{number}", hours, cost, gpus=gpus, pool=pool)


def schedule(seed: int, jobs: int = 5, options: int = 6, small: bool = False) -> Problem:
    """Up to so many jobs and options, up to 3 rigs of up to 2 types, up to 2 months. small: few hours."""
    dice = random.Random(seed)
    month = 20.0 if small else 100.0
    months = dice.randint(1, 2)
    rigs = [
        RigType(
            f"rig{r}",
            tuple(None if dice.random() < 0.2 else float(dice.randint(20, 300)) for _ in range(months)),
            at_hand=dice.choice((0, 0, 1)),
            most=3,
            watts=1000.0,
        )
        for r in range(dice.randint(0, 2))
    ]
    pools = dice.randint(0, 1)
    commitments = [Commitment("c", 0.4, months * month, step=dice.choice((0.0, 0.5)))]
    commitments = commitments[: dice.randint(0, 1)]
    made = []
    for j in range(dice.randint(1, jobs)):
        release = float(dice.choice((0, 0, dice.randint(0, 10 if small else 80))))
        window = tuple(range(months)) if not commitments else (dice.randrange(months),)
        before = tuple(i for i in range(j) if dice.random() < 0.25)
        made.append(
            Job(
                f"j{j}",
                release,
                release + month if dice.random() < 0.2 else None,
                0.0 if dice.random() < 0.7 else release,
                window,
                before,
                tuple(
                    option(dice, n, rigs, pools, len(commitments), small)
                    for n in range(dice.randint(1, options))
                ),
                weight=dice.choice((1.0, 2.0)),
            )
        )
    return Problem(
        month_hours=(month,) * months,
        jobs=tuple(made),
        rigs=tuple(rigs),
        commitments=tuple(commitments),
        pools=tuple(Pool(f"p{p}", 8) for p in range(pools)),
        availability=dice.choice((1.0, 0.85)),
        budget=dice.choice((None, None, 900.0)),
        watts=dice.choice((None, None, 2000.0)),
        objective=dice.choice(("largest", "largest", "sum")),
        one_queue=dice.random() < 0.2,
    )
