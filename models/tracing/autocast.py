"""CUDA's autocast, imposed on the meta device by a TorchFunctionMode (meta has no autocast key).

Lists: "CUDA Ops that can autocast to float16 / float32" of torch's autocast op reference (torch.amp docs).
Imports torch: only rewrites.py imports this module, inside functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .op_tables import names

LOWER_PRECISION = names(
    "__matmul__ __rmatmul__ addbmm addmm addmv addr baddbmm bmm chain_matmul linalg_multi_dot multi_dot "
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution conv_tbc gru_cell "
    "linear lstm_cell matmul mm mv prelu rnn_tanh_cell rnn_relu_cell einsum linalg_matmul linalg_vecdot"
)
FLOAT32 = names(
    "__pow__ __rdiv__ __rpow__ __rtruediv__ acos asin binary_cross_entropy_with_logits cosh "
    "cosine_embedding_loss cdist cosine_similarity cross_entropy_loss dist erfinv exp expm1 group_norm "
    "hinge_embedding_loss kl_div l1_loss layer_norm log log10 log1p log2 margin_ranking_loss mse_loss "
    "multilabel_margin_loss multi_margin_loss nll_loss nll_loss_nd nll_loss2d norm pdist poisson_nll_loss "
    "pow reciprocal renorm rms_norm rsqrt sinh smooth_l1_loss soft_margin_loss softplus tan "
    "triplet_margin_loss huber_loss logsumexp native_layer_norm linalg_vector_norm linalg_matrix_norm "
    "frobenius_norm nuclear_norm upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d "
    "upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d _upsample_nearest_exact1d "
    "_upsample_nearest_exact2d _upsample_nearest_exact3d _upsample_bilinear2d_aa _upsample_bicubic2d_aa"
)
# These take a dtype argument: CUDA's autocast passes float32 there, so no fp32 copy of the input is kept.
FLOAT32_BY_DTYPE = names("softmax log_softmax sum prod cumsum cumprod")
# Run in the widest type among their arguments.
WIDEST = names("addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put scatter_add tensordot")


class Autocast(TorchFunctionMode):
    """Cast arguments as torch.autocast("cuda", dtype) does.

    keep_copies: the weight cache of an autocast region; recomputation under checkpointing has none.
    on_copy: called with each low-precision copy of a weight.
    """

    def __init__(
        self,
        dtype: torch.dtype,
        keep_copies: bool = True,
        on_copy: Callable[[torch.Tensor], None] | None = None,
    ) -> None:
        super().__init__()
        self.dtype = dtype
        self._copies: dict[int, torch.Tensor] | None = {} if keep_copies else None
        self._on_copy = on_copy

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)  # type: ignore[no-untyped-call]
        if self._copies is not None:
            self._copies.clear()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in LOWER_PRECISION:
            args = tuple(self.lower(value) for value in args)
            kwargs = {key: self.lower(value) for key, value in kwargs.items()}
        elif name in FLOAT32:
            args = tuple(_raised(value) for value in args)
            kwargs = {key: _raised(value) for key, value in kwargs.items()}
        elif name in WIDEST and any(_is_single(value) for value in args):
            args = tuple(_raised(value) for value in args)
        elif name in FLOAT32_BY_DTYPE and args and _is_low(args[0]) and not _names_dtype(args, kwargs):
            kwargs = {**kwargs, "dtype": torch.float32}
        return func(*args, **kwargs)

    def lower(self, value: Any) -> Any:
        """The 16-bit form of an fp32 tensor (or of those in a list); weights once per region."""
        if isinstance(value, list | tuple):
            return type(value)(self.lower(item) for item in value)
        if not isinstance(value, torch.Tensor) or value.dtype is not torch.float32:
            return value
        if not (value.is_leaf and value.requires_grad):
            return value.to(self.dtype)
        copy = None if self._copies is None else self._copies.get(id(value))
        if copy is None:
            copy = value.to(self.dtype)
            if self._on_copy is not None:
                self._on_copy(copy)
            if self._copies is not None:
                self._copies[id(value)] = copy
        return copy


def _is_low(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16)


def _is_single(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype is torch.float32


def _names_dtype(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return kwargs.get("dtype") is not None or any(isinstance(value, torch.dtype) for value in args)


def _raised(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_raised(item) for item in value)
    return value.float() if _is_low(value) else value
