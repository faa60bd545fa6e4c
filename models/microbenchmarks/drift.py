"""How much slower the machine is now than when it was calibrated: a few ops of the suites, timed again.

On a shared machine the neighbours' use of caches and memory moves the CPU time of the very same op by tens of
percent within minutes. That is no error of a prediction, so it is measured and stated beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import exp, log

from ..calibration.device_profile import DeviceProfile
from .registry import Case
from .timing import Visit, stats_of

# What steps spend their time in, spread over compute, caches and memory.
BASKET = (
    "addmm/nt/480x640x640/float32", "mm/nn/224x2048x512/float32", "mm/tn/1920x640x480/float32",
    "convolution/channels_first/3x112x30->112k3s1g1p1/float32", "add/4200000", "copy_/67108864",
    "adamw-loop/60x6000000/0",
)  # fmt: skip


class Drift:
    """Ratios of a basket's seconds now to their medians in the profile."""

    def __init__(
        self, profile: DeviceProfile, cases: Sequence[Case], visitor: Callable[[Case], Visit]
    ) -> None:
        self._then = {point.key: point.seconds for point in profile.points}
        self._cases = [case for case in cases if case.key in BASKET and case.key in self._then]
        self._visitor = visitor

    def now(self) -> dict[str, float]:
        """Case key -> seconds now over seconds then."""
        return {case.key: _seconds(self._visitor(case)) / self._then[case.key] for case in self._cases}


def _seconds(visit: Visit) -> float:
    hot = stats_of(visit.hot).median
    return (hot + stats_of(visit.cold).median) / 2 if visit.cold else hot


def mean_ratio(ratios: Mapping[str, float] | Sequence[float]) -> float:
    """Geometric mean; 1.0 of nothing.

    >>> round(mean_ratio([2.0, 0.5]), 6)
    1.0
    """
    values = list(ratios.values()) if isinstance(ratios, Mapping) else list(ratios)
    return exp(sum(log(value) for value in values) / len(values)) if values else 1.0
