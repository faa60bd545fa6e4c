"""Recurrent stacks and experts' matmuls as one library call each."""

from __future__ import annotations

from typing import Any

import pytest

from planner.models.errors import BadConfig
from planner.models.tracing.step_trace import TraceVariant
from planner.models.tracing.tracer import trace_task

torch = pytest.importorskip("torch")

TIME, FEATURES, HIDDEN = 50, 24, 32


def _stack(kind: str, layers: int = 2, bidirectional: bool = True) -> Any:
    class Recurrent(torch.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(FEATURES, FEATURES)
            self.stack = getattr(torch.nn, kind)(
                FEATURES, HIDDEN, layers, batch_first=True, bidirectional=bidirectional
            )

        def forward(self, x: Any) -> Any:
            out, _ = self.stack(self.first(x))
            directions = 2 if bidirectional else 1
            assert out.shape == (len(x), TIME, directions * HIDDEN)
            return out

    return Recurrent


@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
@pytest.mark.parametrize("policy", ["fp32", "amp", "half"])
def test_a_recurrent_stack_counts_all_its_products(lab: Any, kind: str, gates: int, policy: Any) -> None:
    variant = TraceVariant(policy, "none")
    trace = trace_task(lab.module_task(_stack(kind), (TIME, FEATURES)), variant)
    first = 2 * gates * HIDDEN * (FEATURES + HIDDEN)  # both directions of the first layer
    second = 2 * gates * HIDDEN * (2 * HIDDEN + HIDDEN)
    expected = 2 * TIME * (first + second)
    assert lab.flops(trace, "forward", 1, "rnn") == expected
    assert lab.flops(trace, "backward", 1, "rnn") == 2 * expected
    assert sum(row.count for row in trace.ops if row.op_class == "rnn") == 3 * TIME * 4


def test_a_recurrent_stack_keeps_a_reserve_for_backward(lab: Any) -> None:
    trace = trace_task(lab.module_task(_stack("LSTM"), (TIME, FEATURES)), TraceVariant("fp32", "none"))
    kept = sum(s.bytes.per_sample for s in trace.storages if s.category == "activations")
    gates = 4 * (2 * 2) * TIME * 4 * HIDDEN  # bytes x (layers x directions) x steps x gates
    assert kept > gates
    assert any("reserve is an assumption" in text for text in trace.rewrites)


def test_packed_sequences_are_refused_because_their_lengths_are_data(lab: Any) -> None:
    class Packed(torch.nn.LSTM):  # type: ignore[name-defined, misc]
        def forward(self, x: Any) -> Any:
            lengths = torch.full((len(x),), TIME, device="cpu")
            packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
            return super().forward(packed)[0].data

    task = lab.module_task(lambda: Packed(FEATURES, HIDDEN), (TIME, FEATURES))
    with pytest.raises(BadConfig, match="packed sequences"):
        trace_task(task, TraceVariant("fp32", "none"))


@pytest.mark.parametrize("policy", ["fp32", "half"])
def test_a_grouped_matmul_counts_each_token_once(lab: Any, policy: Any) -> None:
    experts, width, out = 8, 16, 48

    class Experts(torch.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(width, width)
            self.weights = torch.nn.Parameter(torch.empty(experts, width, out))

        def forward(self, x: Any) -> Any:
            ends = torch.zeros(experts, dtype=torch.int32, device=x.device)
            return torch.nn.functional.grouped_mm(self.first(x), self.weights, offs=ends)

    trace = trace_task(lab.module_task(Experts, (width,)), TraceVariant(policy, "none"))
    rows = [row for row in trace.ops if row.op == "grouped_mm"]
    assert [row.flops.at(10) for row in rows] == [2 * 10 * width * out] * 3
    assert {row.op_class for row in rows} == {"gemm"}
