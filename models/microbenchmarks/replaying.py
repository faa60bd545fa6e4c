"""`planner calibrate` as one function: the suites, a model's own ops if asked for, resumed after a kill."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ..calibration import replay as replays
from ..calibration.device_price import DevicePrice, price_step
from ..calibration.device_profile import DeviceProfile
from ..tracing.step_trace import StepTrace
from ..workloads import zoo
from . import environment, registry, session
from .anchoring import anchored
from .steps import StepCase, dropout_of, trace_for_card, trace_for_cpu

# Of the time asked for: three to five small steps, each traced and then repeated.
ANCHOR_SHARE = 1 / 6
_DEFAULT_OPTIMIZER = {"cpu": "adamw-loop", "cuda": "adamw-foreach"}


def calibrate_with(
    *,
    seconds: float,
    device: str | None,
    replay: str | None = None,
    batch: int = 4,
    size: int | None = None,
    fresh: bool = False,
    tiny: bool = False,
    anchors: bool = True,
) -> DeviceProfile:
    """Calibrate, and with `replay` time that workload's own ops and price its step in both tiers.

    anchors: run a few real steps in the last sixth of the time, and learn from them. What was run and what
    was priced stand in the profile's `anchors`. Raises UnknownName for a workload nobody knows,
    TraceUnavailable without torch.
    """
    from ..workloads.building import require_torch

    require_torch("calibrating")
    kind = environment.device_kind(device)
    for_steps = ANCHOR_SHARE * seconds if anchors else 0.0
    seconds -= for_steps
    partial = partial_file(kind)
    if fresh:
        partial.unlink(missing_ok=True)
    if replay is None:
        profile = session.calibrate(seconds=seconds, device=kind, partial_file=partial, tiny=tiny)
    else:
        step = StepCase(zoo.workload(replay), batch, size, _DEFAULT_OPTIMIZER[kind])
        trace = trace_for_cpu(step) if kind == "cpu" else trace_for_card(step)
        rows = replays.cases_of(trace, batch, "float32")
        extra = own_cases(rows, registry.cases(session.target_of(kind, tiny)))
        profile = session.calibrate(
            seconds=seconds, device=kind, partial_file=partial, tiny=tiny, extra=extra
        )
        profile = replace(profile, anchors=prices(step, trace, profile, rows))
    if anchors and not profile.protocol["interrupted"]:
        profile = anchored(profile, kind, for_steps)
    with contextlib.suppress(FileNotFoundError):
        partial.unlink()
    return profile


def own_cases(rows: replays.RowCases, known: tuple[registry.Case, ...]) -> list[registry.Case]:
    """The replay's cases, once each, without those the suites hold already."""
    keys = {case.key for case in known}
    unique = {case.key: case for case in rows.values() if case.key not in keys}
    return [replace(case, suite="replay") for case in unique.values()]


def prices(
    step: StepCase, trace: StepTrace, profile: DeviceProfile, rows: replays.RowCases
) -> tuple[dict[str, Any], ...]:
    """The step on the suites' curves, and with its own ops where they were timed."""
    timed = replays.seconds_of(rows, profile.points)
    dropout = dropout_of(step.workload)
    found = [price_step(trace, step.batch, profile, optimizer=step.optimizer, dropout=dropout)]
    if timed:
        found.append(
            price_step(trace, step.batch, profile, optimizer=step.optimizer, dropout=dropout, replayed=timed)
        )
    return tuple(_as_data(step.name, price) for price in found)


def _as_data(name: str, price: DevicePrice) -> dict[str, Any]:
    body = asdict(price)
    del body["ops"]
    return {"name": name, **body}


def partial_file(kind: str) -> Path:
    """Where a calibration under way keeps its results: the user's cache folder."""
    from ..workloads import cache

    folder = cache.folder()
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"calibration-{kind}.jsonl"
