"""Several GPUs in the fit: exposed communication as one more class of the step.

    c = volume / bandwidth(link);  exposed = c^2 / (c + a step1);  step = step1 + exposed

and a kernel on the share of c felt in log step: link class, link x card, host, recipe, link x recipe, link x
rbf(log n). The other classes' shares shrink accordingly. Runs on numpy and torch (`xp`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import scaling
from .dataset import Table
from .physics import Array
from .profile import Floats

# How much of a step can hide communication, by who overlaps what: prior centres, log sd 0.5.
HIDDEN: Mapping[str, float] = {"scripts": 0.07, "ddp": 0.1, "sharded": 0.9}
HIDDEN_SD = 0.5
AMPLITUDES: Mapping[str, float] = {
    "c_link": 0.3,
    "c_link_gpu": 0.3,
    "c_host": 0.4,
    "c_recipe": 0.4,
    "c_link_recipe": 0.3,
    "c_link_count": 0.3,
    "extra_noise": 0.03,
}
AMPLITUDE_SD = 0.45
COUNT_LENGTH = 1.0


@dataclass(frozen=True, slots=True)
class Links:
    """log_factor: (links,) log of fitted over prior bandwidth. hidden: (3,). named: kernel amplitudes."""

    log_factor: Array
    hidden: Array
    named: Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Labels:
    """What of a table this model reads, as arrays. link: index into LINKS, -1 on one GPU."""

    link: Any
    hidden: Any
    volume_seconds: Array
    log_count: Floats


LINKS: tuple[str, ...] = tuple(scaling.links())


def size() -> int:
    """Length of the vector: link factors, hidden shares, amplitudes."""
    return len(LINKS) + len(HIDDEN) + len(AMPLITUDES)


def prior() -> tuple[Floats, Floats]:
    """(centre, sd) of the vector; a link's sd is that of its class."""
    centre = [0.0] * len(LINKS) + [float(np.log(v)) for v in (*HIDDEN.values(), *AMPLITUDES.values())]
    sd = [max(link.log_sd, 0.5) for link in scaling.links().values()]
    return np.array(centre), np.array([*sd, *[HIDDEN_SD] * len(HIDDEN), *[AMPLITUDE_SD] * len(AMPLITUDES)])


def unpack(vector: Array, xp: Any) -> Links:
    """The vector in natural units."""
    at, to = len(LINKS), len(LINKS) + len(HIDDEN)
    values = xp.exp(vector[to:])
    return Links(vector[:at], xp.exp(vector[at:to]), {name: values[i] for i, name in enumerate(AMPLITUDES)})


def labels(table: Table) -> Labels:
    """Read the labels and the unhidden seconds at prior bandwidths."""
    scripts = table.labels["source"] == "lambdal/deeplearning-benchmark"
    sharded = table.labels["strategy"] == "sharded"
    kinds = list(HIDDEN)
    hidden = np.where(
        sharded, kinds.index("sharded"), np.where(scripts, kinds.index("scripts"), kinds.index("ddp"))
    )
    return Labels(
        link=np.array([LINKS.index(name) if name in LINKS else -1 for name in table.labels["link"]]),
        hidden=hidden,
        volume_seconds=np.where(table.gpu_count > 1, table.volume / table.link_bandwidth, 0.0),
        log_count=np.log(table.gpu_count),
    )


@dataclass(frozen=True, slots=True)
class Exposed:
    """log_step: of all GPUs (N,). alone, felt: d log step by d log step1 and by d log c, (N,)."""

    log_step: Array
    alone: Array
    felt: Array


def exposed(k: Links, seen: Labels, log_step1: Array, xp: Any) -> Exposed:
    """Add communication to one-GPU steps."""
    one = xp.exp(log_step1)
    several = seen.volume_seconds > 0
    # One GPU: a tiny c keeps the formulas finite and counts for nothing.
    c = xp.where(several, seen.volume_seconds * xp.exp(-k.log_factor[seen.link]), 1e-30 * one)
    a = k.hidden[seen.hidden]
    total = c + a * one
    extra = c**2 / total
    step = one + extra
    return Exposed(
        log_step=xp.log(step),
        alone=(one - a * one * c**2 / total**2) / step,
        felt=(c**3 + 2 * a * one * c**2) / total**2 / step,
    )


def kernel(
    k: Links, same: Mapping[str, Array], count_gap2: Array, felt_a: Array, felt_b: Array, xp: Any
) -> Array:
    """Covariance that links add, (A, B). same: label -> (A, B) of 0 and 1."""
    n = k.named
    alike = (
        n["c_host"] ** 2 * same["host"]
        + n["c_recipe"] ** 2 * same["recipe"]
        + same["link"]
        * (
            n["c_link"] ** 2
            + n["c_link_gpu"] ** 2 * same["gpu"]
            + n["c_link_recipe"] ** 2 * same["recipe"]
            + n["c_link_count"] ** 2 * xp.exp(-0.5 * count_gap2 / COUNT_LENGTH**2)
        )
    )
    return alike * felt_a[:, None] * felt_b[None, :]


def own_variance(k: Links, felt: Array) -> Array:
    """Diagonal of `kernel` of rows with themselves, (N,)."""
    return sum(v**2 for name, v in k.named.items() if name.startswith("c_")) * felt**2


def comparisons(a: Table, b: Table) -> tuple[dict[str, Floats], Floats]:
    """(same, count_gap2) for `kernel`."""
    same = {
        name: (a.labels[name][:, None] == b.labels[name][None, :]).astype(np.float64)
        for name in ("host", "recipe", "link", "gpu")
    }
    return same, (np.log(a.gpu_count)[:, None] - np.log(b.gpu_count)[None, :]) ** 2
