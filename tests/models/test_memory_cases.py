"""Cases of memory that span tracing, workloads and estimate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.models.tracing.step_trace import PrecisionPolicy, TraceVariant
from planner.models.workloads import store
from planner.models.workloads.zoo import from_config, workload

LLAMA_70B = 70_553_706_496


def test_c14_the_asked_dtype_decides_the_weights_of_a_70b() -> None:
    """141.11 GB = 131.42 GiB in 16 bits (huggingface/accelerate#3379 reported 64.73)."""
    summary = store.summary(workload("llama-3.1-70b"), TraceVariant("half", "flash"))
    weights = summary.memory[0].breakdown["weights"]
    assert summary.parameters == LLAMA_70B
    assert weights == pytest.approx(2 * LLAMA_70B, rel=1e-6)  # rotary tables come on top
    assert round(weights / 1e9, 2) == 141.11
    assert round(weights / 2**30, 2) == 131.42


@pytest.mark.parametrize(("policy", "bytes_each"), [("half", 2), ("fp32", 4)])
def test_c14_a_dtype_in_the_config_does_not_leak_into_the_sum(
    tmp_path: Path, policy: PrecisionPolicy, bytes_each: int
) -> None:
    pytest.importorskip("transformers")
    shape = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 256,
        "max_position_embeddings": 128,
    }
    found = []
    for name, dtype in (("with", {"torch_dtype": "bfloat16"}), ("without", {})):
        path = tmp_path / name / "config.json"
        path.parent.mkdir()
        path.write_text(json.dumps({**shape, **dtype}))
        trace = store.trace_now(from_config(path), TraceVariant(policy, "efficient", size=32))
        weights = [s.bytes.at(1) for s in trace.storages[: trace.initially_alive] if s.category == "weights"]
        assert sum(weights) == pytest.approx(bytes_each * trace.parameters, rel=1e-3)
        found.append(sum(weights))
    assert found[0] == found[1]
