"""The fit itself, on few rows: it lowers its objective and repeats itself."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("scipy")

from planner.models.calibration import parameters, vector
from planner.models.calibration.dataset import table_of
from planner.models.calibration.fit import fit
from planner.models.calibration.rows import read, scored


def test_a_short_fit_lowers_the_objective_and_is_the_same_twice() -> None:
    table = table_of(scored(read(parameters.data_path())))
    few = table.take(np.flatnonzero(table.gpu_count == 1)[::8])
    shorter, longer = fit(few, iterations=2), fit(few, iterations=6)
    again = fit(few, iterations=2)
    assert longer.objective < shorter.objective
    np.testing.assert_array_equal(shorter.vector, again.vector)
    assert len(shorter.vector) == len(vector.layout().centre)
    assert shorter.inflation.min() >= 1
