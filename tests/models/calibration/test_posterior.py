"""Conditioning: left out means left out, and closed forms equal the long way."""

from __future__ import annotations

import numpy as np
import pytest

from planner.models.calibration import communication, parameters, physics, residual
from planner.models.calibration.dataset import Table, table_of
from planner.models.calibration.posterior import Model, Posterior, left_out
from planner.models.calibration.rows import read, scored


@pytest.fixture(scope="module")
def rows() -> Table:
    table = table_of(scored(read(parameters.data_path())))
    return table.take(np.arange(0, len(table), 9))


@pytest.fixture(scope="module")
def model() -> Model:
    return parameters.shipped().model


def test_taking_rows_out_of_the_inverse_equals_never_having_had_them(rows: Table, model: Model) -> None:
    gone = rows.labels["gpu"] == "a100-sxm4-80gb"
    even = np.ones(len(rows))
    short = Posterior(model, rows, even).without(gone).predict(rows.take(gone))
    long = Posterior(model, rows.take(~gone), even[~gone]).predict(rows.take(gone))
    np.testing.assert_allclose(short.log_step, long.log_step, atol=1e-6)
    np.testing.assert_allclose(short.sd, long.sd, atol=1e-5)


def test_left_out_predictions_ignore_the_measured_values_left_out(rows: Table, model: Model) -> None:
    even = np.ones(len(rows))
    before = left_out(model, rows, even, "gpu")
    gone = rows.labels["gpu"] == "rtx-2080-ti-11gb"
    assert gone.any()
    lied = rows.take(np.arange(len(rows)))
    lied.log_step[gone] += 1.0
    after = left_out(model, lied, even, "gpu")
    np.testing.assert_allclose(before.log_step[gone], after.log_step[gone], atol=1e-9)
    assert np.abs(before.log_step[~gone] - after.log_step[~gone]).max() > 1e-3


def test_the_prior_covariance_is_one(rows: Table, model: Model) -> None:
    mean = model.mean(rows)
    k = Posterior.kernels_between(model, rows, rows).joined(mean, mean)
    np.testing.assert_allclose(k, k.T, atol=1e-12)
    assert np.linalg.eigvalsh(k).min() > -1e-8
    own = residual.own_variance(model.hyper, mean.shares)
    several = rows.gpu_count > 1
    own = own + communication.own_variance(model.communication, mean.felt)
    # Offsets fade with the share of one GPU's step, which own_variance leaves out on the safe side.
    assert np.all(own[~several] == pytest.approx(np.diagonal(k)[~several]))
    assert np.all(own[several] >= np.diagonal(k)[several] - 1e-9)


def test_shares_add_up_to_the_whole_step(rows: Table, model: Model) -> None:
    one = rows.take(rows.gpu_count == 1)
    shares = model.parts(one).shares()
    np.testing.assert_allclose(shares.sum(1), 1.0)
    assert shares.min() >= 0
    assert shares.shape == (len(one), len(physics.GROUPS))
