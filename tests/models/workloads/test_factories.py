"""A user's own factory: built in a process of its own, whatever it is called and however it ends."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from textwrap import dedent

import pytest

from planner.models.errors import BadConfig
from planner.models.tracing.step_trace import TraceVariant
from planner.models.workloads import factories, store
from planner.models.workloads.factories import from_factory


def _is_gone(process_id: int, patience_seconds: float = 10.0) -> bool:
    """Not running soon: the kernel takes a moment over a process that was killed."""
    last = time.monotonic() + patience_seconds
    while not _has_ended(process_id) and time.monotonic() < last:
        threading.Event().wait(0.02)
    return _has_ended(process_id)


def _has_ended(process_id: int) -> bool:
    """No such process, or one that waits to be reaped by init."""
    try:
        status = Path(f"/proc/{process_id}/stat").read_text()
    except FileNotFoundError:
        return True
    return status.rsplit(")", 1)[1].split()[0] == "Z"


NET = """
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.convolution = nn.Conv2d(3, 8, 3)
            self.head = nn.Linear(8, 10)

        def forward(self, picture):
            return self.head(self.convolution(picture).relu().mean((2, 3)))

    def build():
        return Net()
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path / "cache"))


def _repository(tmp_path: Path, **files: str) -> Path:
    """A user's repository whose packages are called as ours are called inside."""
    root = tmp_path / "repository"
    for package in ("models", "pricing"):
        (root / package).mkdir(parents=True)
        (root / package / "__init__.py").write_text("OWN = True\n")
    for name, text in files.items():
        (root / "models" / f"{name}.py").write_text(dedent(text))
    return root


def test_a_repository_with_packages_called_models_and_pricing_loads_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = "import pricing\nimport models\nassert pricing.OWN and models.OWN\n" + dedent(NET)
    directory = _repository(tmp_path, net=net)
    workload = from_factory("models.net:build", input_shape="3x32x32", directory=directory)
    assert workload.parameters == 8 * 27 + 8 + 80 + 10
    assert workload.default_size == 32
    assert (workload.builder.attention, workload.kind) == ("none", "cnn")
    assert "models" not in sys.modules

    variants = [TraceVariant("fp32"), TraceVariant("amp")]
    store.prepare(workload, variants)
    monkeypatch.setattr(factories, "_run", lambda request: pytest.fail("asked the child again"))
    found = [store.summary(workload, variant) for variant in variants]
    assert [summary.variant.precision_policy for summary in found] == ["fp32", "amp"]
    assert {summary.trainable_parameters for summary in found} == {workload.parameters}
    assert {summary.variant.attention_kernel for summary in found} == {"none"}


def test_token_ids_and_the_loss_of_the_module_are_taken_from_what_forward_names(tmp_path: Path) -> None:
    net = """
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding = nn.Embedding(100, 16)
                self.head = nn.Linear(16, 100)

            def forward(self, input_ids, labels=None):
                logits = self.head(self.embedding(input_ids))
                return {"loss": nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())}

        def build():
            print("x" * 100_000)  # a talkative factory
            return Net()
    """
    workload = from_factory("models.net:build", directory=_repository(tmp_path, net=net))
    assert workload.parameters == 100 * 16 + 16 * 100 + 100
    assert workload.default_size == 512
    assert "inputs: sequences of 512 token ids" in workload.assumptions


def test_inputs_and_loss_may_come_with_the_module(tmp_path: Path) -> None:
    net = """
        import torch
        from torch import nn

        def inputs(batch):
            return {"input": torch.empty(batch, 4)}

        def loss(module, given):
            return module(given["input"]).square().mean()

        def build():
            return nn.Linear(4, 1), inputs, loss
    """
    workload = from_factory("models.net:build", directory=_repository(tmp_path, net=net))
    assert (workload.parameters, workload.default_size, workload.assumptions) == (5, None, ())
    assert (workload.builder.attention, workload.kind) == ("none", "mlp")


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (
            'def build():\n    raise ValueError("no such\\nlayer")',
            r"ValueError: no such layer \(models/net.py, line 2\)$",
        ),
        ("import os\nos._exit(7)", r"ended with status 7 and gave no answer$"),
        (
            "import sys\nsys.exit('enough')",
            r'ended with status 1 and gave no answer \("enough"\)$',
        ),
        ("import os\nos.abort()", r"died of SIGABRT"),
        ("def make():\n    return None", r"module models.net has no function build$"),
        (
            "import no_such_package",
            r"ModuleNotFoundError: No module named 'no_such_package' \(models/net.py, line 1\)$",
        ),
        ("def build(:", r"SyntaxError: .*"),
    ],
    ids=[
        "raises",
        "os-exit",
        "sys-exit",
        "aborts",
        "missing",
        "import",
        "syntax",
    ],
)
def test_whatever_goes_wrong_over_there_is_one_line_here(tmp_path: Path, body: str, complaint: str) -> None:
    directory = _repository(tmp_path, net=body)
    with pytest.raises(BadConfig, match=complaint) as caught:
        from_factory("models.net:build", directory=directory)
    assert str(caught.value).startswith("factory models.net:build: ")
    assert "\n" not in str(caught.value)


def test_a_factory_that_hangs_is_ended_with_whatever_it_started(tmp_path: Path) -> None:
    body = """
        import subprocess, sys, threading

        child = subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"])
        open("started", "w").write(str(child.pid))
        threading.Event().wait()
    """
    directory = _repository(tmp_path, net=body)
    with pytest.raises(BadConfig, match=r"no answer after 5 s, stopped"):
        from_factory("models.net:build", directory=directory, time_limit_seconds=5)
    started = int((directory / "started").read_text())
    assert _is_gone(started)


@pytest.mark.parametrize(
    ("spec", "options", "complaint"),
    [
        ("models/net.py", {}, "write it as package.module:function"),
        ("os:system('x')", {}, "write it as package.module:function"),
        ("a:b", {"input_shape": "3,224"}, "write one sample as 3x224x224"),
        ("a:b", {"input_shape": "0x4"}, "0 elements in one sample"),
        ("a:b", {"input_shape": "999999x999999"}, "999,998,000,001 elements"),
        ("a:b", {"vocab_size": -5}, "a vocabulary of -5"),
        ("a:b", {"directory": "/no/such/place"}, "no directory /no/such/place"),
    ],
)
def test_a_question_that_makes_no_sense_starts_no_process(
    spec: str, options: dict[str, object], complaint: str
) -> None:
    with pytest.raises(BadConfig, match=complaint):
        from_factory(spec, **options)  # type: ignore[arg-type]
