"""`make accuracy-cpu`: calibrate this machine, predict eight training steps, then run them. Prints the table.

    python -m planner.models.microbenchmarks.accuracy_cpu [--seconds 90] [--repeats 7] [-o FILE.json]

No shape of the eight is in the microbenchmarks. Steps are real: random weights, forward, backward, update;
process CPU time of one thread, the allocator pinned as in the calibration.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..calibration import device_profile
from ..calibration.device_price import DevicePrice, price_step
from ..calibration.device_profile import DeviceProfile
from ..tracing.step_trace import StepTrace
from ..workloads import zoo
from . import environment, registry, session, timing
from .drift import Drift, mean_ratio
from .steps import StepCase, build_step, dropout_of, trace_for_cpu

# (workload, micro-batch, tokens or pixels, optimizer): small, so that a step takes 0.03 to 3 s on one thread.
CASES = (
    ("mlp-mnist", 128, None, "sgd-momentum-loop"),
    ("lstm-lm", 4, 35, "sgd-momentum-loop"),
    ("distilbert-base", 2, 128, "adamw-loop"),
    ("bert-base", 2, 128, "adamw-loop"),
    ("gpt2", 2, 128, "adamw-loop"),
    ("vit-base", 2, 224, "adamw-loop"),
    ("resnet50", 4, 224, "sgd-momentum-loop"),
    ("resnet152", 2, 224, "sgd-momentum-loop"),
)
BASELINES = ("constant FLOP/s", "roofline", "bandwidth")


@dataclass(frozen=True, slots=True)
class Row:
    """One workload. Seconds of a step; drift: how much slower the machine's reference ops ran meanwhile."""

    name: str
    predicted: float
    measured: float
    spread: float
    repeats: int
    drift: float
    baselines: dict[str, float]
    breakdown: list[tuple[str, str, float]]

    def error(self, drift: bool = False) -> float:
        """Predicted over measured, less one; with `drift`, for the machine as it was while measuring."""
        return self.predicted * (self.drift if drift else 1.0) / self.measured - 1.0


def step_cases() -> list[StepCase]:
    return [StepCase(zoo.workload(name), batch, size, kind) for name, batch, size, kind in CASES]


def work_of_step(trace: StepTrace, batch: int) -> tuple[float, float]:
    """FLOPs and bytes of a step without its update."""
    flops = sum(row.flops.at(batch) for row in trace.ops)
    moved = sum(row.bytes_read.at(batch) + row.bytes_written.at(batch) for row in trace.ops)
    return flops, moved


def baselines(
    works: Sequence[tuple[float, float]], measured: Sequence[float], profile: DeviceProfile
) -> list[dict[str, float]]:
    """Three predictions that know less: one FLOP/s or one byte/s learned from the other workloads; a roofline
    of the best product's rate and the copy's bandwidth, which knows nothing of the workloads.
    """
    best = max(p.flops / p.seconds for p in profile.points if p.op in ("mm", "addmm") and p.flops)
    bandwidth = float(profile.fits["bandwidth_bytes_per_second"])
    found = []
    for i, (flops, moved) in enumerate(works):
        others = [j for j in range(len(works)) if j != i]
        per_flop = statistics.median(measured[j] / works[j][0] for j in others)
        per_byte = statistics.median(measured[j] / works[j][1] for j in others)
        values = (flops * per_flop, max(flops / best, moved / bandwidth), moved * per_byte)
        found.append(dict(zip(BASELINES, values, strict=True)))
    return found


def run(*, seconds: float, repeats: int, say: Any, profile_file: Path | None = None) -> dict[str, Any]:
    """Calibrate, predict, measure. Every workload is predicted before any is run."""
    import torch

    load = [environment.load_average()]
    profile = session.calibrate(seconds=seconds, device="cpu")
    if profile_file is not None:
        device_profile.write(profile, profile_file)
    say(f"calibrated: {profile.protocol['wall_seconds']} s wall, {profile.protocol['rounds']} rounds")
    todo = step_cases()
    traces = [trace_for_cpu(case) for case in todo]
    prices = [
        price_step(trace, case.batch, profile, optimizer=case.optimizer, dropout=dropout_of(case.workload))
        for trace, case in zip(traces, todo, strict=True)
    ]
    torch.set_num_threads(1)
    drift = Drift(profile, registry.cases(session.target_of("cpu")), session.device_visitor("cpu"))
    measured = []
    for case, price in zip(todo, prices, strict=True):
        found = _measured(case, repeats, drift)
        say(f"{case.name}: predicted {price.step_seconds:.3f} s, measured {found[0].median:.3f} s")
        measured.append(found)
    load.append(environment.load_average())
    works = [work_of_step(trace, case.batch) for trace, case in zip(traces, todo, strict=True)]
    others = baselines(works, [stats.median for stats, _ in measured], profile)
    rows = [
        _row(case, price, stats, ratio, other)
        for case, price, (stats, ratio), other in zip(todo, prices, measured, others, strict=True)
    ]
    return {
        "schema_version": 1,
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "device": profile.device,
        "software": profile.software,
        "protocol": profile.protocol,
        "load_average": load,
        "rows": [asdict(row) for row in rows],
        "summary": summary(rows),
    }


def _measured(case: StepCase, repeats: int, drift: Drift) -> tuple[timing.Stats, float]:
    """Repeats of one step with the reference ops between them, so that both see the same minutes."""
    clock = timing.CpuClock()
    step = build_step(case, "cpu")
    step()
    seconds, ratios = [], [mean_ratio(drift.now())]
    for _ in range(repeats):
        seconds.append(clock.seconds([step], 1))
        ratios.append(mean_ratio(drift.now()))
    return timing.stats_of(seconds), statistics.median(ratios)


def _row(
    case: StepCase, price: DevicePrice, stats: timing.Stats, drift: float, other: dict[str, float]
) -> Row:
    return Row(
        name=case.name,
        predicted=price.step_seconds,
        measured=stats.median,
        spread=stats.spread,
        repeats=stats.count,
        drift=drift,
        baselines=other,
        breakdown=list(price.breakdown),
    )


def summary(rows: Sequence[Row]) -> dict[str, float]:
    """Mean and worst absolute error: plain, for the machine as it was while measuring, of the baselines."""
    found = {}
    for name, errors in {
        "plain": [abs(row.error()) for row in rows],
        "same minutes": [abs(row.error(drift=True)) for row in rows],
        **{name: [abs(row.baselines[name] / row.measured - 1) for row in rows] for name in BASELINES},
    }.items():
        found[f"{name}, mean"] = statistics.mean(errors)
        found[f"{name}, worst"] = max(errors)
    return found


def table(result: dict[str, Any]) -> str:
    """The result for a reader: signed errors in percent, spread of the repeats beside them."""
    head = (
        f"{'step':<26}{'predicted':>10}{'measured':>10}{'spread':>8}{'error':>8}{'drift':>7}{'same min':>9}"
    )
    lines = [head + "".join(f"{name:>17}" for name in BASELINES)]
    for body in result["rows"]:
        row = Row(**body)
        cells = f"{row.name:<26}{row.predicted:>8.3f} s{row.measured:>8.3f} s{row.spread:>8.0%}"
        cells += f"{row.error():>+8.1%}{row.drift:>7.2f}{row.error(drift=True):>+9.1%}"
        lines.append(cells + "".join(f"{row.baselines[n] / row.measured - 1:>+17.1%}" for n in BASELINES))
    for name in ("plain", "same minutes", *BASELINES):
        mean, worst = (result["summary"][f"{name}, {what}"] for what in ("mean", "worst"))
        lines.append(f"{name:<26}mean {mean:.1%}, worst {worst:.1%}")
    lines.append(
        f"{result['device']['name']}, torch {result['software']['torch']}, one thread, "
        f"{result['software']['allocator']}; load average {result['load_average']}; {result['made']}"
    )
    lines.append("error: predicted / measured - 1. drift: reference ops while measuring / while calibrating;")
    lines.append("same min: the error when the prediction is scaled by it.")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=90.0, help="of calibration (wall)")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--profile", type=Path, help="write the device profile here")
    parser.add_argument("-o", "--output", type=Path, help="write the result as JSON here")
    asked = parser.parse_args(arguments)

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    result = run(seconds=asked.seconds, repeats=asked.repeats, say=say, profile_file=asked.profile)
    if asked.output is not None:
        asked.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(table(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
