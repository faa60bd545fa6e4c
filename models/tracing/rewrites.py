"""What CUDA would choose, imposed on the meta device while a step is traced.

On meta, attention falls to the math path, dropout to three kernels and autocast does not exist. Replaced by
attribute, not by mode: function modes are not active inside the autograd engine, so a checkpointed segment
would be recomputed with other kernels than it ran with. Imports torch: imported inside functions only.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from ..errors import BadConfig
from . import library_kernels
from .autocast import Autocast
from .recorder import Recorder
from .step_trace import TraceVariant

AUTOCAST_DTYPE = torch.bfloat16


class CudaChoices:
    """The rewrites of one variant: `imposed()` around all that is traced, `autocast()` around forward."""

    def __init__(self, variant: TraceVariant, recorder: Recorder, fused_dropout: bool = True) -> None:
        self.variant = variant
        self.recorder = recorder
        self.fused_dropout = fused_dropout
        self.applied: set[str] = set()
        self.checkpointed = False
        self._autocast: Autocast | None = None
        self._original_checkpoint: Callable[..., Any] = torch.utils.checkpoint.checkpoint

    @contextlib.contextmanager
    def imposed(self) -> Iterator[None]:
        """Replace torch's choosers for the length of the block."""
        functional = torch.nn.functional
        replacements: list[tuple[Any, str, Any]] = [
            (functional, "scaled_dot_product_attention", self.attention),
            (torch.utils.checkpoint, "checkpoint", self.checkpoint),
            # nn.LSTM refuses mixed types unless it sees autocast
            (torch._C, "_is_any_autocast_enabled", lambda: self.variant.precision_policy == "amp"),
        ]
        for owner in (functional, torch):
            for name in ("grouped_mm", "_grouped_mm"):
                replacements.append((owner, name, self.grouped_mm))
        for kind in library_kernels.GATES:
            replacements.append((torch._VF, kind, functools.partial(self.recurrent, kind)))
        if self.fused_dropout:
            replacements.append((functional, "dropout", self.dropout))
        # Python functionals hand themselves to function modes whole; look through them to the kernels inside.
        for module in (functional, torch.functional):
            for name in ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"):
                replacements.append((module, name, _no_torch_function))
        modeling = _loaded("transformers.modeling_utils")
        if modeling is not None and hasattr(modeling, "checkpoint"):
            replacements.append((modeling, "checkpoint", self.checkpoint))
        with contextlib.ExitStack() as stack:
            for owner, name, replacement in replacements:
                if name in vars(owner):
                    stack.callback(setattr, owner, name, getattr(owner, name))
                elif hasattr(owner, name):  # made up on the spot by the owner's __getattr__
                    stack.callback(delattr, owner, name)
                else:
                    continue
                setattr(owner, name, replacement)
            yield

    @contextlib.contextmanager
    def autocast(self) -> Iterator[None]:
        """The autocast region of one forward; nothing unless the policy is "amp"."""
        if self.variant.precision_policy != "amp":
            yield
            return
        self.applied.add("autocast: CUDA's cast lists, weight copies cached for the forward (bfloat16)")
        self._autocast = Autocast(AUTOCAST_DTYPE, on_copy=self._file_copy)
        try:
            with self._autocast:
                yield
        finally:
            self._autocast = None

    def _file_copy(self, copy: torch.Tensor) -> None:
        self.recorder.categorise([copy], "low_precision_copies")

    def checkpoint(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """torch.utils.checkpoint, non-reentrant, whose recomputation runs under autocast again."""
        self.applied.add("activation checkpointing: non-reentrant, autocast re-entered on recomputation")
        self.checkpointed = True
        kwargs.update(use_reentrant=False, preserve_rng_state=False)
        if self._autocast is not None:
            kwargs["context_fn"] = lambda: (
                contextlib.nullcontext(),
                Autocast(AUTOCAST_DTYPE, keep_copies=False),
            )
        return self._original_checkpoint(function, *args, **kwargs)

    def grouped_mm(
        self, mat_a: torch.Tensor, mat_b: torch.Tensor, offs: Any = None, **_: Any
    ) -> torch.Tensor:
        """Experts' matmul. Not in CUDA's cast lists, so autocast leaves its types alone."""
        self.applied.add("experts: one grouped matmul for all")
        return library_kernels.grouped_mm(self.recorder, mat_a, mat_b)

    def recurrent(
        self,
        kind: str,
        x: torch.Tensor,
        initial: Any,
        weights: Any,
        has_biases: Any,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool = False,
    ) -> tuple[torch.Tensor, ...]:
        """cuDNN's call for a whole recurrent stack; under autocast it runs on 16-bit copies."""
        if not isinstance(has_biases, bool):  # the overload for packed sequences
            raise BadConfig(
                f"packed sequences in nn.{kind.upper()} depend on the data; trace it on padded tensors"
            )
        self.applied.add(
            f"{kind}: one library call for all layers and time steps; its reserve is an assumption"
        )
        initial = initial if isinstance(initial, tuple | list) else (initial,)
        if self.variant.precision_policy == "amp":
            lower = self._autocast.lower if self._autocast is not None else _to_low
            x, initial, weights = lower(x), lower(tuple(initial)), lower(tuple(weights))
        return library_kernels.recurrent(self.recorder, kind, x, initial, weights, bidirectional, batch_first)

    def dropout(
        self, input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> torch.Tensor:
        """CUDA's fused dropout: one kernel, a one-byte mask saved."""
        if p == 0.0 or not training:
            return input
        self.applied.add("dropout: one fused kernel with a one-byte mask")
        dropped: torch.Tensor = torch.ops.aten.native_dropout(input, p, True)[0]
        return input.copy_(dropped) if inplace else dropped

    def attention(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        """scaled_dot_product_attention as a card with `variant.attention_kernel` runs it."""
        if self._autocast is not None:
            query, key, value = (self._autocast.lower(tensor) for tensor in (query, key, value))
        elif self.variant.precision_policy == "amp":  # recomputation: the region is over, its dtype is not
            query, key, value = (_to_low(tensor) for tensor in (query, key, value))
        if query.dim() == 3:
            query, key, value = (tensor.unsqueeze(0) for tensor in (query, key, value))
            return self.attention(
                query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa
            ).squeeze(0)
        kernel, reason = self.choose_attention(query, key, value, attn_mask, enable_gqa)
        self.applied.add(f"attention: {kernel} kernel{f' ({reason})' if reason else ''}")
        if kernel == "flash":
            return _flash(query, key, value, dropout_p, is_causal, scale)
        if kernel == "efficient":
            return _efficient(query, key, value, attn_mask, dropout_p, is_causal, scale)
        return self._math(query, key, value, attn_mask, dropout_p, is_causal, scale)

    def choose_attention(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None,
        grouped: bool,
    ) -> tuple[str, str]:
        """(kernel, why it is not the one asked for). Source: torch's sdp_utils rules and the SDPA docs."""
        wanted = self.variant.attention_kernel
        if wanted in ("math", "none"):
            return "math", ""
        reason = ""
        if wanted == "flash":
            if query.dtype not in (torch.float16, torch.bfloat16):
                reason = "flash takes 16-bit types only"
            elif mask is not None:
                reason = "flash takes no mask"
            elif query.size(-1) != value.size(-1):
                reason = "flash needs equal head sizes"
            elif query.size(-1) > 256:
                reason = "flash takes head sizes up to 256"
            else:
                return "flash", ""
        if grouped and query.size(-3) != key.size(-3):
            return "math", (reason + "; " if reason else "") + "only flash and math take grouped queries"
        return "efficient", reason

    def _math(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None,
        dropout_p: float,
        is_causal: bool,
        scale: float | None,
    ) -> torch.Tensor:
        repeats = query.size(-3) // key.size(-3)
        if repeats > 1:
            key, value = key.repeat_interleave(repeats, -3), value.repeat_interleave(repeats, -3)
        scores = query @ key.transpose(-2, -1) * (query.size(-1) ** -0.5 if scale is None else scale)
        if is_causal:
            rows, columns = query.size(-2), key.size(-2)
            causal = torch.ones(rows, columns, dtype=torch.bool, device=query.device).tril()
            scores = scores.masked_fill(causal.logical_not(), float("-inf"))
        if mask is not None:
            scores = (
                scores.masked_fill(mask.logical_not(), float("-inf"))
                if mask.dtype == torch.bool
                else scores + mask
            )
        weights = scores.softmax(-1, dtype=torch.float32).to(value.dtype)
        return nn.functional.dropout(weights, dropout_p) @ value


def _flash(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
) -> torch.Tensor:
    head = query.size(-1)
    scale = head**-0.5 if scale is None else scale
    if head % 8:  # torch pads the head to a multiple of 8 for flash
        query, key, value = (nn.functional.pad(t, (0, 8 - head % 8)) for t in (query, key, value))
    kernel = torch.ops.aten._scaled_dot_product_flash_attention
    out: torch.Tensor = kernel(query, key, value, dropout_p, is_causal, scale=scale)[0]
    return out[..., :head] if head % 8 else out


def _efficient(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
) -> torch.Tensor:
    if mask is not None:
        if mask.dtype == torch.bool:  # the kernel takes an additive bias; torch converts a boolean mask
            additive = torch.zeros_like(mask, dtype=query.dtype)
            mask = additive.masked_fill_(mask.logical_not(), float("-inf"))
        mask = mask.to(query.dtype).expand(query.size(0), query.size(1), query.size(2), key.size(2))
    kernel = torch.ops.aten._scaled_dot_product_efficient_attention
    out: torch.Tensor = kernel(query, key, value, mask, True, dropout_p, is_causal, scale=scale)[0]
    return out


def _to_low(value: Any) -> Any:
    """What Autocast.lower does, after the region: a recomputation."""
    return Autocast(AUTOCAST_DTYPE, keep_copies=False).lower(value)


def _no_torch_function(*_: Any) -> bool:
    return False


def _loaded(name: str) -> Any:
    import sys

    return sys.modules.get(name)
