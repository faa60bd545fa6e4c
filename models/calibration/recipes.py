"""What a published row ran: which op list, which optimizer, how often. Parsed from its columns and notes.

Facts the sources state are read; facts of the scripts they name (apex O2, eager attention, padding) are
written here once, by source. A recipe nobody can name raises RecipeUnknown with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ..tracing.step_trace import AttentionKernel, PrecisionPolicy
from .sheet import Layout

Head = Literal["squad", "pretrain", "mlm", "lm", "classify", "detect", "translate"]

# Kinds of optimizer as they ran: a loop launches each op for each tensor, fused kinds take many at once.
OptimizerKind = Literal["adam-loop", "adam-bert", "adam-fused", "sgd-momentum", "lamb-fused", "none"]

CLASSIFIERS = [
    "resnet18",
    "resnet50",
    "resnet152",
    "resnext50-32x4d",
    "resnext101-32x4d",
    "wide-resnet50-2",
    "vgg16",
    "squeezenet1-1",
    "densenet121",
    "mobilenet-v2",
    "mnasnet1-0",
    "shufflenet-v2-x1-0",
]
DECODERS = ["gpt2-124m", "gpt-126m-megatron", "gpt2-large", "gpt3-xl-1.3b", "gpt3-2.7b", "opt-1.3b"]

# Translation rows do not state lengths: see TRANSLATION_TOKENS and T5_TOKENS of reference_tasks.py.
TRANSLATION_TOKENS = 30
T5_TOKENS = 96
# Alpaca's prompt and answer together, in pieces, as litgpt's loader batches them. Ours.
ALPACA_TOKENS = 128
# Phase 2 of the current BERT example bins sequences by length, 64 tokens a bin (its changelog, March 2022):
# a batch is padded to its bin, not to 512. Mean of such batches on Wikipedia. Ours.
BINNED_TOKENS = 288
# Mean tokens of an MLPerf BERT sample once padding is removed, of 512. Ours.
UNPADDED_TOKENS = 256


class RecipeUnknown(Exception):
    """Why a row is not covered; a reason for the report, not a failure."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """LoRA: rank on `targets` linear layers of a block; embeddings: input and output tables trained too.

    quantised: base weights in 4 bits, unpacked in each pass.
    """

    rank: int
    targets: Literal["all", "attention"]
    embeddings: bool
    quantised: bool


@dataclass(frozen=True, slots=True)
class Recipe:
    """id names the script: rows of one recipe share what physics misses. batch: samples a micro-step.

    zeroes_gradients: keeps gradients from step to step and sets them to zero, as torch did before 2.0.
    compiled: by torch.compile.
    busy_host: workers make the samples on the cores that launch.
    """

    id: str
    model: str
    head: Head
    size: int | None
    precision: str
    policy: PrecisionPolicy
    attention: AttentionKernel
    checkpointing: bool
    optimizer: OptimizerKind
    gradient_bytes: int
    batch: float
    accumulation: int
    adapter: Adapter | None = None
    layout: Layout = "nchw"
    zeroes_gradients: bool = False
    compiled: bool = False
    busy_host: bool = False

    @property
    def trace_key(self) -> str:
        """Which op list of the features table this recipe runs."""
        parts = [self.model, self.head, self.policy, self.attention, "ckpt" if self.checkpointing else "all"]
        return "/".join([*parts, str(self.size)])


def recipe_of(raw: Mapping[str, str]) -> Recipe:
    """The recipe of a raw row. Raises RecipeUnknown."""
    notes = raw.get("notes") or ""
    if "parallelism=TP" in notes or "parallelism=PP" in notes:
        raise RecipeUnknown("tensor or pipeline parallel")
    source = raw["source_repo"]
    for prefix, parse in _BY_SOURCE:
        if source.startswith(prefix):
            return parse(raw, notes)
    raise RecipeUnknown(f"no recipe known for {source}")


def tokens_per_sample(raw: Mapping[str, str], recipe: Recipe) -> float:
    """How many units of the row's throughput one sample makes."""
    if raw["unit"] != "tokens/s":
        return 1.0
    if recipe.model == "gnmt-v2":
        return 2.0 * TRANSLATION_TOKENS  # the script counts source and target
    if recipe.model == "transformer-big-wmt":
        return float(TRANSLATION_TOKENS)
    return float(recipe.size or 1)


def _precision(raw: Mapping[str, str]) -> str:
    stated = raw["precision"].split(" ")[0]
    known = {
        "fp32": "fp32",
        "tf32": "tf32",
        "fp16-amp": "fp16-amp",
        "bf16-amp": "bf16-amp",
        "fp16": "fp16",
        "bf16": "bf16",
        "bf16-true": "bf16",
        "int4+fp16": "fp16",
        "nf4+bf16": "bf16",
        "nf4-dq+bf16": "bf16",
    }
    if stated == "fp8":
        raise RecipeUnknown("fp8")
    if stated not in known:
        raise RecipeUnknown("precision not stated")
    return known[stated]


def _batch(raw: Mapping[str, str], otherwise: float | None = None) -> float:
    digits = re.match(r"\d+(\.\d+)?", raw["batch_per_gpu"] or "")
    if digits:
        return float(digits[0])
    if otherwise is None:
        raise RecipeUnknown("batch not stated")
    return otherwise


def _size(raw: Mapping[str, str], otherwise: int | None = None) -> int | None:
    digits = re.match(r"\d+", raw["seq_or_image"] or "")
    return int(digits[0]) if digits else otherwise


def _half(precision: str) -> bool:
    return precision not in ("fp32", "tf32")


def _nvidia_examples(raw: Mapping[str, str], notes: str) -> Recipe:
    """Scripts of DeepLearningExamples, as Lambda and NVIDIA ran them."""
    model, precision = raw["model"], _precision(raw)
    half = _half(precision)
    if model.startswith("bert"):
        return _nvidia_bert(raw, notes, precision)
    if model in CLASSIFIERS:
        layout: Layout = "nhwc" if "NHWC" in notes and "NCHW" not in notes and half else "nchw"
        policy: PrecisionPolicy = "amp" if half else "fp32"
        batch = _batch(raw, 256.0 if model == "resnet50" else 128.0)
        return Recipe(
            *(f"nvidia-classify-{layout}", model, "classify", _size(raw, 224), precision, policy, "none"),
            *(False, "sgd-momentum", 4, batch, 1),
            layout=layout,
            zeroes_gradients=True,
        )
    if model == "ssd300-resnet50":
        policy = "amp" if half else "fp32"
        script = _ssd_script(raw)
        return Recipe(
            *(script, model, "detect", 300, precision, policy, "none", False),
            *("sgd-momentum", 4, _batch(raw), 1),
            layout="nchw" if script == "lambda-ssd" else "nhwc",
            zeroes_gradients=True,
        )
    policy = "half" if half else "fp32"
    gradient = 2 if half else 4
    if model == "gnmt-v2":
        return Recipe(
            *("nvidia-gnmt", model, "translate", None, precision, policy, "math", False),
            *("adam-loop", gradient, _batch(raw), 1),
        )
    if model == "transformer-big-wmt":
        sentences = _batch(raw) / TRANSLATION_TOKENS
        return Recipe(
            *("nvidia-transformer", model, "translate", None, precision, policy, "math", False),
            *("adam-fused", gradient, sentences, 1),
        )
    raise RecipeUnknown(f"no recipe known for {model}")


def _ssd_script(raw: Mapping[str, str]) -> str:
    """NVIDIA's tables are of 22.10, in channels last; Lambda's copy is older.

    It asks for mixed precision, which the script makes its default two months after it changes the layout
    (changelog of its README, November 2021 and January 2022).
    """
    return "lambda-ssd" if raw["source_repo"].startswith("lambdal/") else "nvidia-ssd"


def _nvidia_bert(raw: Mapping[str, str], notes: str, precision: str) -> Recipe:
    """SQuAD: apex O2 with FusedAdam, or BertAdam in fp32. Pretraining: LAMB, many micro-steps."""
    half = _half(precision)
    pretraining = raw["optimizer"] == "LAMB"
    native_amp = pretraining and "older software" not in notes
    policy: PrecisionPolicy = ("amp" if native_amp else "half") if half else "fp32"
    gradient = 2 if policy == "half" else 4
    steps = re.search(r"steps (\d+)/(\d+)", notes) or re.search(r"accumulated batch/(\d+)", notes)
    accumulation = 1
    if pretraining:
        # "steps A/B (tf32/fp16)" names both; the older tables name neither, and any large count will do.
        accumulation = int(steps[(steps.lastindex or 1) if half else 1]) if steps else 128
    head: Head = "pretrain" if pretraining else "squad"
    size = _size(raw, 384)
    if pretraining and size == 512 and "older software" not in notes:
        size = BINNED_TOKENS
    optimizer: OptimizerKind = "lamb-fused"
    if not pretraining:
        optimizer = "adam-fused" if raw["optimizer"] == "FusedAdam" else "adam-bert"
    return Recipe(
        *(f"nvidia-bert-{head}", raw["model"], head, size, precision, policy, "math", False),
        *(optimizer, gradient, _batch(raw), accumulation),
        zeroes_gradients=optimizer == "adam-bert",
    )


def _torchvision(raw: Mapping[str, str], notes: str) -> Recipe:
    """Forward and backward at batch 12; half is model.half(). Two runs, two years apart."""
    precision = _precision(raw)
    policy: PrecisionPolicy = "half" if _half(precision) else "fp32"
    vintage = "torchvision-loop-2018" if "mean of 20 timed steps" in notes else "torchvision-loop"
    if raw["model"] not in CLASSIFIERS:
        raise RecipeUnknown(f"no recipe known for {raw['model']}")
    return Recipe(
        *(vintage, raw["model"], "classify", 224, precision, policy, "none", False),
        *("none", 2 if policy == "half" else 4, _batch(raw), 1),
        zeroes_gradients=True,
        busy_host=vintage == "torchvision-loop",
    )


def _neusight(raw: Mapping[str, str], notes: str) -> Recipe:
    """Forward and backward in true fp32; attention with its score matrix."""
    model, size = raw["model"], _size(raw)
    head: Head = "lm"
    if model.startswith("bert"):
        head = "squad"
    elif model not in DECODERS:
        raise RecipeUnknown(f"no recipe known for {model}")
    batch = _batch(raw)
    return Recipe(
        *("neusight", model, head, size, _precision(raw), "fp32", "math", False, "none", 4, batch, 1)
    )


def _foundry(raw: Mapping[str, str], notes: str) -> Recipe:
    """MPT under FSDP: bf16 compute, fp32 shards, fused attention; checkpointing as the notes say."""
    if raw["precision"] == "fp8":
        raise RecipeUnknown("fp8")
    accumulation = re.search(r"grad_accum=(\d+)", notes)
    return Recipe(
        *("llm-foundry", raw["model"], "lm", _size(raw), "bf16-amp", "half", "flash"),
        *("act_ckpt=True" in notes, "adam-loop", 2, _batch(raw)),
        int(accumulation[1]) if accumulation else 1,
    )


def _qwen(raw: Mapping[str, str], notes: str) -> Recipe:
    """Qwen's finetune.py: bf16, checkpointing, fused attention, 8 micro-steps, adapters of rank 64.

    All parameters train under DeepSpeed, whose Adam is fused.
    """
    base = re.match(r"qwen-[\d.]+b", raw["model"])
    if base is None:
        raise RecipeUnknown(f"no recipe known for {raw['model']}")
    quantised = "q-lora" in raw["model"]
    adapter = None
    method = "full"
    if "lora" in raw["model"]:
        emb = "emb" in raw["model"]
        adapter = Adapter(64, "all", emb, quantised)
        method = "qlora" if quantised else "lora-emb" if emb else "lora"
    return Recipe(
        *(f"qwen-{method}", base[0], "lm", _size(raw), _precision(raw), "half", "flash", True),
        *("adam-loop" if adapter else "adam-fused", 2, _batch(raw), 8, adapter),
    )


def _litgpt(raw: Mapping[str, str], notes: str) -> Recipe:
    """LoRA on the attention projections, rank 8, no checkpointing, on Alpaca."""
    if raw["model"] != "stablelm-alpha-3b-lora":
        raise RecipeUnknown(f"no recipe known for {raw['model']}")
    quantised = raw["precision"].startswith("nf4")
    adapter = Adapter(8, "attention", False, quantised)
    name = "litgpt-qlora" if quantised else "litgpt-lora"
    return Recipe(
        *(name, "stablelm-alpha-3b", "lm", ALPACA_TOKENS, _precision(raw), "half", "flash"),
        *(False, "adam-loop", 2, _batch(raw), 1, adapter),
    )


def _t5(raw: Mapping[str, str], notes: str) -> Recipe:
    precision = _precision(raw)
    accumulation = re.search(r"grad_accum=(\d+)", notes)
    policy: PrecisionPolicy = "amp" if _half(precision) else "fp32"
    return Recipe(
        *("hf-translation", "t5-base", "translate", T5_TOKENS, precision, policy, "math", False),
        *("adam-loop", 4, _batch(raw), int(accumulation[1]) if accumulation else 1),
        zeroes_gradients=True,
    )


def _mlperf(raw: Mapping[str, str], notes: str) -> Recipe:
    """Tuned submissions: unpadded BERT with fused attention; MXNet ResNet-50 in NHWC."""
    precision = _precision(raw)
    if raw["model"] == "resnet50":
        return Recipe(
            *("mlperf-resnet", "resnet50", "classify", 224, precision, "half", "none", False),
            *("sgd-momentum", 2, _batch(raw), 1),
            layout="nhwc",
        )
    return Recipe(
        *("mlperf-bert", "bert-large", "pretrain", UNPADDED_TOKENS, precision, "half", "math", False),
        *("lamb-fused", 2, _batch(raw), 1),
    )


def _nanogpt(raw: Mapping[str, str], notes: str) -> Recipe:
    accumulation = re.search(r"grad_accum (\d+)", notes)
    return Recipe(
        *("nanogpt-compiled", "gpt2-124m", "lm", _size(raw), _precision(raw), "amp", "flash", False),
        *("adam-fused", 4, _batch(raw), int(accumulation[1]) if accumulation else 1),
        compiled=True,
    )


def _run_mlm(raw: Mapping[str, str], notes: str) -> Recipe:
    return Recipe(
        *("hf-mlm", "bert-large", "mlm", _size(raw), _precision(raw), "fp32", "math", False),
        *("adam-loop", 4, _batch(raw), 1),
        zeroes_gradients=True,
    )


def _megatron(raw: Mapping[str, str], notes: str) -> Recipe:
    return Recipe(
        *("megatron", "gpt-126m-megatron", "lm", _size(raw), _precision(raw), "half", "math", True),
        *("adam-fused", 2, _batch(raw), 1),
    )


_BY_SOURCE = (
    ("lambdal/deeplearning-benchmark", _nvidia_examples),
    ("NVIDIA/DeepLearningExamples", _nvidia_examples),
    ("ryujaehun/pytorch-gpu-benchmark", _torchvision),
    ("sitar-lab/NeuSight", _neusight),
    ("mosaicml/llm-foundry", _foundry),
    ("QwenLM/Qwen", _qwen),
    ("Lightning-AI/litgpt", _litgpt),
    ("huggingface/transformers", _t5),
    ("mlcommons/", _mlperf),
    ("karpathy/nanoGPT", _nanogpt),
    ("mli/transformers-benchmarks", _run_mlm),
    ("aliyun/SimAI", _megatron),
)
