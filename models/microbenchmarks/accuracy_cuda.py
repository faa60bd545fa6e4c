"""`make accuracy-cuda`: calibrate the card at hand, predict steps and their memory, run them; one JSON file.

    python -m planner.models.microbenchmarks.accuracy_cuda -o accuracy_cuda.json [--limit 440] [--device cpu]

--device cpu rehearses the whole script without a card: small steps, tiny suites, figures that mean nothing.
Needs torch >= 2.10, transformers, numpy and scipy, nothing from the network, and under 8 minutes: what the
limit leaves no time for is listed, not run. fp32 is true fp32 and tf32 is TF32 throughout, convolutions too.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..allocator import replay
from ..calibration import device_profile
from ..calibration.device_price import price_step
from ..calibration.device_profile import DeviceProfile
from ..errors import ModelsError
from ..tracing.step_trace import StepTrace
from ..workloads import zoo
from . import environment, session
from .accuracy_cpu import work_of_step
from .anchoring import anchored
from .steps import StepCase, dropout_of, measure_step, trace_for_card

PRECISIONS = ("bf16-amp", "tf32", "fp32")
# (workload, micro-batch, tokens or pixels, optimizer, with checkpointing as well). Each fits a card of 16 GB.
WORKLOADS = (
    ("bert-base", 16, 384, "adamw-foreach", True),
    ("gpt2", 4, 1024, "adamw-foreach", True),
    ("resnet50", 64, 224, "sgd-momentum-foreach", False),
    ("vit-base", 32, 224, "adamw-foreach", True),
    ("distilbert-base", 32, 128, "adamw-foreach", False),
    ("resnet152", 32, 224, "sgd-momentum-foreach", False),
    ("t5-small", 16, 512, "adamw-foreach", False),
    ("lstm-lm", 20, 35, "sgd-momentum-foreach", False),
    ("mlp-mnist", 4096, None, "sgd-momentum-foreach", False),
)
# What a rehearsal runs: each kind of row, in a second or two on a slow core.
REHEARSED = (
    ("resnet18", 1, 64, "sgd-momentum-foreach", "fp32", False),
    ("distilgpt2", 1, 32, "adamw-foreach", "bf16-amp", False),
    ("vit-small", 1, 224, "adamw-foreach", "bf16-amp", True),
    ("mlp-mnist", 16, None, "sgd-momentum-foreach", "tf32", False),
)
REPEATS = 12
ANCHOR_SECONDS = 25.0
STEP_SECONDS = 3.0
BASELINES = ("constant FLOP/s", "roofline", "bandwidth")


@dataclass(frozen=True, slots=True)
class CudaRow:
    """One step. Seconds; bytes are allocated peaks of torch's allocator, beside what was there before.

    plain_seconds: predicted without what the anchors taught.
    reason: why there is no measurement; None where there is one.
    """

    name: str
    precision: str
    predicted_seconds: float | None
    measured_seconds: float | None
    spread: float | None
    repeats: int
    predicted_peak_bytes: int | None
    measured_peak_bytes: int | None
    coverage: float | None
    flops: float | None
    bytes_moved: float | None
    breakdown: list[tuple[str, str, float]]
    reason: str | None = None
    plain_seconds: float | None = None


def step_cases() -> list[StepCase]:
    """Every workload in every precision, the most used precision first; checkpointing in that one alone."""
    found = []
    for precision in PRECISIONS:
        for name, batch, size, optimizer, checkpointing in WORKLOADS:
            case = StepCase(zoo.workload(name), batch, size, optimizer, precision)
            found.append(case)
            if checkpointing and precision == PRECISIONS[0]:
                found.append(StepCase(case.workload, batch, size, optimizer, precision, True))
    return found


def rehearsed_cases() -> list[StepCase]:
    """The steps of --device cpu."""
    return [
        StepCase(zoo.workload(name), batch, size, optimizer, precision, checkpointing)
        for name, batch, size, optimizer, precision, checkpointing in REHEARSED
    ]


def run(
    *,
    limit: float,
    seconds: float,
    say: Callable[[str], None],
    device: str = "cuda",
    cases: Sequence[StepCase] | None = None,
    tiny: bool = False,
    save: Callable[[dict[str, Any]], None] = lambda _: None,
) -> dict[str, Any]:
    """Calibrate for `seconds`, then predict and measure until `limit` [s] is near. `save` gets each stage."""
    end = time.monotonic() + limit
    profile = session.calibrate(seconds=seconds, device=device, tiny=tiny)
    _empty(device)
    say(f"calibrated in {profile.protocol['wall_seconds']} s: {len(profile.points)} points")
    if not tiny:
        profile = anchored(profile, device, ANCHOR_SECONDS, say)
        _empty(device)
    rows: list[CudaRow] = []
    traces: dict[tuple[str, str, bool], StepTrace] = {}
    for case in step_cases() if cases is None else cases:
        row = _row(case, profile, traces, device, end)
        say(f"{row.name}: {_said(row)}")
        rows.append(row)
        save(result(profile, rows))
    return result(profile, rows)


def _row(
    case: StepCase,
    profile: DeviceProfile,
    traces: dict[tuple[str, str, bool], StepTrace],
    device: str,
    end: float,
) -> CudaRow:
    """Predict first, measure after; whatever stops either becomes the row's reason."""
    import torch

    if time.monotonic() > end:
        return _missing(case, "the time limit was reached")
    policy = "amp" if case.precision.endswith("-amp") else "fp32"
    key = (case.workload.id, policy, case.checkpointing)
    try:
        if key not in traces:
            traces[key] = trace_for_card(case)
        trace = traces[key]
        price, plain = (
            price_step(trace, case.batch, each, precision=case.precision, dropout=dropout_of(case.workload))
            for each in (profile, profile.with_fits({**profile.fits, "multipliers": {}}))
        )
        peak = replay(trace, case.batch).allocated_peak_bytes
        measured = measure_step(
            case, device, repeats=REPEATS, seconds=min(STEP_SECONDS, max(0.0, end - time.monotonic()))
        )
    except (ModelsError, RuntimeError, torch.OutOfMemoryError) as error:
        return _missing(case, f"{type(error).__name__}: {str(error).splitlines()[0][:200]}")
    finally:
        _empty(device)
    flops, moved = work_of_step(trace, case.batch)
    return CudaRow(
        name=case.name,
        precision=case.precision,
        predicted_seconds=price.step_seconds,
        measured_seconds=measured.stats.median,
        spread=measured.stats.spread,
        repeats=measured.stats.count,
        predicted_peak_bytes=peak,
        measured_peak_bytes=measured.peak_bytes,
        coverage=price.coverage,
        flops=flops,
        bytes_moved=moved,
        breakdown=list(price.breakdown),
        plain_seconds=plain.step_seconds,
    )


def _missing(case: StepCase, reason: str) -> CudaRow:
    return CudaRow(case.name, case.precision, None, None, None, 0, None, None, None, None, None, [], reason)


def _empty(device: str) -> None:
    import torch

    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()


def result(profile: DeviceProfile, rows: Sequence[CudaRow]) -> dict[str, Any]:
    """Everything that is known so far, as the one JSON document."""
    return {
        "schema_version": 1,
        "kind": "accuracy_cuda",
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "clocks_seen": environment.nvidia_smi("clocks.sm", "clocks.mem", "power.draw", "temperature.gpu"),
        "rows": [asdict(row) for row in rows],
        "summary": summary(rows, profile),
        "profile": device_profile.to_json(profile),
    }


def summary(rows: Sequence[CudaRow], profile: DeviceProfile) -> dict[str, Any]:
    """Mean, median and worst absolute error of seconds and of peaks, by precision and over all; baselines."""
    found: dict[str, Any] = {"rows": len(rows), "missing": sum(row.reason is not None for row in rows)}
    for precision in ("all", *PRECISIONS):
        mine = [r for r in rows if r.reason is None and precision in ("all", r.precision)]
        found[precision] = {
            "step_seconds": errors([(r.predicted_seconds, r.measured_seconds) for r in mine]),
            "step_seconds_without_anchors": errors([(r.plain_seconds, r.measured_seconds) for r in mine]),
            "peak_bytes": errors([(r.predicted_peak_bytes, r.measured_peak_bytes) for r in mine]),
            "baselines": {name: errors(pairs) for name, pairs in _baselines(mine, profile).items()},
        }
    return found


def errors(pairs: Sequence[tuple[float | None, float | None]]) -> dict[str, float] | None:
    """Absolute relative errors of (predicted, measured) pairs; None without any whole pair."""
    known = [abs(p / m - 1) for p, m in pairs if p is not None and m]
    if not known:
        return None
    return {"mean": statistics.mean(known), "median": statistics.median(known), "worst": max(known)}


def _baselines(
    rows: Sequence[CudaRow], profile: DeviceProfile
) -> dict[str, list[tuple[float | None, float | None]]]:
    """One FLOP/s and one byte/s learned from the other workloads, and a roofline of this card's own best."""
    best = max((p.flops / p.hot.median for p in profile.points if p.op in ("mm", "addmm")), default=0.0)
    bandwidth = profile.fits["bandwidth_bytes_per_second"] or 0.0
    found: dict[str, list[tuple[float | None, float | None]]] = {name: [] for name in BASELINES}
    for row in rows:
        others = [o for o in rows if o.name != row.name and o.precision == row.precision]
        flops, moved = row.flops or 0.0, row.bytes_moved or 0.0
        if others:
            per_flop = statistics.median((o.measured_seconds or 0.0) / (o.flops or 1.0) for o in others)
            per_byte = statistics.median((o.measured_seconds or 0.0) / (o.bytes_moved or 1.0) for o in others)
            found["constant FLOP/s"].append((flops * per_flop, row.measured_seconds))
            found["bandwidth"].append((moved * per_byte, row.measured_seconds))
        if best and bandwidth:
            found["roofline"].append((max(flops / best, moved / bandwidth), row.measured_seconds))
    return found


def _said(row: CudaRow) -> str:
    if row.predicted_seconds is None or row.measured_seconds is None:
        return row.reason or "not measured"
    said = f"predicted {1e3 * row.predicted_seconds:.1f} ms, measured {1e3 * row.measured_seconds:.1f} ms"
    if row.predicted_peak_bytes is not None and row.measured_peak_bytes is not None:
        said += (
            f"; peak {row.predicted_peak_bytes / 2**30:.2f} GiB, {row.measured_peak_bytes / 2**30:.2f} GiB"
        )
    return said


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("accuracy_cuda.json"))
    parser.add_argument("--seconds", type=float, default=90.0, help="of calibration")
    parser.add_argument("--limit", type=float, default=440.0, help="of the run; no step begins after it")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: a rehearsal")
    asked = parser.parse_args(arguments)
    import torch

    rehearsal = asked.device == "cpu"
    if not rehearsal and not torch.cuda.is_available():
        print("accuracy_cuda: no CUDA card can be used here; planner doctor says why", file=sys.stderr)
        return 2

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def save(found: dict[str, Any]) -> None:
        partial = asked.output.with_name(asked.output.name + ".partial")
        partial.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        partial.replace(asked.output)

    found = run(
        limit=asked.limit,
        seconds=asked.seconds,
        say=say,
        device=asked.device,
        cases=rehearsed_cases() if rehearsal else None,
        tiny=rehearsal,
        save=save,
    )
    found["rehearsal"] = rehearsal
    save(found)
    print(json.dumps(found["summary"], indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
