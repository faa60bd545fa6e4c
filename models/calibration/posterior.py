"""Conditioning: what measured rows say about other rows, hyper-parameters fixed. numpy alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from . import communication, physics, residual
from . import vector as parameter_vector
from .dataset import Table
from .physics import GROUPS, LAUNCH_GROUP
from .profile import Floats


@dataclass(frozen=True, slots=True)
class Prediction:
    """log_step: physics, multipliers and offsets [log s]; sd: of its logarithm, noise left out.

    multipliers: (N, groups), logarithms.
    """

    log_step: Floats
    sd: Floats
    multipliers: Floats


@dataclass(frozen=True)
class Model:
    """Fitted parameters: `vector` of one GPU (vector.py), `links` of several (communication.py)."""

    vector: Floats
    links: Floats | None = None

    @cached_property
    def coefficients(self) -> physics.Coefficients:
        return parameter_vector.unpack(parameter_vector.layout(), self.vector, np)[0]

    @cached_property
    def hyper(self) -> residual.Hyper:
        return parameter_vector.unpack(parameter_vector.layout(), self.vector, np)[1]

    @cached_property
    def communication(self) -> communication.Links:
        at = communication.prior()[0] if self.links is None else self.links
        return communication.unpack(at, np)

    def parts(self, table: Table) -> residual.Parts:
        """Physics of rows on one GPU."""
        return residual.parts(self.coefficients, table, *residual.group_sums(), np)

    def mean(self, table: Table) -> Mean:
        """Physics of rows on all their GPUs."""
        p = self.parts(table)
        seen = communication.labels(table)
        whole = communication.exposed(self.communication, seen, p.log_step(), np)
        return Mean(whole.log_step, p.shares() * whole.alone[:, None], whole.alone, whole.felt)

    def noise(self, table: Table, inflation: Floats) -> Floats:
        """Noise variance of each row; rows of several GPUs have some more."""
        named = self.hyper.named
        base = np.array([float(named[name]) ** 2 for name in residual.noise_names(table)])
        more = np.where(table.gpu_count > 1, float(self.communication.named["extra_noise"]) ** 2, 0.0)
        return np.asarray((base + residual.rounding_variance(table)) * inflation + more)


@dataclass(frozen=True, slots=True)
class Mean:
    """log_step (N,); how a change of each group (N, groups), of one GPU's step and of the link is felt."""

    log_step: Floats
    shares: Floats
    alone: Floats
    felt: Floats

    def take(self, chosen: NDArray[np.int64]) -> Mean:
        """The chosen rows."""
        return Mean(self.log_step[chosen], self.shares[chosen], self.alone[chosen], self.felt[chosen])


class Posterior:
    """The model conditioned on the measured rows of `train`.

    Linear in the multipliers: log step = physics + shares . multipliers + offset. (Re-linearising at the
    multipliers found moves left-out scores by less than half a point, either way.)
    """

    def __init__(self, model: Model, train: Table, inflation: Floats) -> None:
        self.model, self.train = model, train
        self._mean = model.mean(train)
        k = self.kernels(train).joined(self._mean, self._mean)
        self._inverse = np.linalg.inv(k + np.diag(model.noise(train, inflation)))
        self._alpha = self._inverse @ (train.log_step - self._mean.log_step)

    def without(self, chosen: NDArray[np.bool_]) -> Posterior:
        """The same without the chosen training rows: a downdate of the inverse, not a new one."""
        rest, gone = np.flatnonzero(~chosen), np.flatnonzero(chosen)
        if not len(gone):
            return self
        inner = np.linalg.inv(self._inverse[np.ix_(gone, gone)])
        across = self._inverse[np.ix_(rest, gone)] @ inner
        left = object.__new__(Posterior)
        left.model, left.train = self.model, self.train.take(~chosen)
        left._mean = self._mean.take(rest)
        left._inverse = self._inverse[np.ix_(rest, rest)] - across @ self._inverse[np.ix_(gone, rest)]
        left._alpha = self._alpha[rest] - across @ self._alpha[gone]
        return left

    def left_one_out_z(self) -> Floats:
        """Each training row's error when it alone is left out, over its standard deviation."""
        z: Floats = self._alpha / np.sqrt(np.diagonal(self._inverse))
        return z

    def predict(self, target: Table) -> Prediction:
        """Each row of `target`; its measured value is not looked at."""
        model, h = self.model, self.model.hyper
        mean, kernels = model.mean(target), self.kernels(target)
        across = kernels.joined(mean, self._mean)
        explained = np.einsum("ij,jk,ik->i", across, self._inverse, across, optimize=True)
        variance = residual.own_variance(h, mean.shares)
        variance = variance + communication.own_variance(model.communication, mean.felt) - explained
        return Prediction(
            log_step=mean.log_step + across @ self._alpha,
            sd=np.sqrt(np.maximum(variance, 1e-6)),
            multipliers=self.multipliers(kernels),
        )

    def multipliers(self, kernels: Kernels) -> Floats:
        """Posterior mean of each group's log multiplier for the rows of `kernels`, (N, groups)."""
        found = ((kernels.alike * self._alpha) @ self._mean.shares) * self.model.hyper.classes**2
        found[:, LAUNCH_GROUP] += (kernels.pace * self._alpha) @ self._mean.shares[:, LAUNCH_GROUP]
        return np.asarray(found)

    def multiplier_covariance(self, kernels: Kernels, row: int) -> Floats:
        """Posterior covariance of the groups' log multipliers of one row, (groups, groups)."""
        h = self.model.hyper
        across = kernels.alike[row] * self._mean.shares.T * (h.classes**2)[:, None]
        across[LAUNCH_GROUP] += kernels.pace[row] * self._mean.shares[:, LAUNCH_GROUP]
        class_variance = sum(float(v) ** 2 for name, v in h.named.items() if name.startswith("b_"))
        own = np.diag(class_variance * h.classes**2)
        own[LAUNCH_GROUP, LAUNCH_GROUP] += float(h.named["host"]) ** 2 + float(h.named["framework"]) ** 2
        return np.asarray(own - across @ self._inverse @ across.T)

    def kernels(self, target: Table) -> Kernels:
        """How alike each row of `target` and each training row are."""
        return self.kernels_between(self.model, target, self.train)

    @staticmethod
    def kernels_between(model: Model, a: Table, b: Table) -> Kernels:
        """How alike each row of `a` and each of `b` are."""
        h, pairs = model.hyper, residual.pairs(a, b)
        return Kernels(
            classes=h.classes,
            alike=residual.class_kernel(h, pairs, np),
            pace=residual.host_kernel(h, pairs),
            offsets=residual.offset_kernel(h, pairs, np),
            links=model.communication,
            same=communication.comparisons(a, b),
        )


@dataclass(frozen=True, slots=True)
class Kernels:
    """The kernels between two sets of rows, before shares weigh them."""

    classes: Floats
    alike: Floats
    pace: Floats
    offsets: Floats
    links: communication.Links
    same: tuple[dict[str, Floats], Floats]

    def joined(self, a: Mean, b: Mean) -> Floats:
        """Covariance of log steps without noise, (A, B). What rows share on one GPU fades with `alone`."""
        launch = a.shares[:, LAUNCH_GROUP, None] * b.shares[None, :, LAUNCH_GROUP]
        offsets = self.offsets * a.alone[:, None] * b.alone[None, :]
        by_class = self.alike * ((a.shares * self.classes**2) @ b.shares.T)
        sent = communication.kernel(self.links, *self.same, a.felt, b.felt, np)
        return np.asarray(by_class + launch * self.pace + offsets + sent)


def left_out(model: Model, table: Table, inflation: Floats, key: str) -> Prediction:
    """Predict every row of `table` from the rows that do not share its label `key`."""
    count = len(table)
    log_step, sd, multipliers = np.empty(count), np.empty(count), np.empty((count, len(GROUPS)))
    whole = Posterior(model, table, inflation)
    for name in sorted(set(table.labels[key])):
        chosen = table.labels[key] == name
        predicted = whole.without(chosen).predict(table.take(chosen))
        log_step[chosen], sd[chosen] = predicted.log_step, predicted.sd
        multipliers[chosen] = predicted.multipliers
    return Prediction(log_step, sd, multipliers)
