"""One card's figures as physics reads them, for fitting and for planning alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log

from ..hardware.records import Gpu
from ..precision import Unit, peak_flops, unit_of
from .physics import UNITS

# Cards that torch sees as several devices: the figures of the card are halved for one of them.
DEVICES_PER_CARD: Mapping[str, int] = {"mi250-128gb": 2}


@dataclass(frozen=True, slots=True)
class CardRow:
    """Figures of one torch device on one card, in the units of one precision.

    peak_flops: datasheet, dense [FLOP/s]; rate_flops: achieved on large products [FLOP/s];
    sm_clock: SMs x boost clock [1/s]; log_power: log min(3, 0.45 W/TFLOPS) on matrix units, else 0.
    """

    unit: Unit
    peak_flops: float
    rate_flops: float
    bandwidth: float
    sm_clock: float
    l2_bytes: float
    watts: float
    log_power: float

    @property
    def unit_index(self) -> int:
        return UNITS.index(self.unit)


def card_row(
    gpu: Gpu, precision: str, achieved: Mapping[str, float], power_limit_watts: float | None = None
) -> CardRow:
    """achieved: unit -> sustained rate of the card [FLOP/s]; the datasheet's where it is missing.

    Raises UnknownFigure, PrecisionUnsupported.
    """
    unit = unit_of(gpu, precision)
    devices = DEVICES_PER_CARD.get(gpu.id, 1)
    peak = peak_flops(gpu, precision)
    rate = achieved.get("fp32" if unit == "half_on_fp32" else unit, peak)
    watts = gpu.tdp_watts if power_limit_watts is None else min(power_limit_watts, gpu.tdp_watts)
    on_matrix_units = unit in ("tf32", "half")
    return CardRow(
        unit=unit,
        peak_flops=peak / devices,
        rate_flops=rate / devices,
        bandwidth=gpu.bandwidth_bytes_per_second / devices,
        sm_clock=gpu.sm_count * gpu.boost_clock_hz / devices,
        l2_bytes=float(gpu.l2_bytes) / devices,
        watts=watts / devices,
        log_power=log(min(3.0, 0.45 * watts / (peak / 1e12))) if on_matrix_units else 0.0,
    )
