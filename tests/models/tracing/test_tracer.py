"""One traced step against hand counts, torch's own tracker, and the notebook's table of peaks."""

from __future__ import annotations

from typing import Any

import pytest

from planner.models.allocator import replay
from planner.models.errors import BadConfig, UnknownName
from planner.models.tracing.step_trace import StepTrace, TraceVariant
from planner.models.tracing.task import TrainingTask
from planner.models.tracing.tracer import trace_task

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

GIB = 2**30
EAGER = TraceVariant("fp32", "math")
FLASH = TraceVariant("amp", "flash")
HALF = TraceVariant("half", "flash")
BERT_PARAMETERS = 109_483_778  # bert-base with pooler and a two-label head


@pytest.mark.parametrize("variant", [TraceVariant(), EAGER, FLASH], ids=lambda variant: variant.key)
def test_c27_bert_base_forward_counts_the_same_with_fused_and_eager_attention(
    lab: Any, variant: TraceVariant
) -> None:
    """Encoder 96,636,764,160 FLOPs at 512 tokens, 10 % of it attention; pooler and head are the rest."""
    trace = lab.bert(512, variant)
    pooler, head = 2 * 768 * 768, 2 * 768 * 2
    assert lab.flops(trace, "forward") == 96_636_764_160 + pooler + head
    assert lab.flops(trace, "forward", 1, "attention_fused", "attention_unfused") == 9_663_676_416
    assert lab.flops(trace, "forward") - head == 96_637_943_808


def test_c28_resnet_50_forward_is_counted_in_flops_not_in_multiply_adds(lab: Any) -> None:
    trace = trace_task(_resnet_50(lab), TraceVariant("fp32", "none", optimizer="sgd-momentum-foreach"))
    assert lab.flops(trace, "forward") == 8_178_368_512
    stem = 2 * 112 * 112 * 64 * 3 * 7 * 7
    assert lab.flops(trace, "forward", 1, "conv_stem") == stem
    # The first convolution needs no gradient of the image: one product less in backward.
    assert lab.flops(trace, "backward") == 2 * 8_178_368_512 - stem


def test_c29_llama_3_8b_counts_no_matmul_for_its_look_up_embedding(lab: Any) -> None:
    tokens = 8192
    config = _llama_config(
        hidden_size=4096, layers=32, heads=32, key_value_heads=8, intermediate=14336, vocabulary=128_256
    )
    trace = trace_task(lab.causal_task("LlamaForCausalLM", config, tokens), FLASH)
    products = sum(lab.flops(trace, phase, 1, "gemm") for phase in ("forward", "backward"))
    assert trace.parameters == 8_030_261_248
    norms = 65 * 4096  # the case's 6 N counts norm weights too, which multiply no matrix
    assert products / tokens == 6 * (7_504_924_672 - norms)
    assert products / tokens == pytest.approx(45.03e9, rel=1e-3)
    # Non-causal convention: 12 L H Q T a token for forward and backward, a third of it in forward.
    assert 3 * lab.flops(trace, "forward", 1, "attention_fused") / tokens == 12 * 32 * 4096 * tokens
    assert {row.rule for row in trace.ops if row.op_class == "attention_fused"} == {"fused attention, causal"}


def test_c12_a_tied_head_is_counted_once(lab: Any) -> None:
    config = transformers.GPT2Config()
    trace = trace_task(lab.causal_task("GPT2LMHeadModel", config, 32), TraceVariant())
    assert trace.parameters == trace.trainable_parameters == 124_439_808
    weights = [s.bytes.constant for s in trace.storages if s.category == "weights" and not s.bytes.per_sample]
    assert sum(weights) == pytest.approx(4 * 124_439_808, abs=4 * 12 * 1024 * 1024)
    assert trace.gradient_bytes == 4 * 124_439_808


def test_c13_experts_cost_memory_by_total_and_work_by_active_parameters(lab: Any) -> None:
    tokens = 64
    config = transformers.MixtralConfig()
    trace = trace_task(lab.causal_task("MixtralForCausalLM", config, tokens), HALF)
    assert trace.parameters == 46_702_792_704
    looked_up, norms = 32_000 * 4096, (2 * 32 + 1) * 4096
    active_products = 2 * (12_879_925_248 - looked_up - norms)
    assert lab.flops(trace, "forward", 1, "gemm") / tokens == pytest.approx(active_products, rel=1e-6)


def test_c17_the_peak_grows_by_the_same_amount_for_every_sample(lab: Any) -> None:
    one, two, four = (replay(lab.bert(512), batch, first_step=False).breakdown for batch in (8, 16, 32))
    assert one["weights"] == two["weights"] == four["weights"]
    slope = two["activations"] - one["activations"]
    assert slope > 0
    assert four["activations"] - two["activations"] == pytest.approx(2 * slope, rel=0.01)


def test_c18_logits_of_a_large_vocabulary_are_there_in_both_types(lab: Any) -> None:
    """32,768 tokens x 151,936 words: at least a bf16 and an fp32 copy alive at once, 27.8 GiB."""
    config = _llama_config(
        hidden_size=128, layers=1, heads=2, key_value_heads=2, intermediate=256, vocabulary=151_936
    )
    trace = trace_task(lab.causal_task("LlamaForCausalLM", config, 32_768), HALF)
    fp32_copy = 32_768 * 151_936 * 4
    assert lab.allocated_peak(trace, 1) > 27.8 * GIB
    sizes = [storage.bytes.at(1) for storage in trace.storages]
    assert max(sizes) == pytest.approx(fp32_copy, rel=1e-4)
    assert sizes.count(fp32_copy / 2) >= 1


@pytest.mark.slow
def test_c19_eager_attention_keeps_a_score_matrix_per_layer(lab: Any) -> None:
    """Llama-2-7B shape, bf16: one score matrix is 1 GiB a layer at 4,096 tokens, four times that at 8,192."""

    def peak(kernel: str, tokens: int) -> int:
        config = _llama_config(
            hidden_size=4096, layers=32, heads=32, key_value_heads=32, intermediate=11008, vocabulary=32_000
        )
        variant = TraceVariant("half", "math" if kernel == "eager" else "flash", optimizer="none")
        trace = trace_task(lab.causal_task("LlamaForCausalLM", config, tokens), variant)
        peak_bytes: int = lab.allocated_peak(trace, 1)
        return peak_bytes

    short = peak("eager", 4096) - peak("flash", 4096)
    assert short >= 32 * GIB
    assert peak("eager", 8192) - peak("flash", 8192) == pytest.approx(4 * short, rel=0.02)
    weights = 2 * 6_738_415_616
    assert peak("flash", 8192) - weights == pytest.approx(2 * (peak("flash", 4096) - weights), rel=0.05)


# notes/vram.md section 4: GiB allocated on bert-base, AdamW foreach, second step. Those runs kept CPU's
# dropout (a mask in the input's type), so these do as well.
TABLE = [
    ("fp32", "efficient", False, 128, 8, 2.07),
    ("fp32", "efficient", False, 512, 8, 3.89),
    ("fp32", "efficient", False, 512, 32, 11.67),
    ("amp", "flash", False, 128, 8, 2.07),
    ("amp", "flash", False, 512, 8, 3.06),
    ("amp", "flash", False, 512, 32, 7.91),
    ("fp32", "efficient", True, 512, 8, 2.07),
    ("fp32", "efficient", True, 512, 32, 2.89),
    ("amp", "flash", True, 512, 32, 2.58),
    ("half", "flash", False, 512, 8, 1.94),
]


@pytest.mark.parametrize(("policy", "kernel", "checkpointing", "tokens", "batch", "published_gib"), TABLE)
def test_peaks_of_bert_base_are_those_of_the_table(
    lab: Any, policy: Any, kernel: Any, checkpointing: bool, tokens: int, batch: int, published_gib: float
) -> None:
    variant = TraceVariant(policy, kernel, activation_checkpointing=checkpointing)
    trace = lab.bert(tokens, variant, fused_dropout=False)
    peak = replay(trace, batch).allocated_peak_bytes / GIB
    assert peak == pytest.approx(published_gib, rel=0.02)


def test_before_any_allocator_the_small_peak_is_five_times_the_weights(lab: Any) -> None:
    """Weights, gradients, two moments and the foreach transient: 2.04 GiB."""
    trace = lab.bert(128)
    assert lab.allocated_peak(trace, 8) == pytest.approx(5 * 4 * BERT_PARAMETERS, rel=0.001)


@pytest.mark.filterwarnings("ignore:Module is None")
def test_peak_equals_that_of_mem_tracker(lab: Any) -> None:
    """torch.distributed._tools.MemTracker on meta, which rounds nothing there: the same bytes."""
    layers, tokens, batch = 2, 128, 8
    trace = lab.bert(tokens, EAGER, layers=layers, fused_dropout=False)
    tracked = _mem_tracker_peak(lab.bert_task(tokens, layers), EAGER, batch)
    assert lab.allocated_peak(trace, batch, grain_bytes=1) == tracked


@pytest.mark.slow
def test_bert_base_equals_the_recorded_mem_tracker_figure(lab: Any) -> None:
    """8 x 128 tokens, eager: MemTracker on meta said 2,146.41 MiB (notes/vram.md section 4)."""
    trace = lab.bert(128, EAGER, fused_dropout=False)
    assert lab.allocated_peak(trace, 8) / 2**20 == pytest.approx(2146.41, abs=0.02)


@pytest.mark.parametrize(
    "variant", [TraceVariant(), EAGER, TraceVariant("amp", "flash", True)], ids=lambda variant: variant.key
)
def test_sizes_are_affine_in_the_batch_at_a_third_batch_too(lab: Any, variant: TraceVariant) -> None:
    task = lab.bert_task(64, layers=2)
    fitted, other = trace_task(task, variant, (2, 4)), trace_task(task, variant, (3, 7))
    assert fitted.events == other.events
    assert fitted.storages == other.storages
    assert [(row.op, row.flops, row.bytes_read, row.bytes_written) for row in fitted.ops] == [
        (row.op, row.flops, row.bytes_read, row.bytes_written) for row in other.ops
    ]


def test_two_traces_are_the_same_bytes(lab: Any) -> None:
    task = lab.bert_task(64, layers=2)
    variant = TraceVariant("amp", "flash", True)
    assert trace_task(task, variant).content_hash == trace_task(task, variant).content_hash


def test_every_storage_is_born_once_dies_at_most_once_and_the_step_closes(lab: Any) -> None:
    trace: StepTrace = lab.bert(128, FLASH)
    alive = set(range(trace.initially_alive))
    for event in trace.events:
        index = abs(event) - 1
        assert (event > 0) != (index in alive)
        alive ^= {index}
    # What is alive at the end is what was alive at the start: the step repeats.
    assert alive == set(range(trace.initially_alive))
    assert [phase for _, phase in trace.marks] == ["forward", "backward", "optimizer"]


def test_categories_add_up_to_weights_gradients_and_moments(lab: Any) -> None:
    trace: StepTrace = lab.bert(128, FLASH)

    def total(category: str) -> float:
        return sum(s.bytes.at(1) for s in trace.storages if s.category == category)

    assert total("gradients") == trace.gradient_bytes == 4 * BERT_PARAMETERS
    assert total("optimizer_state") == 8 * BERT_PARAMETERS
    assert total("optimizer_transient") >= 4 * BERT_PARAMETERS
    matrices_and_biases = 2 * (BERT_PARAMETERS - 30_522 * 768 - 512 * 768 - 2 * 768 - 25 * 2 * 768)
    assert total("low_precision_copies") == matrices_and_biases
    assert total("activations") > 0


def test_pure_half_keeps_weights_gradients_and_moments_in_two_bytes(lab: Any) -> None:
    trace = lab.bert(128, HALF)
    assert trace.gradient_bytes == 2 * BERT_PARAMETERS
    states = sum(s.bytes.constant for s in trace.storages if s.category == "optimizer_state")
    assert states == 4 * BERT_PARAMETERS


def test_frozen_parameters_have_no_gradient_and_no_state(lab: Any) -> None:
    class Frozen(torch.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.body = torch.nn.Linear(16, 16).requires_grad_(False)
            self.head = torch.nn.Linear(16, 4)

        def forward(self, x: Any) -> Any:
            return self.head(self.body(x))

    trace = trace_task(lab.module_task(Frozen, (16,)), TraceVariant("fp32", "none"))
    assert (trace.parameters, trace.trainable_parameters) == (16 * 16 + 16 + 68, 68)
    assert trace.gradient_bytes == 4 * 68


def test_a_module_that_looks_at_its_data_is_refused_with_the_op_at_fault(lab: Any) -> None:
    class Selecting(torch.nn.Linear):  # type: ignore[name-defined, misc]
        def forward(self, x: Any) -> Any:
            return super().forward(x[x.sum(-1) > 0])

    with pytest.raises(BadConfig, match=r"depends on\s+its data"):
        trace_task(lab.module_task(lambda: Selecting(4, 4), (4,)), TraceVariant("fp32", "none"))


@pytest.mark.parametrize("look", [lambda x: x.tolist(), lambda x: x.numpy(), lambda x: x.cpu()])
def test_a_module_that_takes_values_out_is_refused(lab: Any, look: Any) -> None:
    class Looking(torch.nn.Linear):  # type: ignore[name-defined, misc]
        def forward(self, x: Any) -> Any:
            look(x.detach())
            return super().forward(x)

    with pytest.raises(BadConfig, match=r"depends on\s+its data"):
        trace_task(lab.module_task(lambda: Looking(4, 4), (4,)), TraceVariant("fp32", "none"))


def test_a_module_that_branches_on_the_batch_is_refused(lab: Any) -> None:
    class Branching(torch.nn.Linear):  # type: ignore[name-defined, misc]
        def forward(self, x: Any) -> Any:
            out = super().forward(x)
            return out.relu() if len(x) > 3 else out.tanh()

    with pytest.raises(BadConfig, match="steps at batch 2 and 4 differ from op 1 on: forward tanh against"):
        trace_task(lab.module_task(lambda: Branching(4, 4), (4,)), TraceVariant("fp32", "none"))


def test_what_only_a_reference_cycle_keeps_is_let_go_between_steps(lab: Any) -> None:
    class Cyclic(torch.nn.Linear):  # type: ignore[name-defined, misc]
        def forward(self, x: Any) -> Any:
            knot: list[Any] = [x.relu()]
            knot.append(knot)
            return super().forward(knot[0])

    trace = trace_task(lab.module_task(lambda: Cyclic(4, 4), (4,)), TraceVariant("fp32", "none"))
    initial = trace.storages[: trace.initially_alive]
    assert {storage.category for storage in initial} == {"weights", "optimizer_state"}


def test_a_module_that_hoards_tensors_is_refused(lab: Any) -> None:
    class Hoarding(torch.nn.Linear):  # type: ignore[name-defined, misc]
        def forward(self, x: Any) -> Any:
            out = super().forward(x)
            self.__dict__.setdefault("seen", []).append(out)
            return out

    with pytest.raises(BadConfig, match="1 tensors more are alive after each step"):
        trace_task(lab.module_task(lambda: Hoarding(4, 4), (4,)), TraceVariant("fp32", "none"))


def test_a_scalar_read_from_a_tensor_is_answered_and_noted(lab: Any) -> None:
    class Asking(torch.nn.Linear):  # type: ignore[name-defined, misc]
        def forward(self, x: Any) -> Any:
            return super().forward(x) if bool((x > 0).all()) else x

    trace = trace_task(lab.module_task(lambda: Asking(4, 4), (4,)), TraceVariant("fp32", "none"))
    assert any("no padding" in note for note in trace.notes)
    assert any(row.op == "addmm" for row in trace.ops)


def test_weights_off_the_meta_device_are_refused(lab: Any) -> None:
    def build(variant: TraceVariant) -> Any:
        with torch.device("cpu"):
            return torch.nn.Linear(2, 2)

    task = TrainingTask("real", build, lambda batch: {}, lambda module, tensors: module.weight.sum())
    with pytest.raises(BadConfig, match="build it on the meta device"):
        trace_task(task, TraceVariant())


def test_an_unknown_optimizer_is_named_with_its_nearest(lab: Any) -> None:
    task = lab.module_task(lambda: torch.nn.Linear(4, 4), (4,))
    with pytest.raises(UnknownName, match='Did you mean "adamw-fused"') as caught:
        trace_task(task, TraceVariant(optimizer="adamw-fuse"))
    assert caught.value.nearest[0] == "adamw-fused"


def test_tracing_leaves_torch_as_it_was(lab: Any) -> None:
    functional = torch.nn.functional
    before = (functional.scaled_dot_product_attention, functional.dropout, torch.utils.checkpoint.checkpoint)
    lab.bert(64, FLASH, layers=1)
    after = (functional.scaled_dot_product_attention, functional.dropout, torch.utils.checkpoint.checkpoint)
    assert before == after
    assert functional.dropout(torch.ones(3), 0.0).tolist() == [1, 1, 1]
    assert torch.nn.LSTM(2, 3)(torch.zeros(1, 1, 2))[0].shape == (1, 1, 3)


def _resnet_50(lab: Any) -> TrainingTask:
    def inputs(batch: int) -> dict[str, Any]:
        return {
            "pixel_values": torch.empty(batch, 3, 224, 224, device="meta"),
            "labels": torch.empty(batch, dtype=torch.long, device="meta"),
        }

    config = transformers.ResNetConfig(num_labels=1000)
    task: TrainingTask = lab.transformers_task("ResNetForImageClassification", config, inputs)
    return task


def _llama_config(
    *, hidden_size: int, layers: int, heads: int, key_value_heads: int, intermediate: int, vocabulary: int
) -> Any:
    return transformers.LlamaConfig(
        hidden_size=hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=key_value_heads,
        intermediate_size=intermediate,
        vocab_size=vocabulary,
        max_position_embeddings=32_768,
    )


def _mem_tracker_peak(task: TrainingTask, variant: TraceVariant, batch: int) -> int:
    """The peak torch's own tracker reports for the second step of the same loop. [B]"""
    from torch.distributed._tools.mem_tracker import MemTracker

    with torch.device("meta"):
        model = task.build(variant)
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
        tracker = MemTracker()
        tracker.track_external(model, optimizer)
        with tracker:
            for step in range(2):
                tensors = task.inputs(batch)
                loss = task.loss(model, tensors)
                loss.backward()
                del loss
                optimizer.step()
                optimizer.zero_grad()
                del tensors
                if step == 0:
                    tracker.reset_mod_stats()
    snapshot = tracker.get_tracker_snapshot("peak")
    return sum(int(parts["Total"]) for device, parts in snapshot.items() if device.type == "meta")
