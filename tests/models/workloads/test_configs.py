"""Any config.json of transformers; whatever is wrong with one is said with file and key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.models.errors import BadConfig, UnknownName
from planner.models.tracing.step_trace import TraceVariant
from planner.models.workloads import configs, store
from planner.models.workloads.configs import from_config

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
    "torch_dtype": "float16",
    "transformers_version": "4.31.0",
}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path / "cache"))


def _written(tmp_path: Path, values: object) -> Path:
    folder = tmp_path / "my-model"
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(values if isinstance(values, str) else json.dumps(values))
    return folder


def test_a_folder_with_a_config_becomes_a_workload_named_after_it(tmp_path: Path) -> None:
    workload = from_config(_written(tmp_path, LLAMA))
    per_layer = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128 + 2 * 64
    assert workload.id == "my-model"
    assert workload.parameters == 2 * 100 * 64 + 2 * per_layer + 64
    assert workload.default_size == 2048
    assert workload.assumptions[1] == "sequences of 2,048 tokens, unpadded"
    summary = store.summary(workload, TraceVariant("half", "flash", activation_checkpointing=True, size=128))
    assert summary.parameters == workload.parameters
    assert summary.variant.size == 128


def test_c15_key_and_value_heads_are_counted_where_they_belong(tmp_path: Path) -> None:
    eight_b = {**LLAMA, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32}
    eight_b.update(num_attention_heads=32, num_key_value_heads=8, vocab_size=128256)
    assert from_config(_written(tmp_path, eight_b)).parameters == 8_030_261_248


def test_c13_a_mixture_of_experts_is_counted_whole(tmp_path: Path) -> None:
    mixtral = {**LLAMA, "model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "hidden_size": 4096}
    mixtral.update(num_attention_heads=32, num_key_value_heads=8, vocab_size=32000, intermediate_size=14336)
    mixtral.update(num_hidden_layers=32, num_local_experts=8, num_experts_per_tok=2)
    assert from_config(_written(tmp_path, mixtral)).parameters == 46_702_792_704


@pytest.mark.parametrize(
    ("model_type", "architectures", "values", "built"),
    [
        (
            "bert",
            None,
            {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 1},
            "BertForMaskedLM",
        ),
        (
            "bert",
            ["BertForSequenceClassification"],
            {"num_hidden_layers": 1},
            "BertForSequenceClassification",
        ),
        ("bert", ["BertForPreTraining"], {"num_hidden_layers": 1}, "BertForMaskedLM"),
        ("gpt2", ["GPT2LMHeadModel"], {"n_layer": 1}, "GPT2LMHeadModel"),
        ("t5", None, {"num_layers": 1}, "T5ForConditionalGeneration"),
        ("whisper", None, {"encoder_layers": 1, "decoder_layers": 1}, "WhisperForConditionalGeneration"),
        ("vit", None, {"num_hidden_layers": 1}, "ViTForImageClassification"),
        ("resnet", ["ResNetModel"], {"depths": [1, 1, 1, 1]}, "ResNetForImageClassification"),
    ],
)
def test_the_class_is_the_one_named_or_the_one_usually_trained(
    tmp_path: Path, model_type: str, architectures: list[str] | None, values: dict[str, Any], built: str
) -> None:
    config = {"model_type": model_type, "architectures": architectures, **values}
    workload = from_config(_written(tmp_path, config))
    assert workload.builder.task_class == built
    assert store.trace_now(workload, store.variant_of(workload, TraceVariant("amp", "flash"))).ops


def test_a_second_look_at_the_same_file_builds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _written(tmp_path, LLAMA)
    first = from_config(folder)
    monkeypatch.setattr(configs, "_make", lambda *_: pytest.fail("built again"))
    assert from_config(folder) == first


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ('{"model_type": "llama",', r"config.json: broken JSON"),
        ("[1, 2]", r"config.json: a configuration is a JSON object, not a list"),
        ('{"a": ' * 50_000, r"config.json: broken JSON"),
        ("{}", r'config.json: key "model_type" is missing'),
        (
            {**LLAMA, "hidden_size": float("nan")},
            r'config.json: key "hidden_size" is nan, which is no number',
        ),
        ({**LLAMA, "rope_theta": float("inf")}, r'config.json: key "rope_theta" is inf'),
        (
            {**LLAMA, "hidden_size": -64},
            r'config.json: key "hidden_size" must be between 1 and 1,000,000, not -64',
        ),
        ({**LLAMA, "num_hidden_layers": 10**9}, r'key "num_hidden_layers" must be between 0 and 2,000'),
        ({**LLAMA, "vocab_size": 1e12}, r'key "vocab_size" must be between 1 and 10,000,000'),
        ({**LLAMA, "num_attention_heads": 2.5}, r'key "num_attention_heads" must be a whole number, not 2.5'),
        ({**LLAMA, "attention_dropout": 3}, r'key "attention_dropout" must be between 0 and 1, not 3'),
        ({**LLAMA, "text_config": {"d_model": 0}}, r'key "text_config.d_model" must be between'),
        ({**LLAMA, "vocab_size": 10**400}, r'key "vocab_size" must be between 1 and 10,000,000'),
        ({**LLAMA, "hidden_size": "64"}, r"my-model/config.json: LlamaConfig refuses it"),
        ({**LLAMA, "hidden_size": None}, r"my-model/config.json: Llama"),
        ({**LLAMA, "depths": [2, -1]}, r"key .*depths\[1\].*must be between"),
        ({**LLAMA, "num_attention_heads": 3}, r"my-model/config.json: Llama"),
    ],
)
def test_a_broken_or_absurd_config_is_refused_with_file_and_key(
    tmp_path: Path, values: object, complaint: str
) -> None:
    with pytest.raises(BadConfig, match=complaint):
        from_config(_written(tmp_path, values))


def test_an_unknown_model_type_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r'no model_type "lama".*"llama".*key "model_type"'):
        from_config(_written(tmp_path, {**LLAMA, "model_type": "lama"}))


def test_code_on_a_hub_is_never_run(tmp_path: Path) -> None:
    remote = {"model_type": "qwen_of_ours", "auto_map": {"AutoModel": "modeling.py--Qwen"}}
    with pytest.raises(UnknownName, match=r"auto_map\), which is never run"):
        from_config(_written(tmp_path, remote))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"nowhere: no such file; give a config.json or the folder"):
        from_config(tmp_path / "nowhere")
