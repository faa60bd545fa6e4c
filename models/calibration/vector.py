"""All parameters of the fit as one vector with its prior: physics first, then the residual."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import physics, residual
from .physics import Array
from .profile import Floats

PHYSICS_SD = 0.35
# Launch costs are held closer: they decide the smallest steps of the fastest cards, where there are no rows.
LAUNCH_SD = 0.2
HOST_YEAR_SD = 0.1
# Nobody says how busy: anything from twice to six times.
BUSY_SD = 0.7
_SPREADS = {"launch_seconds": LAUNCH_SD, "host_seconds": LAUNCH_SD, "busy_host": BUSY_SD}


@dataclass(frozen=True, slots=True)
class Block:
    """One named run of the vector. log: whether it holds logarithms."""

    name: str
    start: int
    stop: int
    log: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each parameter stands, and the Gaussian prior of the whole vector."""

    blocks: Mapping[str, Block]
    centre: Floats
    sd: Floats


def layout() -> Layout:
    """The layout of the one-GPU model."""
    blocks: dict[str, Block] = {}
    centre: list[float] = []
    sd: list[float] = []

    def add(name: str, values: list[float], spread: float, log: bool = True) -> None:
        blocks[name] = Block(name, len(centre), len(centre) + len(values), log)
        centre.extend(np.log(values) if log else values)
        sd.extend([spread] * len(values))

    for name, value in physics.PRIOR.items():
        values = value if isinstance(value, list) else [value]
        if name == "host_year":
            add(name, values, HOST_YEAR_SD, log=False)
        else:
            add(name, values, _SPREADS.get(name, PHYSICS_SD))
    add("classes", list(residual.CLASS_AMPLITUDES), residual.AMPLITUDE_SD)
    add("spec_lengths", list(residual.SPEC_LENGTHS), residual.LENGTH_SD)
    for name, value in residual.SHAPES.items():
        add(name, [value], residual.AMPLITUDE_SD)
    for name, value in residual.LENGTHS.items():
        add(name, [value], residual.LENGTH_SD)
    return Layout(blocks, np.array(centre), np.array(sd))


def unpack(where: Layout, vector: Array, xp: Any) -> tuple[physics.Coefficients, residual.Hyper]:
    """The vector's two halves, in natural units."""

    def values(name: str) -> Array:
        block = where.blocks[name]
        run = vector[block.start : block.stop]
        return xp.exp(run) if block.log else run

    scalars = {name for name, value in physics.PRIOR.items() if not isinstance(value, list)}
    c = physics.Coefficients(
        **{name: values(name)[0] if name in scalars else values(name) for name in physics.PRIOR}
    )
    named = {name: values(name)[0] for name in (*residual.SHAPES, *residual.LENGTHS)}
    return c, residual.Hyper(values("classes"), values("spec_lengths"), named)
