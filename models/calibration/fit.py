"""Fit physics and residual to the one-GPU rows. Run as a module, it makes the profiles (make_profiles.py).

Objective: marginal likelihood + 0.5 leave-GPU-out + 0.3 leave-family-out + 0.1 leave-one-out log scores
(Student t, 4 degrees) + priors, by L-BFGS (scipy), gradients by torch. All leave-group-out residuals come
from one inverse: for a block G of rows, e = (K^-1_GG)^-1 (K^-1 r)_G with variance diag (K^-1_GG)^-1.
Fitted twice: after the first, rows with |z| > 2.5 left out get more noise. Deterministic: one thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from . import residual, vector
from .dataset import Table
from .physics import Sheet
from .posterior import Model, Posterior
from .profile import Floats

WEIGHTS = {"gpu": 0.5, "family": 0.3, "one": 0.1}
DEGREES = 4.0
ITERATIONS = 60
OUTLIER_Z = 2.5


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted vector, and how much each row's noise variance was inflated. [1]"""

    vector: Floats
    inflation: Floats
    objective: float


def fit(table: Table, start: Floats | None = None, iterations: int = ITERATIONS) -> Fit:
    """Fit to measured one-GPU rows.

    Outliers of the first round are damped in the second.
    """
    where = vector.layout()
    even = np.ones(len(table))
    first, _ = _minimise(table, where.centre if start is None else start, even, iterations)
    z = Posterior(Model(first), table, even).left_one_out_z()
    inflation = np.maximum(1.0, (np.abs(z) / OUTLIER_Z) ** 2)
    second, value = _minimise(table, first, inflation, iterations)
    return Fit(second, inflation, value)


def _minimise(table: Table, start: Floats, inflation: Floats, iterations: int) -> tuple[Floats, float]:
    import torch
    from scipy.optimize import minimize

    torch.set_num_threads(1)
    problem = _Problem(table, inflation)

    def objective(x: Floats) -> tuple[float, Floats]:
        v = torch.tensor(x, dtype=torch.float64, requires_grad=True)
        value = problem.objective(v)
        value.backward()
        assert v.grad is not None
        return float(value.detach()), v.grad.numpy().copy()

    found = minimize(
        objective, start, jac=True, method="L-BFGS-B", options={"maxiter": iterations, "maxcor": 20}
    )
    return np.asarray(found.x), float(found.fun)


class _Problem:
    """The objective on one set of rows, as torch sees it."""

    def __init__(self, table: Table, inflation: Floats) -> None:
        import torch

        self.where = vector.layout()
        self.table = _tensors(table)
        self.pairs = _pair_tensors(residual.pairs(table, table))
        flop, byte = residual.group_sums()
        self.flop_sum, self.byte_sum = torch.tensor(flop), torch.tensor(byte)
        self.y = torch.tensor(table.log_step)
        self.inflation = torch.tensor(inflation)
        names = residual.noise_names(table)
        self.noise_of = {
            name: torch.tensor([float(n == name) for n in names], dtype=torch.float64) for name in set(names)
        }
        self.rounding = torch.tensor(residual.rounding_variance(table))
        self.groups = {key: blocks(table.labels[key]) for key in ("gpu", "family") if key in WEIGHTS}
        self.centre, self.sd = torch.tensor(self.where.centre), torch.tensor(self.where.sd)

    def system(self, v: Any) -> tuple[Any, Any]:
        """(residual, covariance with noise)."""
        import torch

        c, h = vector.unpack(self.where, v, torch)
        p = residual.parts(c, self.table, self.flop_sum, self.byte_sum, torch)
        shares = p.shares()
        k = residual.covariance(h, self.pairs, shares, shares, torch)
        noise = sum((flag * h.named[name] ** 2 for name, flag in self.noise_of.items()), self.rounding)
        return self.y - p.log_step(), k + torch.diag(noise * self.inflation)

    def objective(self, v: Any) -> Any:
        import torch

        r, k = self.system(v)
        lower = torch.linalg.cholesky(k)
        inverse = torch.cholesky_inverse(lower)
        alpha = inverse @ r
        count = len(r)
        likelihood = -0.5 * (r @ alpha) - torch.log(torch.diagonal(lower)).sum()
        total = -likelihood / count
        for key, groups in self.groups.items():
            total = total - WEIGHTS[key] * left_out_score(inverse, alpha, groups) / count
        one = _student(alpha / torch.diagonal(inverse), 1.0 / torch.diagonal(inverse))
        total = total - WEIGHTS["one"] * one.sum() / count
        prior = 0.5 * (((v - self.centre) / self.sd) ** 2).sum()
        return total + prior / count


def left_out_score(inverse: Any, alpha: Any, groups: Sequence[Any], weights: Any | None = None) -> Any:
    """Log score of all rows, each predicted without its group; weights: (N,), 1 for each unless given."""
    import torch

    total = torch.zeros((), dtype=torch.float64)
    for block in groups:
        inner = torch.linalg.inv(inverse[block][:, block])
        scores = _student(inner @ alpha[block], torch.diagonal(inner))
        total = total + (scores if weights is None else scores * weights[block]).sum()
    return total


def _student(error: Any, variance: Any) -> Any:
    """Log density of Student's t with DEGREES, up to a constant."""
    import torch

    return -0.5 * torch.log(variance) - 0.5 * (DEGREES + 1) * torch.log1p(error**2 / variance / DEGREES)


def blocks(labels: Any) -> list[Any]:
    """Row indices of each label, as tensors."""
    import torch

    return [torch.tensor(np.flatnonzero(labels == name)) for name in sorted(set(labels))]


def _tensors(table: Table) -> Table:
    """The same rows with tensors in place of the arrays that physics reads."""
    import torch

    sheet = Sheet(**{f.name: torch.tensor(getattr(table.sheet, f.name)) for f in fields(Sheet)})
    read = ("flops", "bytes", "launches", "host_ops", "year", "busy")
    changed: dict[str, Any] = {name: torch.tensor(getattr(table, name)) for name in read}
    return replace(table, sheet=sheet, **changed)


def _pair_tensors(p: residual.Pairs) -> residual.Pairs:
    import torch

    return residual.Pairs(
        same={name: torch.tensor(value) for name, value in p.same.items()},
        spec_gap2=torch.tensor(np.ascontiguousarray(p.spec_gap2)),
        year_gap2=torch.tensor(p.year_gap2),
        batch_gap2=torch.tensor(p.batch_gap2),
    )
