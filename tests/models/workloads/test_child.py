"""What the child process makes of a factory's answer; in this process, where torch is imported once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from planner.models.errors import BadConfig
from planner.models.workloads import child

torch = pytest.importorskip("torch")


def _request(shape: list[int] | None = None, vocab_size: int | None = None) -> dict[str, Any]:
    return {"shape": shape, "vocab_size": vocab_size}


@pytest.mark.parametrize(
    ("returned", "complaint"),
    [
        (3, "must return an nn.Module or .* not int"),
        ((), "must return an nn.Module"),
        ((torch.nn.ReLU(), 1, 2, 3), "not ReLU, int, int, int"),
        (torch.nn.ReLU(), "ReLU has no parameter that is trained"),
    ],
)
def test_only_a_module_that_trains_something_is_taken(returned: object, complaint: str) -> None:
    with pytest.raises(BadConfig, match=complaint):
        child._made(lambda: returned, "net:build")


def test_a_module_that_insists_on_the_cpu_is_moved_to_meta() -> None:
    made = child._made(lambda: torch.nn.Linear(2, 2, device="cpu"), "net:build")
    assert {parameter.device.type for parameter in made.module.parameters()} == {"meta"}


@pytest.mark.parametrize(
    ("signature", "request_", "size", "shapes"),
    [
        (["pixel_values"], _request(), None, {"pixel_values": (2, 3, 224, 224)}),
        (["x"], _request([3, 32, 32]), 64, {"x": (2, 3, 64, 64)}),
        (["x", "labels"], _request([7]), None, {"x": (2, 7), "labels": (2,)}),
        (["x", "labels"], _request([16], 100), None, {"x": (2, 16), "labels": (2, 16)}),
        (["input_ids"], _request(), 33, {"input_ids": (2, 33)}),
    ],
)
def test_inputs_follow_the_shape_given_or_the_names_of_forward(
    signature: list[str], request_: dict[str, Any], size: int | None, shapes: dict[str, tuple[int, ...]]
) -> None:
    inputs = child._assumed_inputs(2, request_, signature, size, [])
    assert {name: tuple(tensor.shape) for name, tensor in inputs.items()} == shapes


def test_a_forward_that_says_nothing_asks_for_a_shape() -> None:
    with pytest.raises(
        BadConfig, match=r'does not say what it takes: give --input-shape, such as "3x224x224"'
    ):
        child._assumed_inputs(2, _request(), ["picture"], None, [])


@pytest.mark.parametrize(
    ("output", "assumed"),
    [
        (lambda: {"loss": torch.empty((), device="meta")}, []),
        (lambda: SimpleNamespace(loss=torch.empty((), device="meta")), []),
        (lambda: torch.empty((), device="meta"), []),
        (lambda: torch.empty(4, 10, device="meta"), ["loss: cross entropy over the last axis of the output"]),
        (lambda: (torch.empty(4, 1, device="meta"), None), ["loss: mean square of the output"]),
        (lambda: torch.empty(4, 3, 8, 8, device="meta"), ["loss: mean square of the output"]),
    ],
    ids=["dict", "attribute", "scalar", "logits", "regression", "image"],
)
def test_the_loss_is_the_modules_own_or_said_to_be_assumed(output: Any, assumed: list[str]) -> None:
    said: list[str] = []
    assert child._assumed_loss(output(), said).shape == ()
    assert said == assumed


def test_an_output_without_a_tensor_asks_for_a_loss() -> None:
    with pytest.raises(BadConfig, match=r"return \(module, inputs_fn, loss_fn\)"):
        child._assumed_loss({"answer": 42}, [])
