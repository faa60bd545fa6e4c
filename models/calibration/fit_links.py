"""Fit what several GPUs add, with the one-GPU model held fixed: link bandwidths, overlap, their spread.

Leave-out scores alone (host, GPU type, family), as in fit.py but without the marginal likelihood: rows of one
host repeat each other, and the likelihood would count them as evidence many times over.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import communication
from .dataset import Table
from .fit import ITERATIONS, blocks, left_out_score
from .posterior import Model, Posterior
from .profile import Floats

JITTER = 1e-6
WEIGHTS = {"host": 0.5, "gpu": 0.5, "family": 0.3}


def fit_links(model: Model, table: Table, inflation: Floats, iterations: int = ITERATIONS) -> Floats:
    """The links vector that predicts left-out rows of several GPUs best."""
    import torch
    from scipy.optimize import minimize

    torch.set_num_threads(2)
    problem = _Problem(model, table, inflation)

    def objective(x: Floats) -> tuple[float, Floats]:
        v = torch.tensor(x, dtype=torch.float64, requires_grad=True)
        value = problem.objective(v)
        value.backward()
        assert v.grad is not None
        return float(value.detach()), v.grad.numpy().copy()

    start, sd = communication.prior()
    # Bounds keep a step of the search from leaving the range where the covariance is one.
    bounds = [(float(a), float(b)) for a, b in zip(start - 2.5 * sd, start + 2.5 * sd, strict=True)]
    found: Any = minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": iterations}
    )
    return np.asarray(found.x)


class _Problem:
    def __init__(self, model: Model, table: Table, inflation: Floats) -> None:
        import torch

        kernels = Posterior.kernels_between(model, table, table)
        parts = model.parts(table)
        self.log_step1 = torch.tensor(np.asarray(parts.log_step()))
        self.shares1 = torch.tensor(parts.shares())
        self.classes2 = torch.tensor(kernels.classes**2)
        self.alike, self.pace = torch.tensor(kernels.alike), torch.tensor(kernels.pace)
        self.offsets = torch.tensor(kernels.offsets)
        same, gap = kernels.same
        self.same = {name: torch.tensor(value) for name, value in same.items()}
        self.count_gap2 = torch.tensor(gap)
        seen = communication.labels(table)
        self.seen = communication.Labels(
            *(torch.tensor(seen.link), torch.tensor(seen.hidden), torch.tensor(seen.volume_seconds)),
            seen.log_count,
        )
        self.several = torch.tensor((table.gpu_count > 1).astype(np.float64))
        base = model.noise(table, inflation)
        extra = float(model.communication.named["extra_noise"]) ** 2
        self.noise = torch.tensor(base) - self.several * extra
        self.y = torch.tensor(table.log_step)
        self.groups = {key: blocks(table.labels[key]) for key in WEIGHTS}
        centre, sd = communication.prior()
        self.centre, self.sd = torch.tensor(centre), torch.tensor(sd)

    def objective(self, v: Any) -> Any:
        import torch

        k = communication.unpack(v, torch)
        whole = communication.exposed(k, self.seen, self.log_step1, torch)
        shares = self.shares1 * whole.alone[:, None]
        launch = shares[:, -1]
        cov = self.alike * ((shares * self.classes2) @ shares.T) + self.pace * launch[:, None] * launch
        cov = cov + self.offsets * whole.alone[:, None] * whole.alone
        cov = cov + communication.kernel(k, self.same, self.count_gap2, whole.felt, whole.felt, torch)
        noise = self.noise + self.several * k.named["extra_noise"] ** 2
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(cov + torch.diag(noise + JITTER)))
        alpha = inverse @ (self.y - whole.log_step)
        count = float(self.several.sum())
        total = 0.5 * (((v - self.centre) / self.sd) ** 2).sum() / count
        for key, weight in WEIGHTS.items():
            total = total - weight * left_out_score(inverse, alpha, self.groups[key], self.several) / count
        return total
