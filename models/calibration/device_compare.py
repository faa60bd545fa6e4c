"""Two device profiles side by side: how much faster the second is, by kind of work, and what else differs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import exp, log

from .device_profile import DeviceProfile

_SETTINGS = ("torch", "threads", "allocator", "cuda", "cudnn", "tf32_matmul", "tf32_cudnn")


@dataclass(frozen=True, slots=True)
class Compared:
    """One suite. ratio: seconds of the second over the first, geometric mean of the points both have;
    low, high: the 10th and 90th percentile of those ratios.
    """

    suite: str
    points: int
    ratio: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """suites: by name. differing: settings that are not the same, "name: first / second"."""

    suites: tuple[Compared, ...]
    differing: tuple[str, ...]
    only_first: int
    only_second: int


def compare(first: DeviceProfile, second: DeviceProfile) -> Comparison:
    """Ratios of the points that both profiles hold, by suite and over all."""
    then = {point.key: point for point in first.points}
    now = {point.key: point for point in second.points}
    ratios: dict[str, list[float]] = defaultdict(list)
    for key in then.keys() & now.keys():
        ratio = now[key].seconds / then[key].seconds
        ratios[now[key].suite].append(ratio)
        ratios["all"].append(ratio)
    suites = tuple(_compared(name, ratios[name]) for name in sorted(ratios, key=lambda n: (n == "all", n)))
    differing = [
        f"{name}: {first.software.get(name)} / {second.software.get(name)}"
        for name in _SETTINGS
        if first.software.get(name) != second.software.get(name)
    ]
    if first.device["name"] != second.device["name"]:
        differing.insert(0, f"device: {first.device['name']} / {second.device['name']}")
    return Comparison(suites, tuple(differing), len(then.keys() - now.keys()), len(now.keys() - then.keys()))


def _compared(name: str, ratios: list[float]) -> Compared:
    ordered = sorted(ratios)
    last = len(ordered) - 1
    return Compared(
        suite=name,
        points=len(ordered),
        ratio=exp(sum(log(ratio) for ratio in ordered) / len(ordered)),
        low=ordered[round(0.1 * last)],
        high=ordered[round(0.9 * last)],
    )
