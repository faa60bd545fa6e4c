"""Conditioning: what measured rows say about other rows, hyper-parameters fixed. numpy alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from . import residual, vector
from .dataset import Table
from .physics import GROUPS, LAUNCH_GROUP
from .profile import Floats


@dataclass(frozen=True, slots=True)
class Prediction:
    """log_step: physics times multipliers times offset [log s]; sd: of its logarithm, noise left out.

    multipliers: (N, groups) log multipliers; offset: (N,).
    """

    log_step: Floats
    sd: Floats
    multipliers: Floats
    offset: Floats


@dataclass(frozen=True)
class Model:
    """Parameters in natural units."""

    vector: Floats

    @cached_property
    def layout(self) -> vector.Layout:
        return vector.layout()

    def parts(self, table: Table) -> residual.Parts:
        """Physics of rows."""
        c, _ = vector.unpack(self.layout, self.vector, np)
        return residual.parts(c, table, *residual.group_sums(), np)

    @property
    def hyper(self) -> residual.Hyper:
        return vector.unpack(self.layout, self.vector, np)[1]

    def noise(self, table: Table, inflation: Floats) -> Floats:
        """Noise variance of each row."""
        named = self.hyper.named
        base = np.array([float(named[name]) ** 2 for name in residual.noise_names(table)])
        return (base + residual.rounding_variance(table)) * inflation


class Posterior:
    """The model conditioned on the measured rows of `train`.

    Linear in the multipliers: log step = physics + shares . multipliers + offset. (Re-linearising at the
    multipliers found moves left-out scores by less than half a point, either way.)
    """

    def __init__(self, model: Model, train: Table, inflation: Floats) -> None:
        self.model, self.train = model, train
        p = model.parts(train)
        self._shares = p.shares()
        k = residual.covariance(model.hyper, residual.pairs(train, train), self._shares, self._shares, np)
        self._inverse = np.linalg.inv(k + np.diag(model.noise(train, inflation)))
        self._alpha = self._inverse @ (train.log_step - p.log_step())

    def _multipliers(self, alike: Floats, pace: Floats) -> Floats:
        h = self.model.hyper
        found = ((alike * self._alpha[None, :]) @ self._shares) * h.classes**2
        found[:, LAUNCH_GROUP] += (pace * self._alpha[None, :]) @ self._shares[:, LAUNCH_GROUP]
        return np.asarray(found)

    def left_one_out_z(self) -> Floats:
        """Each training row's error when it alone is left out, over its standard deviation."""
        z: Floats = self._alpha / np.sqrt(np.diagonal(self._inverse))
        return z

    def predict(self, target: Table) -> Prediction:
        """Each row of `target`; its measured value is not looked at."""
        h, pairs = self.model.hyper, residual.pairs(target, self.train)
        alike, pace = residual.class_kernel(h, pairs, np), residual.host_kernel(h, pairs)
        offsets = residual.offset_kernel(h, pairs, np)
        multipliers = self._multipliers(alike, pace)
        offset = offsets @ self._alpha
        p = self.model.parts(target)
        shares = p.shares()
        across = residual.joined(h, alike, pace, offsets, shares, self._shares)
        explained = np.einsum("ij,jk,ik->i", across, self._inverse, across, optimize=True)
        sd = np.sqrt(np.maximum(residual.own_variance(h, shares) - explained, 1e-6))
        log_step = p.log_step() + (shares * multipliers).sum(1) + offset
        return Prediction(np.asarray(log_step), sd, multipliers, offset)


def left_out(
    model: Model, table: Table, inflation: Floats, key: str | None
) -> Prediction:
    """Predict every row of `table` without the rows that share its label `key` (None: with all rows)."""
    groups = [np.ones(len(table), dtype=bool)] if key is None else [
        table.labels[key] == name for name in sorted(set(table.labels[key]))
    ]
    found = [np.empty(len(table)), np.empty(len(table)), np.empty((len(table), len(GROUPS))), np.empty(len(table))]
    for chosen in groups:
        rest = np.ones(len(table), dtype=bool) if key is None else ~chosen
        predicted = Posterior(model, table.take(rest), inflation[rest]).predict(table.take(chosen))
        for into, values in zip(
            found, (predicted.log_step, predicted.sd, predicted.multipliers, predicted.offset), strict=True
        ):
            into[chosen] = values
    return Prediction(*found)
