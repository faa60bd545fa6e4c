"""What our own code must never do, read from its syntax; and what every test runs without."""

from __future__ import annotations

import ast
import socket
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_socket

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted(file for folder in ("planner", "models", "pricing") for file in (ROOT / folder).rglob("*.py")
                 if "planner/models" not in str(file) and "planner/pricing" not in str(file))  # fmt: skip

UNPICKLE = frozenset({"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib.load"})
CALLS = frozenset(
    {"eval", "exec", "torch.load", "yaml.load", "yaml.unsafe_load", "yaml.full_load", "os.system"}
)


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def faults(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in UNPICKLE)
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module in UNPICKLE:
            yield node.module
        if isinstance(node, ast.Call):
            name = dotted(node.func)
            if name in CALLS | UNPICKLE:
                yield name
            for keyword in node.keywords:
                said = isinstance(keyword.value, ast.Constant) and keyword.value.value
                if keyword.arg in ("trust_remote_code", "allow_pickle", "shell") and said:
                    yield f"{name}({keyword.arg}={said})"


@pytest.mark.parametrize(
    "bad",
    ["import pickle", "from dill import loads", "torch.load(f)", "eval(x)", "yaml.load(t)",
     "AutoModel.from_config(c, trust_remote_code=True)", "np.load(f, allow_pickle=True)",
     "run(c, shell=True)"],
)  # fmt: skip
def test_p34_the_lint_sees_what_it_should(bad: str) -> None:
    assert list(faults(ast.parse(bad)))


def test_p34_nothing_unpickles_evaluates_or_trusts_code_from_afar() -> None:
    assert len(SOURCES) > 100
    found = [
        f"{file.relative_to(ROOT)}: {fault}"
        for file in SOURCES
        for fault in faults(ast.parse(file.read_text(encoding="utf-8")))
    ]
    assert found == []


def test_p36_every_extra_that_brings_torch_brings_one_without_the_known_holes() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    wanted = {line for lines in extras.values() for line in lines if line.startswith("torch")}
    assert wanted == {"torch>=2.10"}


def test_p33_a_test_that_would_reach_the_network_fails() -> None:
    """So whatever passes made no call: this holds for every test but those that say so."""
    with pytest.raises(pytest_socket.SocketBlockedError):
        socket.socket(socket.AF_INET, socket.SOCK_STREAM)
