"""LoRA and QLoRA on the meta device: what is frozen, what is packed, what is kept for backward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from planner.models.allocator import replay
from planner.models.errors import BadConfig
from planner.models.tracing import adapter_spec
from planner.models.tracing.step_trace import StepTrace, TraceVariant, from_json, to_json

pytest.importorskip("torch")
pytest.importorskip("transformers")

if TYPE_CHECKING:
    from torch import nn

LINEAR, WHOLE = 6_476_005_376, 262_410_240  # Llama-2-7B: in linear layers of its blocks, and all else
LORA = "lora-r16-q_proj+v_proj-fp32"


def _trace(workload: str, adapter: str, size: int = 512, checkpointing: bool = False) -> StepTrace:
    from planner.models.tracing.tracer import trace_task
    from planner.models.workloads import building
    from planner.models.workloads.zoo import workload as named

    variant = TraceVariant("half", "flash", checkpointing, "adamw-foreach", size, adapter)
    return trace_task(building.task(named(workload), size), variant)


@pytest.fixture(scope="module")
def llama() -> dict[str, StepTrace]:
    names = {"full": "", "lora": LORA, "nf4": f"{LORA}-nf4", "nf4-dq": f"{LORA}-nf4-dq"}
    return {name: _trace("llama-2-7b", adapter) for name, adapter in names.items()}


def _initially(trace: StepTrace, category: str) -> float:
    storages = trace.storages[: trace.initially_alive]
    return sum(storage.bytes.at(1) for storage in storages if storage.category == category)


def _adapter_weights(trace: StepTrace) -> int:
    return 4 * trace.trainable_parameters


@pytest.mark.slow
def test_c20_packed_weights_are_more_than_half_a_byte_each(llama: dict[str, StepTrace]) -> None:
    """Llama-2-7B in NF4: 4.17 GB, 3.87 GB with double quantisation; never the 3.37 GB of N/2."""
    for name, expected in (("nf4", 4.17), ("nf4-dq", 3.87)):
        base = _initially(llama[name], "weights") - _adapter_weights(llama[name])
        assert base / 1e9 == pytest.approx(expected, abs=0.005), name
    assert adapter_spec.packed_bytes(LINEAR, "nf4") + 2 * WHOLE == pytest.approx(4.17e9, rel=1e-3)
    assert llama["nf4"].parameters == LINEAR + WHOLE + 8_388_608


@pytest.mark.slow
def test_c20_activations_are_not_reduced_by_packed_weights(llama: dict[str, StepTrace]) -> None:
    names = ("lora", "nf4", "nf4-dq")
    kept = {name: replay(llama[name], 1).breakdown["activations"] for name in names}
    assert kept["nf4"] == kept["nf4-dq"]
    assert kept["nf4"] == pytest.approx(kept["lora"], rel=0.01)


@pytest.mark.slow
def test_c21_lora_trains_adapters_only(llama: dict[str, StepTrace]) -> None:
    """r = 16 on q_proj and v_proj, fp32 adapters, AdamW: 128 MiB of adapter states."""
    lora = llama["lora"]
    assert lora.trainable_parameters == 8_388_608
    moments = _initially(lora, "optimizer_state")
    assert _adapter_weights(lora) + lora.gradient_bytes + moments == 134_217_728
    assert llama["nf4-dq"].trainable_parameters == 8_388_608


@pytest.mark.slow
def test_c21_totals_are_ordered_qlora_below_lora_below_full(llama: dict[str, StepTrace]) -> None:
    totals = {name: replay(trace, 1).allocated_peak_bytes for name, trace in llama.items()}
    assert totals["nf4-dq"] < totals["nf4"] < totals["lora"] < totals["full"]


def _stack(*targets: str) -> tuple[nn.Module, Any]:
    import torch
    from torch import nn

    from planner.models.tracing import adapters

    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 32)

        def forward(self, x: Any) -> Any:
            return self.second(self.first(x))

    with torch.device("meta"):
        model = Pair()
        adapters.apply(model, adapter_spec.AdapterSpec(4, targets))
    return model, torch.empty(8, 64, device="meta")


def test_a_frozen_weight_gets_no_gradient_and_its_input_still_does() -> None:
    model, x = _stack("first")
    model(x).sum().backward()
    given = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert given == {"first.down.weight", "first.up.weight"}


def test_a_target_that_no_layer_bears_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(BadConfig, match="no linear layer named q_proj; it has first, second"):
        _stack("q_proj")


def test_a_spec_reads_back_and_a_wrong_one_says_how_to_write_it() -> None:
    for text in (LORA, f"{LORA}-nf4", f"{LORA}-nf4-dq", f"{LORA}-int8", "lora-r8-c_attn-bf16"):
        assert adapter_spec.parse(text).key == text
    for wrong in ("lora", "lora-r0-q_proj-fp32", "lora-r8-q_proj-fp64", f"{LORA}-nf5"):
        with pytest.raises(BadConfig, match="write lora-r16-q_proj"):
            adapter_spec.parse(wrong)


def test_gpt2_whose_layers_are_transposed_takes_adapters() -> None:
    trace = _trace("gpt2", "lora-r8-c_attn-bf16")
    assert trace.trainable_parameters == 12 * 8 * (768 + 3 * 768)


def test_adapters_run_under_checkpointing() -> None:
    plain, recomputed = (_trace("gpt2", "lora-r8-c_attn-bf16", 512, again) for again in (False, True))
    assert replay(recomputed, 8).allocated_peak_bytes < replay(plain, 8).allocated_peak_bytes


def test_a_variant_without_adapters_keeps_its_key_and_says_nothing_of_them() -> None:
    plain = TraceVariant("amp", "flash", size=384)
    assert plain.key == "amp-flash-adamw-foreach-s384"
    assert "adapter" not in plain.to_json()
    adapted = TraceVariant("amp", "flash", size=384, adapter=LORA)
    assert adapted.key == f"{plain.key}-{LORA}"


def test_a_trace_with_adapters_reads_back_whole() -> None:
    trace = _trace("gpt2", "lora-r8-c_attn-bf16")
    assert from_json(to_json(trace), "here") == trace
