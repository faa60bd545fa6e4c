"""What simpler rules say of the published rows: 4 x weights, and accelerate's estimate of the same module.

accelerate (`calculate_maximum_sizes`, the function behind `accelerate estimate-memory`) adds up what a module
holds, buffers included; its column "training using Adam" is four times that. It sees neither batch nor
activations. The table is made once, where torch and accelerate are; validation only reads it:

    python -m planner.models.memory_baselines
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .errors import BadData, ModelsError, TraceUnavailable
from .memory_features import task_of
from .memory_runs import Run

TABLE = Path(__file__).parent / "calibration" / "data" / "memory_baselines.json"
TRAINING_FACTOR = 4  # weights, gradients and Adam's two moments


def key(run: Run) -> str:
    """What accelerate's figure depends on: the module, its size and the type of its weights."""
    half = run.variant.precision_policy == "half"
    body = {"trained": asdict(run.trained), "size": run.variant.size, "half": half}
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


def baseline_bytes(run: Run, parameters: int) -> dict[str, int]:
    """Each rule's figure for the step of `run`, whose module has that many parameters. [B]

    "four_times_weights": 16 B per parameter. "accelerate" only where the table holds the module.
    """
    found = {"four_times_weights": 4 * TRAINING_FACTOR * parameters}
    held = _table().get(key(run))
    if held is not None:
        found["accelerate"] = TRAINING_FACTOR * held
    return found


def accelerate_bytes(run: Run) -> int:
    """What accelerate says the module of `run` holds, before its factor. [B]

    Raises TraceUnavailable without accelerate, ModelsError where the module cannot be built.
    """
    try:
        import torch
        from accelerate.utils import calculate_maximum_sizes
    except ImportError as error:
        raise TraceUnavailable(
            f"{error.name} is not installed: pip install 'training-planner[dev]'"
        ) from error
    with torch.device("meta"):
        model = task_of(run.trained, run.variant).build(run.variant)
        if run.variant.precision_policy == "half":
            model.to(torch.bfloat16)
    return int(calculate_maximum_sizes(model)[0])


def make_baselines(runs: Iterable[Run], path: Path = TABLE) -> int:
    """Write the table for the modules of `runs` that can be built; returns how many it holds."""
    import accelerate

    held: dict[str, int] = {}
    for run in runs:
        name = key(run)
        if name in held:
            continue
        try:
            held[name] = accelerate_bytes(run)
        except TraceUnavailable:
            raise
        except ModelsError:
            continue
    body = {"accelerate": accelerate.__version__, "held_bytes": dict(sorted(held.items()))}
    path.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
    return len(held)


@functools.cache
def _table() -> Mapping[str, int]:
    try:
        body: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
        table: dict[str, int] = body["held_bytes"]
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError) as error:
        raise BadData(
            f"{TABLE}: not readable ({error}); make it again: python -m planner.models.memory_baselines"
        ) from error
    return table


def main() -> None:
    """Make the table for the rows that ship; a minute, needs torch and accelerate."""
    from .validation_memory import SHIPPED_ROWS, read_rows, runs_of

    print(f"{make_baselines(runs_of(read_rows(SHIPPED_ROWS)))} modules in {TABLE}")


if __name__ == "__main__":
    main()
