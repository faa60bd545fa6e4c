"""The zoo: names resolve, the compiled file is its sources, published counts are exact."""

from __future__ import annotations

from typing import Any

import pytest

from planner.models.errors import BadConfig, BadData, UnknownName
from planner.models.workloads import building, compile_zoo, records, zoo

EVERY = zoo.workloads()


def test_the_compiled_file_says_what_the_data_files_say() -> None:
    compiled = compile_zoo.compile_records()
    assert compiled == zoo._compiled(), "run: python -m planner.models.workloads.compile_zoo"


@pytest.mark.parametrize(
    ("spelled", "meant"),
    [
        ("bert-base-uncased", "bert-base"),
        ("BERT large", "bert-large"),
        ("bert-large-uncased", "bert-large"),
        ("meta-llama/Llama-2-7b-hf", "llama-2-7b"),
        ("Llama 2 7B", "llama-2-7b"),
        ("openai-community/gpt2", "gpt2"),
        ("gpt2-124m", "gpt2"),
        ("ResNet50", "resnet50"),
    ],
)
def test_usual_spellings_mean_one_workload(spelled: str, meant: str) -> None:
    assert zoo.workload(spelled).id == meant


def test_a_workload_can_be_a_key() -> None:
    assert {zoo.workload("gpt2"): 1}[zoo.workload("gpt2-small")] == 1


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r'no workload "bert-basse".*Did you mean "bert-base"'):
        zoo.workload("bert-basse")


@pytest.mark.parametrize(
    ("identifier", "parameters"),
    [("gpt2", 124_439_808), ("llama-2-7b", 6_738_415_616)],
)
def test_c12_a_tied_head_is_counted_once_and_an_untied_one_twice(identifier: str, parameters: int) -> None:
    assert zoo.workload(identifier).parameters == parameters


@pytest.mark.parametrize("workload", EVERY, ids=lambda w: w.id)
def test_published_counts_are_exact(workload: records.Workload) -> None:
    """C12, C13, C15 among them: tied heads once, all experts, key and value heads where they belong."""
    builder = workload.builder
    plain = building.build_module(builder, builder.model_class, workload.id)
    assert building.count_parameters(plain) == workload.parameters
    trained = plain
    if builder.task_class != builder.model_class:
        trained = building.build_module(builder, builder.task_class, workload.id, workload.default_size)
    assert building.count_parameters(trained) == workload.trained_parameters
    _can_do_what_its_file_says(trained, builder)


def _can_do_what_its_file_says(module: Any, builder: records.Builder) -> None:
    able = hasattr(module, "gradient_checkpointing_enable")
    if builder.route == "transformers":
        able = type(module).supports_gradient_checkpointing
        assert (builder.attention == "fused") <= type(module)._supports_sdpa
    assert builder.activation_checkpointing <= able


@pytest.mark.parametrize(
    ("identifier", "parameters"),
    [
        ("bert-base", 109_482_240),
        ("bert-large", 335_141_888),
        ("llama-3.1-8b", 8_030_261_248),
        ("mixtral-8x7b", 46_702_792_704),
        ("resnet50", 25_557_032),
        ("resnet152", 60_192_808),
        ("vit-base", 86_567_656),
        ("llama-3.1-70b", 70_553_706_496),
    ],
)
def test_well_known_counts(identifier: str, parameters: int) -> None:
    """C13 (mixtral) and C15 (llama 3) by name; the data files could be wrong together with the modules."""
    assert zoo.workload(identifier).parameters == parameters


@pytest.mark.parametrize(
    ("identifier", "size", "complaint"),
    [
        ("bert-base", 513, "its position table ends at 512 tokens, not 513"),
        ("bert-base", -4, "a size of -4 is not positive"),
        ("mlp-mnist", 28, "takes no sequence length or image size"),
    ],
)
def test_a_size_the_workload_cannot_have_is_refused(identifier: str, size: int, complaint: str) -> None:
    with pytest.raises(BadConfig, match=complaint):
        zoo.task(zoo.workload(identifier), size)


def test_the_reference_run_of_bert_is_squad() -> None:
    reference = zoo.workload("bert-base").reference
    assert reference is not None
    assert (reference.dataset_samples, reference.size, reference.global_batch_size) == (87_599, 384, 32)


@pytest.mark.parametrize("workload", EVERY, ids=lambda w: w.id)
def test_every_reference_run_is_a_line_with_a_source(workload: records.Workload) -> None:
    reference = workload.reference
    assert reference is not None
    assert "\n" not in reference.text
    assert f"{reference.dataset_samples:,}" in reference.text
    assert reference.source
    assert set(reference.precisions) <= {"fp32", "tf32", "fp16-amp", "bf16-amp", "fp16", "bf16"}
    if workload.parameters >= 10**9:
        assert "bf16" in reference.precisions


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("dataset_samples", -1, 'reference.dataset_samples" must be a whole number between'),
        ("dataset_samples", float("nan"), 'reference.dataset_samples" must be a whole number'),
        ("epochs", 10**20, 'reference.epochs" must be a whole number between'),
        ("global_batch_size", True, 'reference.global_batch_size" must be a whole number'),
        ("checked", "yesterday", 'reference.checked" must be a date'),
        ("precisions", [], 'reference.precisions" must be at least 1 text'),
        ("size_unit", "furlongs", 'reference.size_unit" must be one of tokens, pixels'),
    ],
)
def test_a_wrong_figure_is_refused_with_file_and_key(key: str, value: object, complaint: str) -> None:
    record = dict(zoo._compiled()["workloads"]["bert-base"])
    record["reference"] = {**record["reference"], key: value}
    with pytest.raises(BadData, match=f'bert.toml: key "{complaint}'):
        records.from_record(record, "bert.toml")
