"""One calibration from first op to profile: visits within a time budget, partial results kept on disk.

Results are appended to a JSON-lines file as they come. An interrupt ends the visits, not the calibration:
what was measured becomes the profile; a killed run is resumed from the file.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..calibration.device_profile import DeviceProfile, Point, Timing
from ..errors import BadData
from . import environment, timing
from .registry import SUITE_VERSION, Case, Target, Work, cases, work_of

Visitor = Callable[[Case], timing.Visit]

# A point is worth little from one moment alone; a first round is always finished.
WANTED_ROUNDS = 3


@dataclass
class Samples:
    """Seconds of one case so far."""

    hot: list[float] = field(default_factory=list)
    cold: list[float] = field(default_factory=list)


class Partial:
    """The JSON-lines file of a calibration under way. Its first line says which one it is."""

    def __init__(self, path: Path | None, identity: Mapping[str, Any]) -> None:
        self.path, self.identity = path, dict(identity)
        self.samples: dict[str, Samples] = {}
        self.resumed = False
        if path is not None:
            self._read(path)

    def _read(self, path: Path) -> None:
        lines: list[Any] = []
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    lines.append(json.loads(line))
                except ValueError:
                    break  # a kill in mid-line: what stands before it is whole
        if lines and lines[0] == self.identity:
            for body in lines[1:]:
                self._take(body["key"], timing.Visit(body["hot"], body["cold"]))
            self.resumed = bool(self.samples)
        # Written anew, so that a broken last line does not swallow the next one.
        whole = [self.identity, *(lines[1:] if self.resumed else [])]
        path.write_text("".join(json.dumps(line) + "\n" for line in whole), encoding="utf-8")

    def add(self, key: str, visit: timing.Visit) -> None:
        self._take(key, visit)
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as out:
                out.write(json.dumps({"key": key, "hot": visit.hot, "cold": visit.cold}) + "\n")

    def _take(self, key: str, visit: timing.Visit) -> None:
        found = self.samples.setdefault(key, Samples())
        found.hot += visit.hot
        found.cold += visit.cold

    def remove(self) -> None:
        if self.path is not None:
            self.path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Outcome:
    """rounds: complete ones. interrupted: whether Ctrl-C ended it. failed: case -> why it could not run."""

    rounds: int
    interrupted: bool
    failed: Mapping[str, str]


def run_visits(
    todo: Sequence[Case],
    partial: Partial,
    visitor: Visitor,
    seconds: float,
    *,
    progress: Callable[[str], None] = lambda _: None,
    now: Callable[[], float] = time.monotonic,
    seed: int = 0,
) -> Outcome:
    """Visit every case again and again, in a new order each round, until the time is up.

    The first round is finished in any case: a suite left out would be a hole in the profile. Cases that a
    resumed file already holds come last in it.
    """
    shuffle = random.Random(seed)
    end = now() + seconds
    failed: dict[str, str] = {}
    rounds = 0
    try:
        while True:
            left = [case for case in todo if case.key not in failed]
            shuffle.shuffle(left)
            if rounds == 0:
                left = [case for case in left if case.key not in partial.samples] or left
            for case in left:
                if rounds > 0 and now() >= end:
                    return Outcome(rounds, False, failed)
                progress(case.key)
                try:
                    partial.add(case.key, visitor(case))
                except (RuntimeError, NotImplementedError, MemoryError) as error:
                    # An op this build of torch lacks, or a card too small for the case: named in the profile.
                    failed[case.key] = str(error).split("\n", 1)[0][:160]
            rounds += 1
            if now() >= end or not left:
                return Outcome(rounds, False, failed)
    except KeyboardInterrupt:
        return Outcome(rounds, True, failed)


def points_of(todo: Iterable[Case], samples: Mapping[str, Samples]) -> tuple[Point, ...]:
    """The cases that were measured, as points."""
    found = []
    for case in todo:
        seen = samples.get(case.key)
        if seen is not None and seen.hot:
            found.append(point_of(case, work_of(case), seen))
    return tuple(found)


def point_of(case: Case, work: Work, seen: Samples) -> Point:
    return Point(
        key=case.key,
        suite=case.suite,
        op=work.op,
        op_class=work.op_class,
        dtype=case.dtype,
        layout=case.layout,
        shapes=work.shapes,
        flops=work.flops,
        bytes_read=work.bytes_read,
        bytes_written=work.bytes_written,
        hot=_timing(seen.hot),
        cold=_timing(seen.cold) if seen.cold else None,
        extra=dict(work.extra),
    )


def _timing(samples: Sequence[float]) -> Timing:
    return Timing(**asdict(timing.stats_of(samples)))


def device_visitor(kind: str) -> Visitor:
    """Visits on the real device, with one pool of operands for all cases."""
    import torch

    from .operands import PoolOperands

    pool = PoolOperands(kind, "float32")

    def visitor(case: Case) -> timing.Visit:
        operands = pool.of(case.dtype)
        with torch.no_grad(), environment.tf32(case.dtype == "tf32"):
            return timing.visit(case, timing.clock_for(kind, case), operands)

    return visitor


def target_of(kind: str, tiny: bool = False) -> Target:
    """The cases' target for a kind of device."""
    import torch

    if kind == "cpu":
        return Target("cpu", tiny=tiny)
    # bf16 before Ampere is emulated, and TF32 is not there: nothing to plan with, nothing to measure.
    native = torch.cuda.is_bf16_supported(including_emulation=False)
    dtypes = ("float32", "tf32", "bfloat16") if native else ("float32", "float16")
    return Target("cuda", dtypes, scale=16, count=torch.cuda.device_count(), tiny=tiny)


def calibrate(
    *,
    seconds: float = 90.0,
    device: str | None = None,
    only: tuple[str, ...] = (),
    extra: Sequence[Case] = (),
    partial_file: Path | None = None,
    tiny: bool = False,
    stream: Any = None,
) -> DeviceProfile:
    """Measure this device and fit its curves. [s] of wall time, about; a first round is always finished.

    extra: cases beside the suites', such as a model's own ops. partial_file: keeps results meanwhile.
    Raises UnknownName for a suite nobody knows, BadData where nothing could be measured.
    """
    import torch

    from ..calibration.device_curves import fit

    kind = environment.device_kind(device)
    if kind == "cuda" and not torch.cuda.is_available():
        raise BadData("no CUDA device can be used here; planner doctor says why")
    allocator = environment.pin_allocator() if kind == "cpu" else "CUDA caching allocator"
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        todo = [*cases(target_of(kind, tiny), only), *extra]
        about = environment.describe_device(kind)
        software = environment.describe_software(kind, allocator)
        identity = {"suite_version": SUITE_VERSION, "device": about["name"], "torch": torch.__version__}
        partial = Partial(partial_file, identity)
        load_before = environment.load_average()
        progress = timing.Progress(stream if stream is not None else sys.stderr, seconds)
        started = time.time()
        begun = time.process_time()
        outcome = run_visits(todo, partial, device_visitor(kind), seconds, progress=progress.show)
        progress.close()
        points = points_of(todo, partial.samples)
    finally:
        torch.set_num_threads(threads)
    if not points:
        raise BadData("nothing was measured; give planner calibrate more --seconds")
    profile = DeviceProfile(
        device=about,
        software=software,
        protocol={
            "suite_version": SUITE_VERSION,
            "clock": timing.clock_for(kind, todo[0]).name,
            "seconds_asked": seconds,
            "wall_seconds": round(time.time() - started, 1),
            "process_cpu_seconds": round(time.process_time() - begun, 1),
            "rounds": outcome.rounds,
            "interrupted": outcome.interrupted,
            "resumed": partial.resumed,
            "load_average": [load_before, environment.load_average()],
            "clocks_seen": environment.nvidia_smi("clocks.sm", "clocks.mem", "power.draw")
            if kind == "cuda"
            else {},
            "seconds_of_a_point": "mean of the hot and the cold median",
        },
        points=points,
        quality=_quality(points, outcome),
        origin={"kind": "measured here", "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started))},
    )
    return profile.with_fits(fit(points))


def _quality(points: Sequence[Point], outcome: Outcome) -> dict[str, Any]:
    spreads = sorted(point.hot.spread for point in points)
    middle, high = spreads[len(spreads) // 2], spreads[int(0.9 * (len(spreads) - 1))]
    warnings = []
    if outcome.interrupted:
        warnings.append("interrupted: what was measured by then")
    if outcome.rounds < WANTED_ROUNDS:
        warnings.append(f"{outcome.rounds} complete rounds; give it more seconds for steadier medians")
    if middle > 0.25:
        warnings.append(f"half of the points spread by more than {middle:.0%}: the machine was busy")
    return {
        "median_spread": middle,
        "p90_spread": high,
        "points": len(points),
        "failed": dict(outcome.failed),
        "warnings": warnings,
    }
