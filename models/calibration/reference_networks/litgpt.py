"""Lit-GPT of October 2023 as its fine-tuning scripts ran it: LoRA, LLaMA-Adapter and its second version.

One fused projection to queries, keys and values; LoRA's update of it goes through a grouped convolution and
is padded into place; the head and its loss run in chunks of 128 positions. Norms, rotation, cosine tables
and logits are fp32 in a 16-bit model, as there. bitsandbytes packs every linear layer, the head included.

Dimensions: B batch, T tokens, D width, H heads, S head size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...tracing import adapters
from ...tracing.step_trace import TraceVariant
from ...tracing.task import TrainingTask

RANK, DROPOUT = 8, 0.05  # of finetune/lora.py
PROMPT, FIRST_ADAPTED = 10, 2  # of adapter.Config
HEAD_CHUNK = 128


@dataclass(frozen=True, slots=True)
class Shape:
    """One model of lit_gpt/config.py. style: "llama" (RMS norm, gated unit) or "neox" (layer norm, GELU)."""

    style: str
    width: int
    layers: int
    heads: int
    groups: int
    inner: int
    vocabulary: int
    rotary: float
    bias: bool
    parallel: bool
    shared_norm: bool = False
    head_bias: bool = False


SHAPES: Mapping[str, Shape] = {
    "litgpt-phi-1.5": Shape("neox", 2048, 24, 32, 32, 8192, 51200, 0.5, True, True, True, True),
    "litgpt-stablelm-alpha-3b": Shape("neox", 4096, 16, 32, 32, 16384, 50688, 0.25, True, True),
    "litgpt-llama-2-7b": Shape("llama", 4096, 32, 32, 32, 11008, 32000, 1.0, False, False),
    "litgpt-llama-2-13b": Shape("llama", 5120, 40, 40, 40, 13824, 32000, 1.0, False, False),
    "litgpt-falcon-40b": Shape("neox", 8192, 60, 128, 8, 32768, 65024, 1.0, False, True),
}


class RmsNorm(nn.Module):
    """In fp32 whatever comes in."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, x_btd: Tensor) -> Tensor:
        wide_btd = x_btd.float()
        square = torch.mean(wide_btd * wide_btd, dim=-1, keepdim=True)
        normed_btd = wide_btd * torch.rsqrt(square + 1e-5)
        return (self.weight * normed_btd).to(x_btd.dtype)


class LoraQkv(nn.Module):
    """The fused projection with low-rank updates of queries and values, none of keys."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        size = shape.width // shape.heads
        self.width, self.keys = shape.width, shape.groups * size
        self.linear = nn.Linear(shape.width, shape.width + 2 * self.keys, bias=shape.bias)
        self.dropout = nn.Dropout(DROPOUT)
        self.lora_a = nn.Parameter(torch.empty(2 * RANK, shape.width))
        self.lora_b = nn.Parameter(torch.empty(self.width + self.keys, RANK))

    def forward(self, x_btd: Tensor) -> Tensor:
        pretrained = self.linear(x_btd)
        low_brt = functional.linear(self.dropout(x_btd), self.lora_a).transpose(-2, -1)
        update_bdt = self._conv(low_brt, self.lora_b.unsqueeze(-1))
        result: Tensor = pretrained + self._padded(update_bdt.transpose(-2, -1)) * 2.0
        return result

    def _conv(self, low_brt: Tensor, weight: Tensor) -> Tensor:
        if self.keys == self.width:
            return functional.conv1d(low_brt, weight, groups=2)
        weights = torch.split(weight, [self.width, self.keys])
        parts = zip(low_brt.chunk(2, 1), weights, strict=True)
        return torch.cat([functional.conv1d(low, part) for low, part in parts], 1)

    def _padded(self, update_btd: Tensor) -> Tensor:
        update_tbd = update_btd.transpose(0, 1)
        whole = self.width + 2 * self.keys
        padded = update_tbd.new_zeros((*update_tbd.shape[:-1], whole))
        columns = torch.zeros(update_tbd.shape[-1], dtype=torch.long, device=update_tbd.device)
        flat = update_tbd.reshape(-1, update_tbd.shape[-1])
        padded = padded.view(-1, whole).index_copy(1, columns, flat)
        return padded.view(*update_tbd.shape[:-1], whole).transpose(0, 1)


class ScaledLinear(nn.Module):
    """LLaMA-Adapter v2: a trained bias and scale on the output of every linear layer."""

    def __init__(self, inputs: int, outputs: int, bias: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=bias)
        self.adapter_bias = nn.Parameter(torch.empty(outputs))
        self.adapter_scale = nn.Parameter(torch.empty(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.adapter_scale * (self.linear(x) + self.adapter_bias)
        return y


def _linear(method: str, inputs: int, outputs: int, bias: bool) -> nn.Module:
    if method == "adapter_v2":
        return ScaledLinear(inputs, outputs, bias)
    return nn.Linear(inputs, outputs, bias=bias)


class Attention(nn.Module):
    def __init__(self, shape: Shape, method: str, index: int) -> None:
        super().__init__()
        self.shape, self.size = shape, shape.width // shape.heads
        outputs = (shape.heads + 2 * shape.groups) * self.size
        self.attn = LoraQkv(shape) if method == "lora" else _linear(method, shape.width, outputs, shape.bias)
        self.proj = _linear(method, shape.width, shape.width, shape.bias)
        self.prompted = method != "lora" and index >= FIRST_ADAPTED
        if self.prompted:
            self.adapter_wte = nn.Embedding(PROMPT, shape.width)
            self.gating_factor = nn.Parameter(torch.empty(1, 1, shape.heads, 1))

    def split(self, qkv: Tensor, batch: int, time: int) -> tuple[Tensor, Tensor, Tensor]:
        """(B, T, …) -> queries, keys and values (B, H, T, S), keys and values repeated for their group."""
        groups, each = self.shape.groups, self.shape.heads // self.shape.groups
        parts = qkv.view(batch, time, groups, each + 2, self.size).permute(0, 2, 3, 1, 4)
        query, key, value = torch.split(parts, [each, 1, 1], dim=2)
        if each > 1:
            key = key.expand(batch, groups, each, time, self.size)
            value = value.expand(batch, groups, each, time, self.size)
        flat = (batch, -1, time, self.size)
        return query.reshape(flat), key.reshape(flat), value.reshape(flat)

    def forward(self, x_btd: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, time, width = x_btd.shape
        query, key, value = self.split(self.attn(x_btd), batch, time)
        query, key = (self._rotated(part, cos, sin) for part in (query, key))
        seen = _attend(query, key, value, None)
        if self.prompted:
            seen = seen + self.gating_factor * self._prompt(query, time)
        y: Tensor = self.proj(seen.reshape(batch, time, width))
        return y

    def _rotated(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        turned, rest = x[..., : cos.shape[-1]], x[..., cos.shape[-1] :]
        half = turned.size(-1) // 2
        swapped = torch.cat((-turned[..., half:], turned[..., :half]), dim=-1)
        return torch.cat((((turned * cos) + (swapped * sin)).to(x.dtype), rest), dim=-1)

    def _prompt(self, query: Tensor, time: int) -> Tensor:
        prefix = self.adapter_wte.weight.reshape(1, PROMPT, self.shape.width)
        _, key, value = self.split(self.attn(prefix), 1, PROMPT)
        mask = torch.ones(time, PROMPT, dtype=torch.bool, device=query.device)
        batch = query.shape[0]
        return _attend(query, key.expand(batch, -1, -1, -1), value.expand(batch, -1, -1, -1), mask)


def _attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    mixed = functional.scaled_dot_product_attention(query, key, value, mask, 0.0, mask is None)
    return mixed.transpose(1, 2)


class Mlp(nn.Module):
    def __init__(self, shape: Shape, method: str) -> None:
        super().__init__()
        self.gated = shape.style == "llama"
        self.fc_1 = _linear(method, shape.width, shape.inner, shape.bias)
        if self.gated:
            self.fc_2 = _linear(method, shape.width, shape.inner, shape.bias)
        self.proj = _linear(method, shape.inner, shape.width, shape.bias)

    def forward(self, x_btd: Tensor) -> Tensor:
        if self.gated:
            first, second = self.fc_1(x_btd), self.fc_2(x_btd)
            x_btd = functional.silu(first) * second
        else:
            x_btd = functional.gelu(self.fc_1(x_btd))
        y: Tensor = self.proj(x_btd)
        return y


class Block(nn.Module):
    def __init__(self, shape: Shape, method: str, index: int) -> None:
        super().__init__()
        self.shape = shape
        norm = RmsNorm if shape.style == "llama" else nn.LayerNorm
        self.norm_1 = norm(shape.width)
        self.attn = Attention(shape, method, index)
        if not shape.shared_norm:
            self.norm_2 = norm(shape.width)
        self.mlp = Mlp(shape, method)

    def forward(self, x_btd: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        seen = self.norm_1(x_btd)
        h = self.attn(seen, cos, sin)
        if self.shape.parallel:
            seen = seen if self.shape.shared_norm else self.norm_2(x_btd)
            x_btd = self.mlp(seen) + h + x_btd
        else:
            x_btd = h + x_btd
            x_btd = self.mlp(self.norm_2(x_btd)) + x_btd
        return x_btd


class LitGpt(nn.Module):
    """One model under one method: "lora", "adapter", "adapter_v2"; only the method's weights are trained."""

    def __init__(self, shape: Shape, method: str) -> None:
        super().__init__()
        self.shape = shape
        self.checkpointing = False
        self.lm_head = _linear(method, shape.width, shape.vocabulary, shape.head_bias)
        self.wte = nn.Embedding(shape.vocabulary, shape.width)
        self.blocks = nn.ModuleList(Block(shape, method, index) for index in range(shape.layers))
        self.ln_f = (RmsNorm if shape.style == "llama" else nn.LayerNorm)(shape.width)
        for name, parameter in self.named_parameters():
            parameter.requires_grad_(any(part in name for part in TRAINED[method]))

    def gradient_checkpointing_enable(self) -> None:
        """Whole blocks, as the FSDP strategy of finetune/lora.py wraps them."""
        self.checkpointing = True

    def forward(self, tokens_bt: Tensor) -> list[Tensor]:
        cos, sin = self._tables(tokens_bt)
        x_btd = self.wte(tokens_bt)
        for block in self.blocks:
            if self.checkpointing:
                x_btd = torch.utils.checkpoint.checkpoint(block, x_btd, cos, sin, use_reentrant=False)
            else:
                x_btd = block(x_btd, cos, sin)
        x_btd = self.ln_f(x_btd)
        parts = torch.split(x_btd, HEAD_CHUNK, dim=1)
        logits = [self.lm_head(part) for part in parts]
        return [part.float() for part in logits]  # Fabric hands outputs back in torch's default type

    def _tables(self, tokens_bt: Tensor) -> tuple[Tensor, Tensor]:
        size = int(self.shape.rotary * (self.shape.width // self.shape.heads))
        table = torch.empty(tokens_bt.shape[1], size, device=tokens_bt.device)
        return table, torch.empty_like(table)


TRAINED: Mapping[str, tuple[str, ...]] = {
    "lora": ("lora_",),
    "adapter": ("adapter_wte", "gating_factor"),
    "adapter_v2": (
        *("adapter_wte", "gating_factor", "adapter_scale", "adapter_bias"),
        *("norm_1", "norm_2", "ln_f"),
    ),
}


def build(model: str, head: str) -> LitGpt:
    """head: method, then "+" and a quantisation where there is one: "lora+nf4-dq"."""
    method, _, quantisation = head.partition("+")
    network = LitGpt(SHAPES[model], method)
    if quantisation:
        network.to(torch.bfloat16)
        # The checkpoints hold fp16 and bitsandbytes unpacks to what it packed; then comes the cast to bf16.
        adapters.pack(network, quantisation, keeps_input=True, packed_from=torch.float16)
    return network


def wrapped_parameters(model: str, head: str) -> int:
    """Weights in the blocks, which FSDP wraps one by one; embedding, head and last norm stay outside. [1]"""
    with torch.device("meta"):
        network = build(model, head)
    return sum(parameter.numel() for parameter in network.blocks.parameters())


def task(model: str, head: str, size: int | None) -> TrainingTask:
    """The first micro-step of fine-tuning: the longest sample, of `size` tokens."""
    length = size or 1024

    def make(_: TraceVariant) -> nn.Module:
        return build(model, head)

    def inputs(batch: int) -> Mapping[str, Tensor]:
        tokens = torch.zeros(batch, length, dtype=torch.long, device="meta")
        return {"tokens": tokens, "targets": torch.zeros_like(tokens)}

    return TrainingTask(model, make, inputs, _loss, length)


class _Held(torch.autograd.Function):
    """The loss as it is; what the training loop still has a name for lives until backward is done."""

    @staticmethod
    def forward(ctx: Any, loss: Tensor, named: Any) -> Tensor:
        ctx.named = named
        return loss.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        return gradients[0], None


def _loss(module: Any, given: Mapping[str, Tensor]) -> Tensor:
    """Cross-entropy chunk by chunk; the list of logits lives until backward is done."""
    logits = module(given["tokens"])
    logits[-1] = logits[-1][..., :-1, :]
    targets = given["targets"][..., 1:]
    flat = [chunk.reshape(-1, chunk.size(-1)) for chunk in logits]
    chunks = torch.split(targets, logits[0].size(1), dim=1)
    wanted = [chunk.reshape(-1) for chunk in chunks]
    losses = [
        functional.cross_entropy(chunk, target, ignore_index=-1, reduction="none")
        for chunk, target in zip(flat, wanted, strict=True)
    ]
    loss = torch.cat(losses).sum() / targets.numel()
    held: Tensor = _Held.apply(loss, logits)  # type: ignore[no-untyped-call]
    return held
