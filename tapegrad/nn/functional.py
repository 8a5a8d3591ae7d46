"""Functions of neural networks under PyTorch's names.

>>> import tapegrad.nn.functional as F, tapegrad as tg
>>> F.relu(tg.tensor([-1.0, 2.0]))
tensor([0., 2.])
"""

from typing import Any

# fmt: off
# isort: off
from tapegrad.base.missing_names import missing
from tapegrad.base.public_names import dir_of
from tapegrad.functions.activations import hardshrink, prelu
from tapegrad.functions.arithmetic import softplus
from tapegrad.functions.elementwise import sigmoid, tanh
from tapegrad.functions.tiling import pad
from tapegrad.nn.activations import (
    celu, celu_, elu, elu_, gelu, glu, gumbel_softmax, hardsigmoid, hardswish, hardtanh, hardtanh_,
    leaky_relu, leaky_relu_, log_softmax, logsigmoid, mish, relu, relu6, relu_, rrelu, rrelu_, selu,
    selu_, silu, softmax, softmin, softshrink, softsign, tanhshrink, threshold, threshold_,
)
from tapegrad.nn.alignment_loss import ctc_loss
from tapegrad.nn.bags import embedding_bag
from tapegrad.nn.classification import (
    cross_entropy, multi_margin_loss, multilabel_margin_loss, multilabel_soft_margin_loss, nll_loss,
)
from tapegrad.nn.convolution import (
    conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d, fold, unfold,
)
from tapegrad.nn.distances import cosine_similarity, normalize, pairwise_distance, pdist
from tapegrad.nn.dropout import (
    alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout,
)
from tapegrad.nn.fractional_pooling import (
    fractional_max_pool2d, fractional_max_pool2d_with_indices, fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
)
from tapegrad.nn.grid_sampling import affine_grid, grid_sample
from tapegrad.nn.linear import bilinear, embedding, linear, one_hot, scaled_dot_product_attention
from tapegrad.nn.losses import (
    binary_cross_entropy, binary_cross_entropy_with_logits, cosine_embedding_loss,
    gaussian_nll_loss, hinge_embedding_loss, huber_loss, kl_div, l1_loss, margin_ranking_loss,
    mse_loss, poisson_nll_loss, smooth_l1_loss, soft_margin_loss, triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from tapegrad.nn.multi_head_attention import multi_head_attention_forward
from tapegrad.nn.normalization import (
    batch_norm, group_norm, instance_norm, layer_norm, local_response_norm, rms_norm,
)
from tapegrad.nn.pooling import (
    adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, adaptive_max_pool1d,
    adaptive_max_pool2d, adaptive_max_pool3d, avg_pool1d, avg_pool2d, avg_pool3d, lp_pool1d,
    lp_pool2d, lp_pool3d, max_pool1d, max_pool2d, max_pool3d, max_unpool1d, max_unpool2d,
    max_unpool3d,
)
from tapegrad.nn.pooling_places import (
    adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d_with_indices, max_pool1d_with_indices, max_pool2d_with_indices,
    max_pool3d_with_indices,
)
from tapegrad.nn.resampling import (
    channel_shuffle, interpolate, pixel_shuffle, pixel_unshuffle, upsample, upsample_bilinear,
    upsample_nearest,
)
# isort: on
# fmt: on

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "affine_grid", "alpha_dropout",
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm", "bilinear", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "celu", "celu_", "channel_shuffle", "conv1d", "conv2d",
    "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss",
    "cosine_similarity", "cross_entropy", "ctc_loss", "dropout", "dropout1d", "dropout2d",
    "dropout3d", "elu", "elu_", "embedding", "embedding_bag", "feature_alpha_dropout", "fold",
    "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices", "gaussian_nll_loss", "gelu", "glu", "grid_sample",
    "group_norm", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
    "hardtanh_", "hinge_embedding_loss", "huber_loss", "instance_norm", "interpolate", "kl_div",
    "l1_loss", "layer_norm", "leaky_relu", "leaky_relu_", "linear", "local_response_norm",
    "log_softmax", "logsigmoid", "lp_pool1d", "lp_pool2d", "lp_pool3d", "margin_ranking_loss",
    "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices", "max_pool3d",
    "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d", "max_unpool3d", "mish", "mse_loss",
    "multi_head_attention_forward", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "nll_loss", "normalize", "one_hot", "pad", "pairwise_distance",
    "pdist", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu", "relu6",
    "relu_", "rms_norm", "rrelu", "rrelu_", "scaled_dot_product_attention", "selu", "selu_",
    "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softplus",
    "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "threshold_",
    "triplet_margin_loss", "triplet_margin_with_distance_loss", "unfold", "upsample",
    "upsample_bilinear", "upsample_nearest",
]  # fmt: skip
__dir__ = dir_of(globals())


def __getattr__(name: str) -> Any:
    raise missing("module 'tapegrad.nn.functional'", name, __all__)
