"""One card's figures as physics reads them, for fitting and for planning alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import Literal

from ..hardware.records import Gpu
from ..precision import Unit, peak_flops, unit_of
from ..tracing.step_trace import OP_CLASSES
from .physics import UNITS

Layout = Literal["nchw", "nhwc"]
# In 16 bits, matrix units convolve channels last. Given channels first, cuDNN transposes what it reads and
# what it writes, in kernels of their own: each byte is read and written once more. Depthwise and grouped
# kernels work on either layout, and so do those of TF32.
REWRITES = 2.0
REWRITE_LAUNCHES = 2
REWRITTEN = frozenset({"conv", "conv_1x1", "conv_stem"})
# Cards that torch sees as several devices: the figures of the card are halved for one of them.
DEVICES_PER_CARD: Mapping[str, int] = {"mi250-128gb": 2}


@dataclass(frozen=True, slots=True)
class CardRow:
    """Figures of one torch device on one card, in the units of one precision.

    peak_flops: datasheet, dense [FLOP/s]; rate_flops: achieved on large products [FLOP/s];
    sm_clock: SMs x boost clock [1/s]; log_power: log min(3, 0.45 W/TFLOPS) on matrix units, else 0.
    rewrites (C,): how often layout changes move each byte of an op class again.
    """

    unit: Unit
    peak_flops: float
    rate_flops: float
    bandwidth: float
    sm_clock: float
    l2_bytes: float
    watts: float
    log_power: float
    rewrites: tuple[float, ...]

    @property
    def unit_index(self) -> int:
        return UNITS.index(self.unit)


def card_row(
    gpu: Gpu,
    precision: str,
    achieved: Mapping[str, float],
    power_limit_watts: float | None = None,
    layout: Layout = "nchw",
) -> CardRow:
    """achieved: unit -> sustained rate of the card [FLOP/s]; the datasheet's where it is missing.

    layout: of images in memory; channels first is torch's default.

    Raises UnknownFigure, PrecisionUnsupported.
    """
    unit = unit_of(gpu, precision)
    devices = DEVICES_PER_CARD.get(gpu.id, 1)
    peak = peak_flops(gpu, precision)
    rate = achieved.get("fp32" if unit == "half_on_fp32" else unit, peak)
    watts = gpu.tdp_watts if power_limit_watts is None else min(power_limit_watts, gpu.tdp_watts)
    on_matrix_units = unit in ("tf32", "half")
    moved = unit == "half" and layout == "nchw" and gpu.vendor.casefold() == "nvidia"
    return CardRow(
        unit=unit,
        peak_flops=peak / devices,
        rate_flops=rate / devices,
        bandwidth=gpu.bandwidth_bytes_per_second / devices,
        sm_clock=gpu.sm_count * gpu.boost_clock_hz / devices,
        l2_bytes=float(gpu.l2_bytes) / devices,
        watts=watts / devices,
        log_power=log(min(3.0, 0.45 * watts / (peak / 1e12))) if on_matrix_units else 0.0,
        rewrites=tuple(REWRITES * (moved and name in REWRITTEN) for name in OP_CLASSES),
    )
