"""The real steps that anchor a calibration: small models unlike each other, run once the suites are done."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from ..calibration.anchors import Anchor, multipliers, priced_by_group
from ..calibration.device_price import price_step
from ..calibration.device_profile import DeviceProfile
from ..workloads import zoo
from . import environment
from .steps import StepCase, dropout_of, measure_step, trace_for_card, trace_for_cpu

# (workload, micro-batch on a CPU, on a card, tokens or pixels, optimizer without its form). None of them is
# among the steps of accuracy_cpu.py and accuracy_cuda.py, so that those stay unseen.
STEPS = (
    ("resnet18", 2, 128, 224, "sgd-momentum"),
    ("albert-base-v2", 2, 32, 96, "adamw"),
    ("vit-small", 2, 64, 224, "adamw"),
    ("distilgpt2", 2, 16, 96, "adamw"),
    ("mobilenet-v2", 2, 64, 224, "sgd-momentum"),
)
FORM = {"cpu": "loop", "cuda": "foreach"}
REPEATS, STEP_SECONDS = 7, 3.0


def step_cases(kind: str, precision: str = "fp32") -> list[StepCase]:
    """The anchors for a kind of device."""
    found = []
    for name, small, large, size, rule in STEPS:
        batch = small if kind == "cpu" else large
        found.append(StepCase(zoo.workload(name), batch, size, f"{rule}-{FORM[kind]}", precision))
    return found


def measured(
    profile: DeviceProfile, kind: str, seconds: float, say: Callable[[str], None] = lambda _: None
) -> tuple[Anchor, ...]:
    """Price and run one step after the other until `seconds` [s] are over, three in any case."""
    end = time.monotonic() + seconds
    found: list[Anchor] = []
    for case in step_cases(kind):
        if len(found) >= 3 and time.monotonic() > end:
            break
        trace = trace_for_cpu(case) if kind == "cpu" else trace_for_card(case)
        price = price_step(
            trace,
            case.batch,
            profile,
            precision=case.precision,
            optimizer=case.optimizer,
            dropout=dropout_of(case.workload),
        )
        with environment.one_thread():
            stats = measure_step(case, kind, repeats=REPEATS, seconds=STEP_SECONDS).stats
        say(f"{case.name}: priced {price.step_seconds:.3g} s, measured {stats.median:.3g} s")
        found.append(
            Anchor(case.name, stats.median, stats.spread, stats.count, priced_by_group(price.breakdown))
        )
    return tuple(found)


def anchored(
    profile: DeviceProfile, kind: str, seconds: float, say: Callable[[str], None] = lambda _: None
) -> DeviceProfile:
    """The profile with its anchors, and with multipliers where they prove themselves."""
    anchors = measured(profile, kind, seconds, say)
    learned = multipliers(anchors)
    said = [
        {
            "name": anchor.name,
            "measured_seconds": anchor.measured,
            "spread": anchor.spread,
            "repeats": anchor.repeats,
            "priced_seconds": sum(anchor.priced.values()),
            "priced": dict(anchor.priced),
        }
        for anchor in anchors
    ]
    fits = {**profile.fits, "multipliers": learned.to_json()}
    return replace(profile, anchors=(*profile.anchors, *said), fits=fits)
