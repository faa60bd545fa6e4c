"""What a few real steps teach about a device beyond its microbenchmarks: one multiplier a group of work.

    step = sum_g a_g seconds_g;   a fitted by bounded least squares on relative errors, held to 1 by a ridge

Accepted only where the anchors, each left out in turn, are predicted better than with multipliers of one, and
none of them stands at a bound: otherwise a fault of ours would be bent into a property of the device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

# Group -> bounds of its multiplier. Microbenchmarks run an op alone and warm; a step may be slower, hardly
# ever twice as fast. Calls cost whatever Python around them does.
BOUNDS: Mapping[str, tuple[float, float]] = {
    "products": (0.5, 2.5),
    "convolutions": (0.5, 2.5),
    "other": (0.5, 2.5),
    "optimizer": (0.5, 2.5),
    "calls": (0.0, 5.0),
}
# A step is repeatable to a twentieth; a multiplier is within a third of one before anything is measured.
STEP_SD, PRIOR_SD = 0.05, 0.33
FEWEST = 3


def group_of(op_class: str) -> str:
    """The group of a breakdown row.

    >>> [group_of(name) for name in ("gemm", "conv_1x1", "norm", "launch")]
    ['products', 'convolutions', 'other', 'calls']
    """
    if op_class in ("gemm", "rnn") or op_class.startswith("attention"):
        return "products"
    if op_class.startswith("conv"):
        return "convolutions"
    if op_class == "optimizer":
        return op_class
    return "calls" if op_class in ("launch", "module calls") else "other"


@dataclass(frozen=True, slots=True)
class Anchor:
    """One real step. measured: median seconds, spread: (p90 - p10) / median; priced: seconds by group."""

    name: str
    measured: float
    spread: float
    repeats: int
    priced: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Multipliers:
    """values: by group; 1 everywhere unless `accepted`. errors: mean |priced / measured - 1| of the anchors.

    error_before: with ones; error_left_out: each by multipliers fitted to the others. reason: why refused.
    """

    values: Mapping[str, float]
    accepted: bool
    error_before: float
    error_left_out: float | None
    reason: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def priced_by_group(breakdown: Sequence[tuple[str, str, float]]) -> dict[str, float]:
    """Seconds of a step by group. [s]"""
    found = dict.fromkeys(BOUNDS, 0.0)
    for op_class, _, seconds in breakdown:
        found[group_of(op_class)] += seconds
    return found


def multipliers(anchors: Sequence[Anchor]) -> Multipliers:
    """Fit, and accept or refuse. Needs scipy. Raises ValueError without any anchor."""
    if not anchors:
        raise ValueError("no anchors to learn from")
    ones = dict.fromkeys(BOUNDS, 1.0)
    before = _error(anchors, [ones] * len(anchors))
    if len(anchors) < FEWEST:
        return Multipliers(ones, False, before, None, f"fewer than {FEWEST} steps were measured")
    others = [_fit([a for j, a in enumerate(anchors) if j != i]) for i in range(len(anchors))]
    left_out = _error(anchors, others)
    found = _fit(anchors)
    reason = ""
    if left_out >= before:
        reason = "steps left out are predicted no better with them"
    else:
        stuck = [name for name, value in found.items() if _at_bound(name, value)]
        if stuck:
            reason = f"at their bounds: {', '.join(stuck)}"
    return Multipliers(ones if reason else found, not reason, before, left_out, reason)


def _error(anchors: Sequence[Anchor], values: Sequence[Mapping[str, float]]) -> float:
    errors = [
        abs(sum(v[name] * seconds for name, seconds in a.priced.items()) / a.measured - 1.0)
        for a, v in zip(anchors, values, strict=True)
    ]
    return sum(errors) / len(errors)


def _fit(anchors: Sequence[Anchor]) -> dict[str, float]:
    import numpy as np
    from scipy.optimize import lsq_linear

    names = list(BOUNDS)
    steps = np.array([[a.priced[name] / a.measured for name in names] for a in anchors]) / STEP_SD
    ridge = np.eye(len(names)) / PRIOR_SD
    low, high = zip(*BOUNDS.values(), strict=True)
    solved = lsq_linear(
        np.vstack([steps, ridge]),
        np.concatenate([np.full(len(anchors), 1 / STEP_SD), np.full(len(names), 1 / PRIOR_SD)]),
        bounds=(low, high),
    )
    return {name: float(value) for name, value in zip(names, solved.x, strict=True)}


def _at_bound(name: str, value: float) -> bool:
    low, high = BOUNDS[name]
    return min(value - low, high - value) < 1e-3 * (high - low)
