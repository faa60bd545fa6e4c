"""What ran in the published rows, as tasks the tracer can take: one builder for each model family.

Differences from the zoo are the point: the benchmark scripts of 2019-2022 kept the score matrix of attention
in memory, BERT pretraining runs its head on 15 % of the positions only, and decoders are traced at two depths
and scaled, since all their layers are alike. Needs torch and transformers; planning imports none of this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..tracing.task import TrainingTask

if TYPE_CHECKING:
    from torch import Tensor, nn

# Share of positions that masked language modelling predicts. Source: Devlin et al. 2018.
MASKED_SHARE = 0.15


@dataclass(frozen=True, slots=True)
class DecoderShape:
    """One decoder-only language model. kind: "gpt2" (GELU spelled out in eight ops),
    "gpt2-fused" (one op), "mpt", "qwen" or "neox"."""

    kind: str
    width: int
    layers: int
    heads: int
    inner: int
    vocabulary: int


# Sources: model cards and configs of the published checkpoints; llm-foundry scripts/train/yamls/pretrain.
DECODERS: Mapping[str, DecoderShape] = {
    "gpt2-124m": DecoderShape("gpt2-fused", 768, 12, 12, 3072, 50257),
    "gpt-126m-megatron": DecoderShape("gpt2-fused", 768, 12, 12, 3072, 51200),
    "gpt2-large": DecoderShape("gpt2", 1280, 36, 20, 5120, 50257),
    # The GPT-3 paper gives XL 24 heads of 128 and a width of 2048, which do not agree; a module needs
    # width = heads x size, and NeuSight's times are those of the wider model.
    "gpt3-xl-1.3b": DecoderShape("gpt2", 3072, 24, 24, 12288, 50257),
    "gpt3-2.7b": DecoderShape("gpt2", 2560, 32, 32, 10240, 50257),
    "opt-1.3b": DecoderShape("gpt2", 2048, 24, 32, 8192, 50272),
    "mpt-125m": DecoderShape("mpt", 768, 12, 12, 3072, 50368),
    "mpt-350m": DecoderShape("mpt", 1024, 24, 16, 4096, 50368),
    "mpt-760m": DecoderShape("mpt", 1536, 24, 12, 6144, 50368),
    "mpt-1b": DecoderShape("mpt", 2048, 24, 16, 8192, 50368),
    "mpt-3b": DecoderShape("mpt", 2560, 32, 20, 10240, 50368),
    "mpt-7b": DecoderShape("mpt", 4096, 32, 32, 16384, 50368),
    "mpt-13b": DecoderShape("mpt", 5120, 40, 40, 20480, 50368),
    "mpt-30b": DecoderShape("mpt", 7168, 48, 56, 28672, 50368),
    "mpt-70b": DecoderShape("mpt", 8192, 80, 64, 32768, 50368),
    "qwen-1.8b": DecoderShape("qwen", 2048, 24, 16, 5504, 151936),
    "qwen-7b": DecoderShape("qwen", 4096, 32, 32, 11008, 151936),
    "qwen-14b": DecoderShape("qwen", 5120, 40, 40, 13696, 152064),
    "qwen-72b": DecoderShape("qwen", 8192, 80, 64, 24576, 152064),
    "stablelm-alpha-3b": DecoderShape("neox", 4096, 16, 32, 16384, 50688),
}
TRACED_DEPTHS = (2, 4)

# Classifiers of reference_networks: model -> (module, function).
CLASSIFIERS: Mapping[str, tuple[str, str]] = {
    "resnet18": ("resnet", "resnet18"),
    "resnet50": ("resnet", "resnet50"),
    "resnet152": ("resnet", "resnet152"),
    "resnext50-32x4d": ("resnet", "resnext50_32x4d"),
    "resnext101-32x4d": ("resnet", "resnext101_32x4d"),
    "wide-resnet50-2": ("resnet", "wide_resnet50_2"),
    "vgg16": ("plain_cnn", "vgg16"),
    "squeezenet1-1": ("plain_cnn", "squeezenet1_1"),
    "densenet121": ("plain_cnn", "densenet121"),
    "mobilenet-v2": ("mobile_cnn", "mobilenet_v2"),
    "mnasnet1-0": ("mobile_cnn", "mnasnet1_0"),
    "shufflenet-v2-x1-0": ("mobile_cnn", "shufflenet_v2_x1_0"),
}
BERTS: Mapping[str, tuple[int, int, int]] = {"bert-base": (768, 12, 12), "bert-large": (1024, 24, 16)}

# Words a translation batch holds in each sentence. WMT16 en-de has 25 words a side on average, about 30 word
# pieces; batches are bucketed by length, so little is padded. Ours, not the sources'.
TRANSLATION_TOKENS = 30
# T5 rows: sentences of some 45 pieces, padded to the longest of 16. Ours, not the source's.
T5_TOKENS = 96


def task(model: str, head: str, size: int | None, depth: int | None = None) -> TrainingTask:
    """The task of `model`; head: "squad", "pretrain", "mlm", "lm", "classify", "detect" or "translate".

    size: tokens or pixels. depth: layers, for decoders, instead of the model's own.
    """
    if model in BERTS:
        return _bert(model, head, size or 384)
    if model in DECODERS:
        return _decoder(model, size or 1024, depth or DECODERS[model].layers)
    if model in CLASSIFIERS:
        return _classifier(model, size or 224)
    plain: Mapping[str, Callable[[], TrainingTask]] = {
        "ssd300-resnet50": _ssd,
        "gnmt-v2": _gnmt,
        "transformer-big-wmt": _transformer_big,
        "t5-base": _t5,
    }
    return plain[model]()


def _transformers() -> Any:
    """The library, untyped: its models are built from data here."""
    import transformers

    return transformers


def _ids(*shape: int) -> Tensor:
    import torch

    return torch.zeros(*shape, dtype=torch.long, device="meta")


def _task(
    name: str,
    build: Callable[[], Any],
    inputs: Callable[[int], Mapping[str, Tensor]],
    loss: Callable[[nn.Module, Mapping[str, Tensor]], Tensor],
    size: int | None,
) -> TrainingTask:
    return TrainingTask(name, lambda variant: build(), inputs, loss, size)


def _own_loss(module: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
    loss: Tensor = module(**inputs).loss
    return loss


def _token_loss(logits_btv: Tensor, labels_bt: Tensor) -> Tensor:
    from torch.nn import functional

    return functional.cross_entropy(logits_btv.flatten(0, 1), labels_bt.flatten())


def _bert(model: str, head: str, size: int) -> TrainingTask:
    transformers = _transformers()

    width, layers, heads = BERTS[model]
    config = transformers.BertConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        attn_implementation="eager",
    )
    predicted = round(size * MASKED_SHARE)

    def build() -> Any:
        if head == "pretrain":
            return transformers.BertForPreTraining(config)
        if head == "mlm":
            return transformers.BertForMaskedLM(config)
        return transformers.BertForQuestionAnswering(config)

    def inputs(batch: int) -> Mapping[str, Tensor]:
        if head == "pretrain":
            return {"input_ids": _ids(batch, size), "labels": _ids(batch, predicted), "order": _ids(batch)}
        if head == "mlm":
            return {"input_ids": _ids(batch, size), "labels": _ids(batch, size)}
        return {
            "input_ids": _ids(batch, size),
            "start_positions": _ids(batch),
            "end_positions": _ids(batch),
        }

    def masked_loss(module: Any, given: Mapping[str, Tensor]) -> Tensor:
        from torch.nn import functional

        words_btd, pooled_bd = module.bert(given["input_ids"], return_dict=False)[:2]
        words_bpd = words_btd[:, :predicted].contiguous()
        logits_bpv, order_b2 = module.cls(words_bpd, pooled_bd)
        order_loss = functional.cross_entropy(order_b2.float(), given["order"])
        return _token_loss(logits_bpv.float(), given["labels"]) + order_loss

    loss = masked_loss if head == "pretrain" else _own_loss
    return _task(model, build, inputs, loss, size)


def _decoder(model: str, size: int, depth: int) -> TrainingTask:
    shape = DECODERS[model]

    def inputs(batch: int) -> Mapping[str, Tensor]:
        if shape.kind in ("mpt", "qwen"):
            return {"tokens": _ids(batch, size), "next_tokens": _ids(batch, size)}
        return {"input_ids": _ids(batch, size), "labels": _ids(batch, size)}

    def plain_loss(module: Any, given: Mapping[str, Tensor]) -> Tensor:
        loss: Tensor = module.loss(given)
        return loss

    loss = plain_loss if shape.kind in ("mpt", "qwen") else _own_loss
    return _task(model, lambda: _decoder_module(shape, size, depth), inputs, loss, size)


def _decoder_module(shape: DecoderShape, size: int, depth: int) -> Any:
    from ..workloads.modules.mpt import Mpt
    from .reference_networks.qwen import Qwen

    transformers = _transformers()
    if shape.kind == "mpt":
        return Mpt(shape.vocabulary, shape.width, shape.heads, depth, size, "learned", True)
    if shape.kind == "qwen":
        return Qwen(shape.width, shape.heads, shape.inner, depth, shape.vocabulary)
    attention = {"attn_implementation": "sdpa", "use_cache": False}
    if shape.kind.startswith("gpt2"):
        return transformers.GPT2LMHeadModel(
            transformers.GPT2Config(
                n_embd=shape.width,
                n_layer=depth,
                n_head=shape.heads,
                n_inner=shape.inner,
                vocab_size=shape.vocabulary,
                n_positions=max(1024, size),
                activation_function="gelu_new" if shape.kind == "gpt2" else "gelu",
                **attention,
            )
        )
    return transformers.GPTNeoXForCausalLM(
        transformers.GPTNeoXConfig(
            hidden_size=shape.width,
            num_hidden_layers=depth,
            num_attention_heads=shape.heads,
            intermediate_size=shape.inner,
            vocab_size=shape.vocabulary,
            tie_word_embeddings=False,
            max_position_embeddings=max(8192, size),
            **attention,
        )
    )


def _images(batch: int, size: int) -> Mapping[str, Tensor]:
    import torch

    return {"images": torch.empty(batch, 3, size, size, device="meta"), "labels": _ids(batch)}


def _classifier(model: str, size: int) -> TrainingTask:
    from importlib import import_module

    from torch.nn import functional

    module, function = CLASSIFIERS[model]
    build: Callable[[], nn.Module] = getattr(
        import_module(f".reference_networks.{module}", __package__), function
    )

    def loss(network: nn.Module, given: Mapping[str, Tensor]) -> Tensor:
        return functional.cross_entropy(network(given["images"]), given["labels"])

    return _task(model, build, lambda batch: _images(batch, size), loss, size)


def _ssd() -> TrainingTask:
    from torch.nn import functional

    from .reference_networks.ssd300 import SSD300

    def loss(network: nn.Module, given: Mapping[str, Tensor]) -> Tensor:
        places, scores = network(given["images"])
        boxes = scores.new_zeros((scores.shape[0], scores.shape[2])).long()
        classes = functional.cross_entropy(scores.float(), boxes, reduction="none").sum(1)
        return (functional.smooth_l1_loss(places.float(), places.detach().float()) + classes).mean()

    return _task("ssd300-resnet50", SSD300, lambda batch: _images(batch, 300), loss, 300)


def _pairs(batch: int) -> Mapping[str, Tensor]:
    return {"source": _ids(batch, TRANSLATION_TOKENS), "target": _ids(batch, TRANSLATION_TOKENS)}


def _translation_loss(network: nn.Module, given: Mapping[str, Tensor]) -> Tensor:
    return _token_loss(network(given["source"], given["target"]).float(), given["target"])


def _gnmt() -> TrainingTask:
    from .reference_networks.translation import GNMT

    return _task("gnmt-v2", GNMT, _pairs, _translation_loss, None)


def _transformer_big() -> TrainingTask:
    from .reference_networks.translation import TransformerBig

    return _task("transformer-big-wmt", TransformerBig, _pairs, _translation_loss, None)


def _t5() -> TrainingTask:
    transformers = _transformers()

    config = transformers.T5Config(
        d_model=768, d_kv=64, d_ff=3072, num_layers=12, num_heads=12, vocab_size=32128, use_cache=False
    )
    config.decoder_start_token_id = config.pad_token_id = 0

    def inputs(batch: int) -> Mapping[str, Tensor]:
        return {"input_ids": _ids(batch, T5_TOKENS), "labels": _ids(batch, T5_TOKENS)}

    return _task(
        "t5-base", lambda: transformers.T5ForConditionalGeneration(config), inputs, _own_loss, T5_TOKENS
    )
