"""Curves through a device's measured points: positive everywhere, never falling as work grows.

Products, convolutions and other FLOP-bearing ops: seconds = non-negative combination of work terms, fitted to
the relative error. Ops that only move bytes: monotone interpolation in log-log, one op a curve, unit slope
beyond the last point. Residuals and leave-one-out errors are kept beside each fit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import exp, log, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .device_profile import Point

Floats = NDArray[np.float64]
Shapes = Sequence[Sequence[int]]

# Robust weights: an error beyond this counts by its size, not its square. [relative]
_HUBER = 0.10
_ROUNDS = 8
# A curve that passes through zero would make empty work free.
LEAST_SECONDS = 1e-7
PRODUCT_OPS = {"mm": "mm", "addmm": "mm", "_addmm_activation": "mm", "bmm": "bmm", "baddbmm": "bmm"}
FEW_POINTS = 6
# An assumption: what one core gets of a shared cache. Server parts have 1.5 to 4 MB a core of their own and
# share the rest with their neighbours.
RECURRENT_CACHE_BYTES = 24 * 2**20
# Drawing a dropout mask costs by its probability: a curve of its own for one half.
HALF = " half"


def base_name(op: str) -> str:
    """`_foreach_add_` -> `add`: in-place and list forms share the plain op's curve."""
    name = op.removeprefix("_foreach_")
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def family_of(op: str, op_class: str) -> str | None:
    """The linear curve an op belongs to; None for ops priced by their bytes."""
    if op in PRODUCT_OPS:
        return PRODUCT_OPS[op]
    direction = "backward" if "backward" in op else "forward"
    if op_class.startswith("conv") or op_class in ("attention_fused", "rnn"):
        return f"{op_class} {direction}"
    return None


def product_dims(op: str, shapes: Shapes) -> tuple[int, int, int, int]:
    """(batch, m, n, k) of a product. shapes: its operands, the bias first where it has one."""
    a, b = (shapes[1], shapes[2]) if op.startswith(("add", "badd", "_addmm")) else (shapes[0], shapes[1])
    if len(a) == 3:
        return a[0], a[1], b[2], a[2]
    return 1, a[0], b[1], a[1]


def terms_of(
    op: str, op_class: str, shapes: Shapes, flops: float, read: float, written: float
) -> list[float]:
    """The work terms that a FLOP-bearing op's seconds are a combination of; the first is one call."""
    if op in PRODUCT_OPS:
        batch, m, n, k = product_dims(op, shapes)
        return [1.0, batch * m * n * k, batch * m * n, batch * m * k, batch * k * n]
    if op_class.startswith("conv"):
        return _convolution_terms(op, shapes, flops)
    if op_class == "rnn":
        return _recurrent_terms(shapes, flops, read + written)
    return [1.0, flops, read + written]


def _recurrent_terms(shapes: Shapes, flops: float, moved: float) -> list[float]:
    """Call, FLOPs, bytes, and what of the hidden weights does not stay in cache between time steps.

    On one core of a shared server an LSTM of 1,500 units runs at 31 GFLOP/s where one of 896 runs at 60.
    """
    batch, hidden = shapes[0][1], shapes[1][2] if len(shapes) > 1 and len(shapes[1]) == 3 else shapes[0][2]
    time_steps = flops / (2.0 * batch * 8 * hidden**2)
    return [1.0, flops, moved, time_steps * max(0.0, 4.0 * 4 * hidden**2 - RECURRENT_CACHE_BYTES)]


def _convolution_terms(op: str, shapes: Shapes, flops: float) -> list[float]:
    """Call, FLOPs, input, output, weight, and the unfolded input of an im2col product."""
    backward = "backward" in op
    x, weight = (shapes[1], shapes[2]) if backward else (shapes[0], shapes[1])
    per_output = prod(weight[1:])
    positions = prod(shapes[0]) / weight[0] if backward else flops / (2.0 * per_output * weight[0])
    kernel = prod(weight[2:])
    unfolded = positions * per_output if kernel > 1 else 0.0
    return [1.0, flops, float(prod(x)), positions * weight[0], float(prod(weight)), unfolded]


def fit_linear(terms: Floats, seconds: Floats) -> Floats:
    """Non-negative coefficients by least squares on the relative error, large errors weighing less.

    terms: (points, terms); seconds: (points,), positive. Returns (terms,).
    """
    from scipy.optimize import nnls

    scale = np.maximum(terms.max(axis=0), 1e-300)
    relative = terms / scale / seconds[:, None]
    weights = np.ones(len(seconds))
    coefficients = np.zeros(terms.shape[1])
    for _ in range(_ROUNDS):
        root = np.sqrt(weights)
        coefficients, _residual = nnls(relative * root[:, None], root)
        errors = np.abs(relative @ coefficients - 1.0)
        weights = np.minimum(1.0, _HUBER / np.maximum(errors, 1e-12))
    return np.asarray(coefficients / scale, dtype=np.float64)


def _leave_one_out(terms: Floats, seconds: Floats) -> float | None:
    """Median relative error of each point predicted from the others; None with fewer than four points."""
    if len(seconds) < 4:
        return None
    errors = []
    for i in range(len(seconds)):
        rest = np.arange(len(seconds)) != i
        predicted = float(terms[i] @ fit_linear(terms[rest], seconds[rest]))
        errors.append(abs(predicted / float(seconds[i]) - 1.0))
    return float(np.median(errors))


def linear_fit(points: Sequence[Point]) -> dict[str, Any]:
    """One family's curve as data. residuals: key -> natural log of measured over fitted."""
    terms = np.array(
        [terms_of(p.op, p.op_class, p.shapes, p.flops, p.bytes_read, p.bytes_written) for p in points]
    )
    seconds = np.array([p.seconds for p in points])
    coefficients = fit_linear(terms, seconds)
    fitted = np.maximum(terms @ coefficients, LEAST_SECONDS)
    ratio = seconds / fitted
    return {
        "coefficients": coefficients.tolist(),
        "points": len(points),
        "flops_range": [min(p.flops for p in points), max(p.flops for p in points)],
        "median_error": float(np.median(np.abs(ratio - 1.0))),
        "leave_one_out_error": _leave_one_out(terms, seconds),
        "residuals": {p.key: float(np.log(r)) for p, r in zip(points, ratio, strict=True)},
    }


def monotone_fit(work: Sequence[float], seconds: Sequence[float]) -> dict[str, Any]:
    """Knots (natural logs) of a rising curve: isotonic regression of log seconds over log work.

    work: bytes, positive. Knots of equal work are averaged first.
    """
    from scipy.optimize import isotonic_regression

    by_work: dict[float, list[float]] = defaultdict(list)
    for w, s in zip(work, seconds, strict=True):
        by_work[log(w)].append(log(s))
    x = sorted(by_work)
    y = [float(np.mean(by_work[value])) for value in x]
    counts = [float(len(by_work[value])) for value in x]
    rising = isotonic_regression(y, weights=counts).x
    return {
        "log_bytes": x,
        "log_seconds": [float(v) for v in rising],
        "points": len(work),
        "residuals": [float(a - b) for a, b in zip(y, rising, strict=True)],
    }


def at_bytes(knots: Mapping[str, Any], amount: float) -> float:
    """Seconds for that many bytes: PCHIP between knots, flat before the first, unit slope after the last."""
    x, y = knots["log_bytes"], knots["log_seconds"]
    here = log(max(amount, 1.0))
    if here <= x[0]:
        return exp(y[0])
    if here >= x[-1]:
        return exp(y[-1] + here - x[-1])
    return exp(_pchip(tuple(x), tuple(y), here))


_INTERPOLATORS: dict[tuple[tuple[float, ...], tuple[float, ...]], Any] = {}


def _pchip(x: tuple[float, ...], y: tuple[float, ...], here: float) -> float:
    from scipy.interpolate import PchipInterpolator

    found = _INTERPOLATORS.get((x, y))
    if found is None:
        found = _INTERPOLATORS[x, y] = PchipInterpolator(x, y)
    return float(found(here))


def fit(points: Iterable[Point]) -> dict[str, Any]:
    """Every curve of a profile, as data: linear, ops, classes, optimizer, overhead, bandwidth, transfer."""
    linear: dict[str, list[Point]] = defaultdict(list)
    ops: dict[str, list[Point]] = defaultdict(list)
    special: dict[str, list[Point]] = defaultdict(list)
    for point in points:
        family = family_of(point.op, point.op_class)
        if family is not None:
            linear[f"{family}/{point.layout}/{point.dtype}"].append(point)
        elif point.op_class in ("optimizer", "overhead", "transfer", "communication"):
            special[f"{point.op_class}/{point.layout}"].append(point)
        elif point.layout == "bandwidth":
            special["bandwidth/"].append(point)
        else:
            half = HALF if point.layout == "half" else ""
            ops[base_name(point.op) + half].append(point)
    op_fits = {
        name: {
            **monotone_fit([p.bytes for p in found], [p.seconds for p in found]),
            "class": found[0].op_class,
        }
        for name, found in sorted(ops.items())
    }
    return {
        "linear": {name: linear_fit(found) for name, found in sorted(linear.items())},
        "ops": op_fits,
        "classes": _class_curves(op_fits),
        "optimizer": {
            name.partition("/")[2]: _extras_fit(found, ("tensors", "elements", "untouched_elements"))
            for name, found in sorted(special.items())
            if name.startswith("optimizer/")
        },
        "overhead": _overhead(special),
        "bandwidth_bytes_per_second": _bandwidth(special.get("bandwidth/", [])),
        "transfer": {
            name: _extras_fit(found, ("bytes",))
            for name, found in sorted(special.items())
            if name.startswith(("transfer/", "communication/"))
        },
    }


def _class_curves(op_fits: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What an op without a curve of its own is taken for: the median of its class at each size."""
    members: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for curve in op_fits.values():
        members[curve["class"]].append(curve)
        members["any"].append(curve)
    found: dict[str, Any] = {}
    for name, curves in members.items():
        x = np.linspace(
            min(c["log_bytes"][0] for c in curves), max(c["log_bytes"][-1] for c in curves), FEW_POINTS
        )
        y = [float(np.median([log(at_bytes(c, exp(here))) for c in curves])) for here in x]
        found[name] = {"log_bytes": x.tolist(), "log_seconds": np.maximum.accumulate(y).tolist()}
    return found


def _extras_fit(points: Sequence[Point], names: Sequence[str]) -> dict[str, Any]:
    """seconds = one call + rate x extra, for what is counted in other things than FLOPs and bytes."""
    terms = np.array([[1.0, *(p.extra[name] for name in names)] for p in points])
    seconds = np.array([p.seconds for p in points])
    coefficients = fit_linear(terms, seconds)
    ratio = seconds / np.maximum(terms @ coefficients, LEAST_SECONDS)
    return {
        "terms": ["call", *names],
        "coefficients": coefficients.tolist(),
        "points": len(points),
        "median_error": float(np.median(np.abs(ratio - 1.0))),
        "residuals": {p.key: float(np.log(r)) for p, r in zip(points, ratio, strict=True)},
    }


def _overhead(special: Mapping[str, Sequence[Point]]) -> dict[str, float]:
    """dispatch, view [s a call]; per_op: what modules and autograd add to each op beside its dispatch. [s]"""
    found: dict[str, float] = {}
    for name in ("dispatch", "view", "chain"):
        for point in special.get(f"overhead/{name}", []):
            found[name] = point.hot.median / point.extra["ops"]
    found["per_op"] = max(0.0, found.get("chain", 0.0) - found.get("dispatch", 0.0))
    return found


def _bandwidth(points: Sequence[Point]) -> float | None:
    """Bytes read and written a second by the largest copy; None where no copy was measured."""
    if not points:
        return None
    largest = max(points, key=lambda p: p.bytes)
    return largest.bytes / largest.hot.median


class Curves:
    """The fits of one profile, ready to be asked."""

    def __init__(self, fits: Mapping[str, Any]) -> None:
        self.fits = fits

    def op_seconds(
        self,
        op: str,
        op_class: str,
        dtype: str,
        layout: str,
        shapes: Shapes,
        flops: float,
        read: float,
        written: float,
    ) -> tuple[float, str]:
        """(seconds of one call, how it was found): "curve", or "class" where its op was not measured.

        Work of zero still costs a call. Raises KeyError where the profile has no curve of any kind.
        """
        family = family_of(op, op_class)
        if family is not None:
            found = self._linear(family, layout, dtype)
            if found is not None:
                terms = terms_of(op, op_class, shapes, flops, read, written)
                return self._combined(found["coefficients"], terms), "curve"
        curve = self.fits["ops"].get(base_name(op) + (HALF if layout == "half" else ""))
        curve = self.fits["ops"].get(base_name(op)) if curve is None else curve
        if curve is not None:
            return at_bytes(curve, read + written), "curve"
        classes = self.fits["classes"]
        return at_bytes(classes.get(op_class, classes["any"]), read + written), "class"

    def _linear(self, family: str, layout: str, dtype: str) -> Mapping[str, Any] | None:
        fits: Mapping[str, Any] = self.fits["linear"]
        exact = fits.get(f"{family}/{layout}/{dtype}")
        if exact is not None:
            found: Mapping[str, Any] = exact
            return found
        for name, other in fits.items():  # another layout of the same type is nearer than the class median
            if name.startswith(f"{family}/") and name.endswith(f"/{dtype}"):
                also: Mapping[str, Any] = other
                return also
        return None

    @staticmethod
    def _combined(coefficients: Sequence[float], terms: Sequence[float]) -> float:
        return max(LEAST_SECONDS, sum(c * t for c, t in zip(coefficients, terms, strict=True)))

    def optimizer_seconds(self, kind: str, terms: Mapping[str, float]) -> float | None:
        """Seconds of one optimizer step; None where that kind was not measured.

        terms: tensors, elements, untouched_elements, as optimizer_step.py names them.
        """
        found = self.fits["optimizer"].get(kind)
        if found is None:
            return None
        return self._combined(found["coefficients"], [1.0, *(terms[name] for name in found["terms"][1:])])

    @property
    def per_op_seconds(self) -> float:
        """What modules and autograd add to an op. [s]"""
        return float(self.fits["overhead"].get("per_op", 0.0))
