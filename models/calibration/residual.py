"""What physics leaves over: a Gaussian process on log step seconds, linear in the shares of op classes.

    K = G * (S A^2 S') + launch-share host term + offsets + noise
    G = B_0^2 + B_prec^2 [precision] + B_arch^2 [architecture] + B_spec^2 rbf(specs)(1 + [precision])/2
      + B_chip^2 [silicon](1 + [precision])/2 + B_year^2 rbf(year)(.4 + .3 [architecture] + .3 [precision])
      + B_fam^2 [family]

S_nc: how much of a change of class c is felt in row n. [label]: 1 where two rows share the label. Each group
of classes thus has its own multiplier on each card, alike on cards that are alike, and rows that share a
recipe share an offset. Runs on numpy and on torch (`xp`); what does not depend on hyper-parameters is made
once, in `Pairs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import physics
from .dataset import Table
from .physics import GROUPS, Array
from .profile import Floats

# Hyper-parameter -> (prior centre of its logarithm's exponent, sd of the logarithm). Amplitudes are in log
# seconds; lengths in units of dataset.SPECS; `noise_*` by source.
AMPLITUDE_SD, LENGTH_SD = 0.45, 0.35
CLASS_AMPLITUDES = (0.31, 1.6, 0.82, 0.83, 0.80, 1.6, 0.67, 3.4)  # in order of GROUPS
SHAPES: Mapping[str, float] = {
    "b_all": 0.25,
    "b_precision": 0.19,
    "b_architecture": 0.04,
    "b_specs": 0.13,
    "b_silicon": 0.03,
    "b_year": 0.15,
    "b_family": 0.04,
    "host": 0.09,
    "framework": 0.3,
    "o_recipe": 0.07,
    "o_recipe_model": 0.054,
    "o_recipe_model_size": 0.045,
    "o_size_specs": 0.035,
    "o_model_year": 0.073,
    "o_model_batch": 0.022,
    "o_recipe_year": 0.03,
    "o_source": 0.09,
    "o_host": 0.02,
    "o_gpu": 0.015,
    "noise_lambda": 0.024,
    "noise_nvidia": 0.04,
    "noise_qwen": 0.04,
    "noise_neusight": 0.08,
    "noise_other": 0.06,
}
LENGTHS: Mapping[str, float] = {"year": 0.8, "batch": 1.0}
SPEC_LENGTHS = (1.6, 1.8, 2.4, 2.2, 4.2, 1.9, 2.0)  # in order of SPECS
NOISE_OF = {
    "lambdal/deeplearning-benchmark": "noise_lambda",
    "NVIDIA/DeepLearningExamples": "noise_nvidia",
    "QwenLM/Qwen": "noise_qwen",
    "sitar-lab/NeuSight": "noise_neusight",
}
EQUALITIES = (
    *("precision", "architecture", "silicon", "family", "host", "source", "gpu"),
    *("recipe", "recipe_model", "recipe_model_size"),
)


@dataclass(frozen=True, slots=True)
class Hyper:
    """classes (groups,), spec_lengths (specs,), the rest by name; all positive, natural units."""

    classes: Array
    spec_lengths: Array
    named: Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Everything about rows of A against rows of B that no hyper-parameter touches.

    same: label -> (A, B) of 0 and 1. spec_gap2 (specs, A, B), year_gap2, batch_gap2: squared differences.
    """

    same: Mapping[str, Array]
    spec_gap2: Array
    year_gap2: Array
    batch_gap2: Array


def pairs(a: Table, b: Table) -> Pairs:
    """Compare every row of `a` with every row of `b`."""
    specs = (a.specs[:, None, :] - b.specs[None, :, :]) ** 2
    return Pairs(
        same={
            name: (a.labels[name][:, None] == b.labels[name][None, :]).astype(np.float64)
            for name in EQUALITIES
        },
        spec_gap2=np.moveaxis(specs, 2, 0),
        year_gap2=(a.year[:, None] - b.year[None, :]) ** 2,
        batch_gap2=(a.log_batch[:, None] - b.log_batch[None, :]) ** 2,
    )


def class_kernel(h: Hyper, p: Pairs, xp: Any) -> Array:
    """G of the module's docstring, (A, B): how alike the class multipliers of two rows are."""
    n, same = h.named, p.same
    specs = spec_kernel(h, p, xp)
    year = xp.exp(-0.5 * p.year_gap2 / n["year"] ** 2)
    precise = 0.5 + 0.5 * same["precision"]
    return (
        n["b_all"] ** 2
        + n["b_precision"] ** 2 * same["precision"]
        + n["b_architecture"] ** 2 * same["architecture"]
        + n["b_specs"] ** 2 * specs * precise
        + n["b_silicon"] ** 2 * same["silicon"] * precise
        + n["b_year"] ** 2 * year * (0.4 + 0.3 * same["architecture"] + 0.3 * same["precision"])
        + n["b_family"] ** 2 * same["family"]
    )


def spec_kernel(h: Hyper, p: Pairs, xp: Any) -> Array:
    """Squared exponential over the specs of two cards, (A, B)."""
    scaled = p.spec_gap2 / (h.spec_lengths**2)[:, None, None]
    return xp.exp(-0.5 * scaled.sum(0))


def offset_kernel(h: Hyper, p: Pairs, xp: Any) -> Array:
    """What rows share whatever their shares, (A, B)."""
    n, same = h.named, p.same
    year = xp.exp(-0.5 * p.year_gap2 / n["year"] ** 2)
    batch = xp.exp(-0.5 * p.batch_gap2 / n["batch"] ** 2)
    specs = spec_kernel(h, p, xp)
    return (
        n["o_recipe"] ** 2 * same["recipe"]
        + n["o_recipe_model"] ** 2 * same["recipe_model"]
        + n["o_recipe_model_size"] ** 2 * same["recipe_model_size"]
        + n["o_size_specs"] ** 2 * same["recipe_model_size"] * specs
        + n["o_model_year"] ** 2 * same["recipe_model"] * year
        + n["o_model_batch"] ** 2 * same["recipe_model"] * batch
        + n["o_recipe_year"] ** 2 * same["recipe"] * year
        + n["o_source"] ** 2 * same["source"]
        + n["o_host"] ** 2 * same["host"]
        + n["o_gpu"] ** 2 * same["gpu"]
    )


def host_kernel(h: Hyper, p: Pairs) -> Array:
    """Hosts, and the frameworks of recipes, launch at their own pace; felt by launch shares, (A, B)."""
    n, same = h.named, p.same
    return n["host"] ** 2 * same["host"] + n["framework"] ** 2 * same["recipe"]


def joined(h: Hyper, alike: Array, pace: Array, offsets: Array, shares_a: Array, shares_b: Array) -> Array:
    """Prior covariance of log steps without noise from its three kernels, (A, B)."""
    at = physics.LAUNCH_GROUP
    launch = shares_a[:, at, None] * shares_b[None, :, at]
    return alike * ((shares_a * h.classes**2) @ shares_b.T) + launch * pace + offsets


def covariance(h: Hyper, p: Pairs, shares_a: Array, shares_b: Array, xp: Any) -> Array:
    """Prior covariance of log steps without noise, (A, B). shares: (rows, groups)."""
    alike, pace, offsets = class_kernel(h, p, xp), host_kernel(h, p), offset_kernel(h, p, xp)
    return joined(h, alike, pace, offsets, shares_a, shares_b)


def own_variance(h: Hyper, shares: Array) -> Array:
    """The diagonal of `covariance` of rows with themselves, (N,)."""
    class_like = sum(value**2 for name, value in h.named.items() if name.startswith("b_"))
    offsets = sum(value**2 for name, value in h.named.items() if name.startswith("o_"))
    pace = h.named["host"] ** 2 + h.named["framework"] ** 2
    host = pace * shares[:, physics.LAUNCH_GROUP] ** 2
    return class_like * ((shares * h.classes) ** 2).sum(1) + host + offsets


def noise_names(table: Table) -> list[str]:
    """The noise parameter of each row's source."""
    return [NOISE_OF.get(source, "noise_other") for source in table.labels["source"]]


def rounding_variance(table: Table) -> Floats:
    """Qwen's times are rounded to 0.1 s per 8 micro-steps: uniform, so (0.1 / t)^2 / 12."""
    qwen = table.labels["source"] == "QwenLM/Qwen"
    seconds = np.exp(np.nan_to_num(table.log_step))
    return np.where(qwen, (0.1 / seconds) ** 2 / 12.0, 0.0)


@dataclass(frozen=True, slots=True)
class Parts:
    """Physics of rows, split into the groups that have multipliers.

    device (N, groups): device seconds, the launch group holding the launches' own; host (N,): host seconds.
    """

    device: Array
    host: Array

    def log_step(self) -> Array:
        """log of the step these parts make, (N,)."""
        total = physics.overlap(self.device.sum(1), self.host)
        return total.log() if hasattr(total, "log") else np.log(total)

    def shares(self) -> Array:
        """d log step / d log multiplier of each group, (N, groups); each row sums to 1."""
        device = self.device.sum(1)
        step = physics.overlap(device, self.host)
        felt = self.device * (device ** (physics.CORNER - 1) / step**physics.CORNER)[:, None]
        host = (self.host / step) ** physics.CORNER
        launch = [felt[:, i] + (host if i == physics.LAUNCH_GROUP else 0.0) for i in range(len(GROUPS))]
        return _stack(launch)


def _stack(columns: list[Array]) -> Array:
    if isinstance(columns[0], np.ndarray):
        return np.stack(columns, axis=1)
    import torch

    return torch.stack(columns, dim=1)


def parts(c: physics.Coefficients, t: Table, flop_sum: Array, byte_sum: Array, xp: Any) -> Parts:
    """Physics of the rows of `t`. flop_sum (F, groups), byte_sum (C, groups): 0/1, see `group_sums`.

    With torch, the arrays of `t` must be tensors already.
    """
    per_flop = physics.seconds_per_flop(c, t.sheet, xp)
    per_byte = physics.seconds_per_byte(c, t.sheet)
    device = (t.flops * per_flop) @ flop_sum + (t.bytes * per_byte) @ byte_sum
    launches = t.launches * c.launch_seconds
    columns = [device[:, i] for i in range(len(GROUPS))]
    columns[physics.LAUNCH_GROUP] = columns[physics.LAUNCH_GROUP] + launches
    host = t.host_ops * physics.host_seconds_per_op(c, t.year, t.busy, xp)
    return Parts(_stack(columns), host)


def group_sums() -> tuple[Floats, Floats]:
    """0/1 matrices that sum FLOP and byte classes into groups."""
    flop = np.eye(len(GROUPS))[list(physics.FLOP_GROUP_INDEX)]
    byte = np.eye(len(GROUPS))[list(physics.BYTE_GROUP_INDEX)]
    return flop, byte
