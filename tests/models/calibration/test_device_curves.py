"""Curves: exact on data that follow them, positive, never falling, sane beyond what was measured."""

from __future__ import annotations

from math import log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.models.calibration import device_curves as curves
from planner.models.calibration.device_profile import Point, Timing

pytest.importorskip("scipy")


def timing(seconds: float) -> Timing:
    return Timing(seconds, seconds, seconds, 0.0, 3)


def product(m: int, n: int, k: int, seconds: float) -> Point:
    return Point(
        key=f"mm/nn/{m}x{n}x{k}",
        suite="matmul",
        op="mm",
        op_class="gemm",
        dtype="float32",
        layout="nn",
        shapes=((m, k), (k, n)),
        flops=2.0 * m * n * k,
        bytes_read=4.0 * (m * k + k * n),
        bytes_written=4.0 * m * n,
        hot=timing(seconds),
    )


def elementwise(op: str, amount: float, seconds: float, op_class: str = "elementwise") -> Point:
    return Point(op, "elementwise", op, op_class, "float32", "", ((1,),), 0, amount, 0, timing(seconds))


def special(op_class: str, layout: str, seconds: float, **extra: float) -> Point:
    key = f"{layout}/{sorted(extra.items())}"
    return Point(
        key, "s", layout, op_class, "float32", layout, ((1,),), 0, 0, 0, timing(seconds), None, extra
    )


SHAPES = [(64, 64, 64), (128, 512, 256), (512, 128, 1024), (300, 700, 90), (1024, 1024, 1024), (2048, 64, 64)]


def true_seconds(m: int, n: int, k: int) -> float:
    return 5e-6 + 1e-11 * m * n * k + 3e-10 * m * n + 1e-10 * m * k + 2e-10 * n * k


def test_a_product_curve_is_exact_on_points_that_follow_its_form() -> None:
    found = curves.Curves(curves.fit([product(*shape, true_seconds(*shape)) for shape in SHAPES]))
    m, n, k = 777, 333, 555
    shapes = ((m, k), (k, n))
    seconds, how = found.op_seconds("mm", "gemm", "float32", "nn", shapes, 2.0 * m * n * k, 1.0, 1.0)
    assert how == "curve"
    assert seconds == pytest.approx(true_seconds(m, n, k), rel=1e-6)


def test_one_wild_point_hardly_moves_a_curve() -> None:
    points = [product(*shape, true_seconds(*shape)) for shape in SHAPES]
    points.append(product(640, 640, 640, 4 * true_seconds(640, 640, 640)))
    found = curves.fit(points)["linear"]["mm/nn/float32"]
    assert found["residuals"]["mm/nn/640x640x640"] == pytest.approx(log(4), abs=0.2)
    assert found["median_error"] < 0.05


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.floats(1e-6, 1.0), min_size=6, max_size=6),
    st.tuples(st.integers(1, 4000), st.integers(1, 4000), st.integers(1, 4000)),
)
def test_a_product_curve_is_positive_and_never_falls(
    seconds: list[float], shape: tuple[int, int, int]
) -> None:
    points = [product(*known, measured) for known, measured in zip(SHAPES, seconds, strict=True)]
    found = curves.Curves(curves.fit(points))

    def at(m: int, n: int, k: int) -> float:
        return found.op_seconds("mm", "gemm", "float32", "nn", ((m, k), (k, n)), 2.0 * m * n * k, 1.0, 1.0)[0]

    m, n, k = shape
    assert at(m, n, k) > 0
    assert at(2 * m, n, k) >= at(m, n, k)
    assert at(m, n, 2 * k) >= at(m, n, k)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.floats(1e3, 1e9), st.floats(1e-6, 1.0)), min_size=2, max_size=8),
    st.floats(1, 1e12),
    st.floats(1, 100),
)
def test_a_byte_curve_is_positive_and_never_falls(
    measured: list[tuple[float, float]], amount: float, times: float
) -> None:
    knots = curves.monotone_fit([m[0] for m in measured], [m[1] for m in measured])
    here, beyond = curves.at_bytes(knots, amount), curves.at_bytes(knots, amount * times)
    assert here > 0
    assert beyond >= here * (1 - 1e-9)


def test_a_byte_curve_passes_through_rising_points_and_goes_on_in_proportion() -> None:
    knots = curves.monotone_fit([1e4, 1e6, 1e8], [1e-5, 1e-4, 5e-3])
    assert curves.at_bytes(knots, 1e6) == pytest.approx(1e-4)
    assert curves.at_bytes(knots, 1e9) == pytest.approx(5e-2)
    assert curves.at_bytes(knots, 10) == pytest.approx(1e-5)


def test_residuals_are_kept_beside_a_byte_curve() -> None:
    knots = curves.monotone_fit([1e4, 1e5, 1e6], [1e-5, 4e-5, 2e-5])
    assert max(abs(residual) for residual in knots["residuals"]) == pytest.approx(log(2) / 2)


def test_an_op_that_was_not_measured_takes_the_median_of_its_class() -> None:
    points = [
        elementwise(op, amount, slowness * amount)
        for op, slowness in {"add": 1e-9, "mul": 2e-9, "exp": 9e-9}.items()
        for amount in (1e4, 1e8)
    ]
    found = curves.Curves(curves.fit(points))
    seconds, how = found.op_seconds("erf", "elementwise", "float32", "", (), 0, 1e6, 0)
    assert how == "class"
    assert seconds == pytest.approx(2e-9 * 1e6, rel=1e-6)
    assert found.op_seconds("add_", "elementwise", "float32", "", (), 0, 1e6, 0)[1] == "curve"


def test_a_coin_costs_what_a_coin_was_measured_to_cost() -> None:
    often = elementwise("bernoulli_", 1e6, 0.01)
    coin = Point("c", "e", "bernoulli_", "elementwise", "float32", "half", ((1,),), 0, 1e6, 0, timing(0.02))
    found = curves.Curves(curves.fit([often, coin]))
    ask = ("bernoulli_", "elementwise", "float32")
    assert found.op_seconds(*ask, "half", (), 0, 1e6, 0)[0] == pytest.approx(0.02)
    assert found.op_seconds(*ask, "", (), 0, 1e6, 0)[0] == pytest.approx(0.01)


def test_an_optimizer_is_fitted_in_tensors_and_elements_and_an_unknown_one_is_none() -> None:
    mixes = [(8, 1e6, 0.0), (100, 1e6, 0.0), (50, 3e7, 2e7), (10, 5e6, 0.0)]
    points = [
        special(
            "optimizer",
            "adamw-loop",
            1e-5 * tensors + 4e-9 * elements + 2e-9 * large,
            tensors=tensors,
            elements=elements,
            untouched_elements=large,
        )
        for tensors, elements, large in mixes
    ]
    found = curves.Curves(curves.fit(points))
    terms = {"tensors": 40.0, "elements": 2e7, "untouched_elements": 1e7}
    assert found.optimizer_seconds("adamw-loop", terms) == pytest.approx(4e-4 + 0.08 + 0.02, rel=1e-5)
    assert found.optimizer_seconds("lion-loop", terms) is None


def test_modules_cost_what_a_chain_takes_beyond_its_dispatches() -> None:
    points = [
        special("overhead", "dispatch", 3e-6, ops=1),
        special("overhead", "chain", 288 * 15e-6, ops=288),
        elementwise("add", 1e4, 1e-5),
    ]
    assert curves.Curves(curves.fit(points)).per_op_seconds == pytest.approx(12e-6)


def test_convolutions_count_their_output_from_either_side() -> None:
    forward = curves.terms_of("convolution", "conv", ((2, 8, 10, 10), (16, 8, 3, 3)), 2 * 72 * 16 * 200, 0, 0)
    backward = curves.terms_of(
        "convolution_backward", "conv", ((2, 16, 10, 10), (2, 8, 10, 10), (16, 8, 3, 3)), 1.0, 0, 0
    )
    assert forward[2:] == backward[2:] == [1600.0, 3200.0, 1152.0, 200 * 72.0]


def test_a_recurrent_stack_streams_what_its_cache_cannot_hold_at_each_time_step() -> None:
    def terms(hidden: int) -> list[float]:
        flops = 2.0 * 12 * 4 * 8 * hidden**2
        return curves.terms_of("lstm", "rnn", ((12, 4, hidden), (1, 4, hidden)), flops, 1.0, 2.0)

    assert terms(480)[-1] == 0
    assert terms(2048)[-1] == 12 * (16 * 2048**2 - curves.RECURRENT_CACHE_BYTES)
