"""CPU seconds and peak memory of the commands people wait for: `make bench`.

Each command runs in a fresh process with a home of its own; the figure is the least of several runs of user
plus system time, which on a busy machine swings far less than the clock. A ratio to `python -c pass` lets two
machines be compared. Exit 1 where a limit is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ENTRY = (sys.executable, "-c", "from planner.cli.entry import main; main()")

BERT = {"model_type": "bert", "architectures": ["BertForSequenceClassification"], "vocab_size": 31_000}
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "tie_word_embeddings": False}
LLAMA_7B = {**LLAMA, "hidden_size": 4096, "intermediate_size": 11_000, "num_hidden_layers": 32,
            "num_attention_heads": 32, "vocab_size": 32_001}  # fmt: skip
LLAMA_70B = {**LLAMA, "hidden_size": 8192, "intermediate_size": 28_000, "num_hidden_layers": 80,
             "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 32_001}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A command, what it may cost, and how often to try. No limit: None."""

    name: str
    command: tuple[str, ...]
    cpu_seconds: float | None = None
    peak_mib: float | None = None
    tries: int = 7


@dataclass(frozen=True)
class Cost:
    cpu_seconds: float
    peak_mib: float


def planner(*arguments: str) -> tuple[str, ...]:
    return (*ENTRY, *arguments)


def cases(folder: Path, tracing: bool) -> list[Case]:
    """What is measured; the traces only where asked for, since they need torch and two minutes."""
    optimize = planner("optimize", "--model", "bert-base", "--epochs", "10")
    found = [
        Case("python -c pass", (sys.executable, "-c", "pass")),
        Case("planner --version", planner("--version"), 0.025),
        Case("planner --help", planner("--help"), 0.25),
        Case("planner optimize (warm)", optimize, 0.8, 200),
        Case("planner optimize --format json", (*optimize, "--format", "json"), 0.8, 200),
    ]
    configs = (("BERT size", BERT, 10, None), ("7B", LLAMA_7B, 30, None), ("70B", LLAMA_70B, 90, 2048))
    for name, config, seconds, mib in configs if tracing else ():
        file = folder / f"{name.replace(' ', '-')}.json"
        file.write_text(json.dumps(config), encoding="utf-8")
        ask = planner(
            "estimate", "memory", "--model", str(file), "--gpu", "h200-sxm-141gb", "--batch-size", "1"
        )
        found.append(Case(f"first trace, {name} config", ask, seconds, mib, tries=1))
    return found


def cost(case: Case, home: Path) -> Cost:
    """Least CPU time and largest resident set over the tries, children included. [s], [MiB]"""
    environ = {**os.environ, "HOME": str(home), "NO_COLOR": "1"}
    # PYTHONDONTWRITEBYTECODE would compile every module again in each run; an installed planner never does.
    own = ("XDG_", "PLANNER_", "PYTHONDONTWRITEBYTECODE")
    environ = {key: value for key, value in environ.items() if not key.startswith(own)}
    costs = [_once(case.command, environ) for _ in range(case.tries)]
    return Cost(min(c.cpu_seconds for c in costs), max(c.peak_mib for c in costs))


def _once(command: Sequence[str], environ: dict[str, str]) -> Cost:
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environ)
    assert child.stderr is not None
    said = child.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(command[3:])} exited {child.returncode}: {said.strip()[-300:]}")
    # Linux counts kilobytes, macOS bytes.
    peak = usage.ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)
    return Cost(usage.ru_utime + usage.ru_stime, peak)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--traces", action="store_true", help="also time first traces (needs torch; two minutes)"
    )
    tracing = parser.parse_args().traces
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        _once(planner("optimize", "--model", "bert-base", "--epochs", "10"), {**os.environ, "HOME": folder})
        bare: float | None = None
        print(f"{'':34}{'CPU s':>8}{'limit':>8}{'x bare':>8}{'MiB':>8}{'limit':>8}")
        for case in cases(home, tracing):
            spent = cost(case, home)
            bare = bare or spent.cpu_seconds
            limits = ["" if limit is None else f"{limit:g}" for limit in (case.cpu_seconds, case.peak_mib)]
            print(
                f"{case.name:34}{spent.cpu_seconds:8.3f}{limits[0]:>8}{spent.cpu_seconds / bare:8.1f}"
                f"{spent.peak_mib:8.0f}{limits[1]:>8}",
                flush=True,
            )
            if spent.cpu_seconds > (case.cpu_seconds or 1e9) or spent.peak_mib > (case.peak_mib or 1e9):
                missed.append(case.name)
    if missed:
        print(f"over the limit: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
