"""Which class each aten op belongs to, and which byte rule it follows: data that op_rules.py reads.

Names are aten names without overload; in-place forms (`add_`) and `_foreach_` forms follow the plain one.
"""

from __future__ import annotations


def names(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


GEMM = names("mm addmm bmm baddbmm addbmm mv addmv dot _grouped_mm _scaled_mm _addmm_activation")
CONVOLUTION = names(
    "convolution _convolution cudnn_convolution convolution_backward convolution_overrideable "
    "convolution_backward_overrideable"
)
FUSED_ATTENTION = names(
    "_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention "
    "_scaled_dot_product_cudnn_attention _scaled_dot_product_flash_attention_for_cpu "
    "_scaled_dot_product_flash_attention_backward _scaled_dot_product_efficient_attention_backward "
    "_scaled_dot_product_cudnn_attention_backward _scaled_dot_product_flash_attention_for_cpu_backward"
)
BATCH_NORM = names(
    "native_batch_norm native_batch_norm_backward cudnn_batch_norm cudnn_batch_norm_backward "
    "_native_batch_norm_legit _native_batch_norm_legit_no_training _batch_norm_with_update "
    "batch_norm_backward"
)
# Kernels that reduce along a dimension, so they read their input more than once or synchronise in a block.
NORM = names(
    "native_layer_norm native_layer_norm_backward native_group_norm native_group_norm_backward "
    "_fused_rms_norm _fused_rms_norm_backward _softmax _softmax_backward_data _log_softmax "
    "_log_softmax_backward_data _safe_softmax softmax sum mean var std var_mean std_mean norm "
    "linalg_vector_norm logsumexp amax amin max min argmax argmin any all prod cumsum cumprod topk sort "
    "argsort histc bincount nll_loss_forward nll_loss_backward nll_loss2d_forward nll_loss2d_backward "
    "mse_loss mse_loss_backward smooth_l1_loss smooth_l1_loss_backward binary_cross_entropy "
    "binary_cross_entropy_backward binary_cross_entropy_with_logits max_pool2d_with_indices "
    "max_pool2d_with_indices_backward avg_pool1d avg_pool2d avg_pool2d_backward _adaptive_avg_pool2d "
    "_adaptive_avg_pool2d_backward adaptive_max_pool2d adaptive_max_pool2d_backward upsample_nearest2d "
    "upsample_nearest2d_backward upsample_bilinear2d upsample_bilinear2d_backward upsample_bicubic2d "
    "upsample_bicubic2d_backward sum_to_size"
)
EMBEDDING = names(
    "embedding embedding_dense_backward index index_select index_select_backward gather gather_backward take "
    "index_put _index_put_impl scatter scatter_add scatter_reduce index_add index_copy "
    "_embedding_bag _embedding_bag_dense_backward"
)
ELEMENTWISE = names(
    "add sub rsub mul div neg abs exp exp2 log log2 log1p expm1 sqrt rsqrt reciprocal pow square sin cos tan "
    "tanh sigmoid erf gelu relu silu mish elu softplus leaky_relu hardtanh hardswish hardsigmoid relu6 glu "
    "gelu_backward tanh_backward sigmoid_backward silu_backward threshold_backward hardswish_backward "
    "hardsigmoid_backward hardtanh_backward elu_backward leaky_relu_backward softplus_backward glu_backward "
    "mish_backward log_sigmoid_forward log_sigmoid_backward native_dropout native_dropout_backward "
    "bernoulli where masked_fill clamp clamp_min clamp_max clip maximum minimum eq ne lt le gt ge "
    "logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_not bitwise_xor isnan "
    "isinf isfinite floor ceil round trunc sign sgn fmod remainder floor_divide addcmul addcdiv lerp copy "
    "clone _to_copy cat stack constant_pad_nd reflection_pad1d reflection_pad2d roll flip repeat "
    "repeat_interleave tril triu fill zero zeros zeros_like ones ones_like full full_like new_zeros new_ones "
    "new_full arange linspace scalar_tensor eye rand rand_like randn randn_like randint normal uniform "
    "random slice_backward select_backward as_strided_scatter slice_scatter select_scatter "
    "unfold_backward diagonal_backward im2col col2im erfinv logit xlogy atan2 special_erf _euclidean_dist "
    "_cdist_forward pixel_shuffle pixel_unshuffle channel_shuffle one_hot nan_to_num polar view_as_complex"
)
# Give out memory without touching it.
ALLOCATIONS = names("empty empty_like empty_strided new_empty new_empty_strided empty_permuted resize")
# Write their output and read nothing (or a scalar).
WRITE_ONLY = names(
    "fill zero zeros zeros_like ones ones_like full full_like new_zeros new_ones new_full arange linspace "
    "eye rand rand_like randn randn_like randint bernoulli normal uniform random scalar_tensor copy"
)
# Read as many rows as they write, never the whole first argument.
GATHERS = names("embedding index index_select gather take")
# In-place scatters touch the rows given by their values; the rest of the destination stays as it is.
SCATTERS = names("index_put _index_put_impl scatter scatter_add scatter_reduce index_add index_copy")
# Most tensors per launch of CUDA's multi_tensor_apply by the number of tensor lists, and its chunking:
# 65,536 elements a chunk, 320 chunks a launch. Source: torch ATen/native/cuda/MultiTensorApply.cuh.
FOREACH_TENSORS_PER_LAUNCH = (110, 64, 48, 36, 30)
FOREACH_CHUNK_ELEMENTS = 65_536
FOREACH_CHUNKS_PER_LAUNCH = 320
