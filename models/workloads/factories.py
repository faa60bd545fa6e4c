"""`from_factory`: "package.module:function" of the user's becomes a workload.

Their code runs in a process of its own (`child.py`), in their directory, with a time limit; what comes back
is JSON in a file, never a pickle. So a crash, a hang or a print of theirs is a clean error or nothing at all,
and a package of theirs called `models` is theirs: this process never imports it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..errors import BadConfig
from ..tracing import step_trace
from ..tracing.step_trace import StepTrace, TraceVariant
from .building import require_torch
from .records import Attention, Builder, Kind, Workload

# Importing torch and transformers takes 5 s, tracing a 7B step 10 s; a slow file system three times as much.
TIME_LIMIT_SECONDS = 300.0

_SPEC = re.compile(r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$")
_SHAPE = re.compile(r"^\d{1,6}(x\d{1,6}){0,4}$")
# One sample of 10^9 elements is 4 GB by itself.
_LARGEST_SAMPLE = 10**9

_log = logging.getLogger(__name__)


def from_factory(
    spec: str,
    *,
    input_shape: str | None = None,
    vocab_size: int | None = None,
    optimizer: str = "adamw-foreach",
    directory: str | Path | None = None,
    time_limit_seconds: float = TIME_LIMIT_SECONDS,
) -> Workload:
    """A workload from a function that returns an nn.Module, or (module, inputs_fn[, loss_fn]).

    spec: "package.module:function", importable from `directory` (default: the current one).
    input_shape: one sample without its batch, such as "3x224x224"; with vocab_size, token ids such as "512".
        Not needed where the factory gives inputs_fn(batch) or forward() names what transformers names.
    loss_fn: (module, inputs) -> scalar; without it the module's own `.loss`, else cross entropy or, for
        outputs without classes, a mean square.
    Raises BadConfig in one line for whatever goes wrong over there; TraceUnavailable without torch.
    """
    if not _SPEC.match(spec):
        raise BadConfig(f'factory "{spec}": write it as package.module:function, such as models.net:build')
    shape = _parsed_shape(input_shape)
    if vocab_size is not None and not 0 < vocab_size <= 10**7:
        raise BadConfig(f"factory {spec}: a vocabulary of {vocab_size} is not between 1 and 10,000,000")
    require_torch(f"factory {spec}")
    config: dict[str, Any] = {
        "spec": spec,
        "directory": str(Path(directory or Path.cwd()).resolve()),
        "shape": shape,
        "vocab_size": vocab_size,
        "time_limit_seconds": time_limit_seconds,
    }
    answer = _run({**config, "variants": [asdict(TraceVariant(optimizer=optimizer))]})
    described = answer["description"]
    trace = step_trace.from_json(answer["traces"][0], f"factory {spec}")
    attention, kind = _nature(trace)
    return Workload(
        id=spec,
        title=f"{described['class']} from {spec}",
        aliases=(),
        family="own",
        kind=kind,
        parameters=trace.parameters,
        trained_parameters=trace.parameters,
        parameters_what=described["class"],
        parameters_source=f"counted from {spec}",
        parameters_checked="",
        builder=Builder(
            route="factory",
            config_class="",
            model_class=described["class"],
            task_class=described["class"],
            recipe="module",
            config={**config, "sources": described["sources"]},
            inputs={},
            attention=attention,
            activation_checkpointing=described["activation_checkpointing"],
        ),
        reference=None,
        default_size=described["size"],
        assumptions=tuple(described["assumptions"]),
        origin="factory",
    )


def trace_factory(workload: Workload, variants: Iterable[TraceVariant]) -> tuple[StepTrace, ...]:
    """Trace those variants of a factory's workload, all in one child process."""
    answer = _run({**workload.builder.config, "variants": [asdict(variant) for variant in variants]})
    return tuple(step_trace.from_json(body, f"factory {workload.id}") for body in answer["traces"])


def _nature(trace: StepTrace) -> tuple[Attention, Kind]:
    """How it attends, and what it is, by the ops of its step."""
    classes = {row.op_class for row in trace.ops}
    if any(text.startswith("attention:") for text in trace.rewrites):
        return "fused", "transformer"
    if "attention_unfused" in classes:
        return "eager", "transformer"
    if "rnn" in classes:
        return "none", "rnn"
    return "none", "cnn" if any(name.startswith("conv") for name in classes) else "mlp"


def _parsed_shape(text: str | None) -> list[int] | None:
    if text is None:
        return None
    if not _SHAPE.match(text):
        raise BadConfig(f'input shape "{text}": write one sample as 3x224x224, or 512 for a sequence')
    shape = [int(part) for part in text.split("x")]
    elements = 1
    for side in shape:
        elements *= side
    if not 0 < elements <= _LARGEST_SAMPLE:
        raise BadConfig(f'input shape "{text}": {elements:,} elements in one sample')
    return shape


def _run(request: Mapping[str, Any]) -> dict[str, Any]:
    """The child's answer to that request. Raises BadConfig, in one line, where there is none."""
    spec, limit = request["spec"], float(request["time_limit_seconds"])
    with tempfile.TemporaryDirectory(prefix="planner-factory-") as name:
        folder = Path(name)
        asked, answered, said = folder / "request.json", folder / "answer.json", folder / "stderr"
        asked.write_text(json.dumps(request), encoding="utf-8")
        # -P keeps their directory off the path until our own modules are in; child.py then puts it first.
        command = [sys.executable, "-P", "-m", f"{__package__}.child", str(asked), str(answered)]
        started = time.monotonic()
        with said.open("wb") as errors:
            process = subprocess.Popen(
                command,
                cwd=_existing(request["directory"], spec),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,  # so that what they started ends with them
            )
            try:
                status = process.wait(timeout=limit)
            except subprocess.TimeoutExpired:
                raise BadConfig(
                    f"factory {spec}: no answer after {limit:g} s, stopped; does it download or train?"
                ) from None
            finally:
                _end(process)
        answer = _read_answer(answered)
        if answer is None:
            raise BadConfig(f"factory {spec}: its process {_how_it_ended(status)}{_last_words(said)}")
    if "error" in answer:
        raise BadConfig(f"factory {spec}: {answer['error']}")
    _log.info(
        "factory %s: %.1f s, %.0f MiB at most",
        spec,
        time.monotonic() - started,
        answer["peak_rss_bytes"] / 2**20,
    )
    return answer


def _existing(directory: str, spec: str) -> str:
    if not Path(directory).is_dir():
        raise BadConfig(f"factory {spec}: no directory {directory}")
    return directory


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the child and whatever it started; both may be gone already."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read_answer(path: Path) -> dict[str, Any] | None:
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return body if isinstance(body, dict) else None


def _how_it_ended(status: int) -> str:
    if status == -signal.SIGKILL:
        return "was killed, most likely for want of memory"
    if status < 0:
        return f"died of {signal.Signals(-status).name}"
    return f"ended with status {status} and gave no answer"


def _last_words(path: Path) -> str:
    lines = [line.strip() for line in path.read_text(errors="replace").splitlines() if line.strip()]
    return f' ("{lines[-1][:200]}")' if lines else ""
