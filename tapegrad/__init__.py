"""tapegrad: automatic differentiation on a flat tape, for NumPy and Numba."""

import importlib as _importlib
import math as _math
import typing as _typing
import warnings as _warnings

# fmt: off
# isort: off
from tapegrad import autograd
from tapegrad.autograd.anomaly import is_anomaly_enabled
from tapegrad.autograd.grad_mode import (
    enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad,
    set_grad_enabled,
)
from tapegrad.base.deferred_names import deferred_names as _deferred_names
from tapegrad.base.devices import device
from tapegrad.base.dtypes import bool_ as bool
from tapegrad.base.dtypes import (
    can_cast, cdouble, cfloat, complex64, complex128, double, dtype, finfo, float16, float32,
    float64, get_default_dtype, half, iinfo, int8, int16, int32, int64, long, promote_types,
    set_default_dtype, short, uint8,
)
from tapegrad.base.public_names import dir_of as _dir_of
from tapegrad.base.size import Size
from tapegrad.functions.arithmetic import (
    add, addcdiv, addcmul, allclose, clamp, clip, div, divide, equal, isclose, isneginf, isposinf,
    lerp, pow, result_type, rsub, sign, sub, subtract, true_divide, where,
)
from tapegrad.functions.axis import log_softmax, logsumexp, softmax
from tapegrad.functions.complex_parts import (
    adjoint, complex, conj, conj_physical, imag, isreal, polar, real, sgn, view_as_complex,
    view_as_real,
)
from tapegrad.functions.creation import (
    arange, as_tensor, asarray, empty, empty_like, empty_strided, eye, from_dlpack, from_numpy,
    full, full_like, linspace, ones, ones_like, scalar_tensor, tensor, zeros, zeros_like,
)
from tapegrad.functions.deferred import deferred_functions as _deferred_functions
from tapegrad.functions.elementwise import (
    abs, absolute, acos, acosh, angle, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh,
    asin, asinh, atan, atan2, atanh, bitwise_and, bitwise_left_shift, bitwise_not, bitwise_or,
    bitwise_right_shift, bitwise_xor, ceil, copysign, cos, cosh, deg2rad, digamma, eq, erf, erfc,
    erfinv, exp, exp2, expm1, fix, floor, floor_divide, fmax, fmin, fmod, frac, gcd, ge, greater,
    greater_equal, gt, hypot, i0, igamma, igammac, isfinite, isinf, isnan, lcm, le, less,
    less_equal, lgamma, log, log1p, log2, log10, logaddexp, logaddexp2, logical_and, logical_not,
    logical_or, logical_xor, lt, maximum, minimum, mul, multiply, ne, neg, negative, nextafter,
    not_equal, rad2deg, reciprocal, relu, remainder, rsqrt, sigmoid, signbit, sin, sinc, sinh, sqrt,
    square, tan, tanh, trunc, xlogy,
)
from tapegrad.functions.indexing import (
    argwhere, gather, index_add, index_put, index_select, nonzero, scatter, scatter_add, take,
    take_along_dim,
)
from tapegrad.functions.masking import masked_fill, masked_select
from tapegrad.functions.methods import install as _install
from tapegrad.functions.products import bmm, dot, ger, inner, matmul, mm, mv, outer, vdot
from tapegrad.functions.reductions import (
    all, amax, amin, any, argmax, argmin, count_nonzero, cumsum, max, mean, min, nanmean, nansum,
    norm, prod, std, sum, var,
)
from tapegrad.functions.rounding import heaviside, nan_to_num, round
from tapegrad.functions.scans import argsort, cumprod, diff, logcumsumexp, sort
from tapegrad.functions.shapes import (
    broadcast_to, clone, flatten, flip, moveaxis, movedim, narrow, permute, ravel, reshape, select,
    squeeze, swapaxes, swapdims, t, transpose, unflatten, unsqueeze,
)
from tapegrad.numpy_face import install as _install_numpy_face
from tapegrad.parallel.large_elementwise import get_num_threads, set_num_threads
from tapegrad.tape.records import Record
from tapegrad.tape.tape import Tape
from tapegrad.tensor import Tensor
# isort: on
# fmt: on

if _typing.TYPE_CHECKING:  # what `__getattr__` loads when it is first asked for
    # fmt: off
    # isort: off
    from tapegrad import (
        array_api, compat, cuda, distributed, fft, func, linalg, nn, optim, optimize, scipy, show,
        special,
    )
    from tapegrad.base.printing import get_printoptions, printoptions, set_printoptions
    from tapegrad.compiler.front.jit import jit
    from tapegrad.functions.activations import hardshrink, prelu
    from tapegrad.functions.added_products import addbmm, addmm, addmv, addmv_, addr, baddbmm
    from tapegrad.functions.calculus import cumulative_trapezoid, gradient, trapezoid, trapz
    from tapegrad.functions.complex_parts import conj_physical_
    from tapegrad.functions.compositions import (
        atleast_1d, atleast_2d, atleast_3d, broadcast_shapes, broadcast_tensors, clamp_max,
        clamp_max_, clamp_min, clamp_min_, detach, detach_, diagflat, dsplit, fliplr, flipud,
        hsplit, index_copy, index_fill, index_put_, is_complex, is_floating_point, is_inference,
        is_tensor, numel, positive, std_mean, threshold, threshold_, unravel_index, var_mean,
        vsplit,
    )
    from tapegrad.functions.contractions import cross, diag_embed, einsum, kron, tensordot, trace
    from tapegrad.functions.diagonals import (
        block_diag, diag, diagonal, tril, tril_indices, triu, triu_indices,
    )
    from tapegrad.functions.distances import cdist, dist, pdist, renorm
    from tapegrad.functions.distributions import bernoulli, binomial, multinomial, normal, poisson
    from tapegrad.functions.exponents import float_power, frexp, ldexp, ldexp_
    from tapegrad.functions.factorizations import cholesky_inverse
    from tapegrad.functions.histograms import bincount, bucketize, histc, histogram, searchsorted
    from tapegrad.functions.householder import geqrf, orgqr, ormqr
    from tapegrad.functions.inplace_functions import (
        abs_, acos_, acosh_, arccos_, arccosh_, arcsin_, arcsinh_, arctan_, arctanh_, asin_, asinh_,
        atan_, atanh_, ceil_, cos_, cosh_, deg2rad_, erf_, erfc_, exp2_, exp_, expm1_, fix_, floor_,
        frac_, gcd_, i0_, lcm_, log1p_, log2_, log10_, log_, neg_, negative_, rad2deg_, reciprocal_,
        relu_, rsqrt_, sigmoid_, sin_, sinc_, sinh_, sqrt_, square_, tan_, tanh_, trunc_, xlogy_,
    )
    from tapegrad.functions.inplace_methods import clamp_, clip_, fill_, nan_to_num_, round_, zero_
    from tapegrad.functions.inplace_view_methods import as_strided_
    from tapegrad.functions.joining import (
        cat, chunk, column_stack, concat, concatenate, dstack, hstack, row_stack, split,
        split_with_sizes, stack, tensor_split, unbind, unsafe_chunk, unsafe_split,
        unsafe_split_with_sizes, vstack,
    )
    from tapegrad.functions.joint_histograms import histogramdd
    from tapegrad.functions.low_rank import pca_lowrank, svd_lowrank
    from tapegrad.functions.lu import lu_unpack
    from tapegrad.functions.matrices import (
        cholesky_solve, det, inverse, logdet, matrix_exp, matrix_power, pinverse, slogdet,
    )
    from tapegrad.functions.matrix_chains import chain_matmul
    from tapegrad.functions.matrix_methods import cholesky, lu, lu_solve, qr, svd, triangular_solve
    from tapegrad.functions.norms import frobenius_norm, nuclear_norm
    from tapegrad.functions.order_statistics import (
        aminmax, cummax, cummin, kthvalue, median, mode, msort, nanmedian, topk,
    )
    from tapegrad.functions.pure_callback import pure_callback
    from tapegrad.functions.quantiles import nanquantile, quantile
    from tapegrad.functions.queries import (
        is_conj, is_neg, is_nonzero, is_same_size, is_signed, resolve_conj, resolve_neg,
    )
    from tapegrad.functions.random import (
        Generator, default_generator, get_rng_state, initial_seed, manual_seed, rand, rand_like,
        randint, randint_like, randn, randn_like, randperm, seed, set_rng_state,
    )
    from tapegrad.functions.ranges import logspace, range
    from tapegrad.functions.scattering import (
        as_strided_scatter, diagonal_scatter, index_reduce, masked_scatter, put, scatter_reduce,
        select_scatter, slice_scatter,
    )
    from tapegrad.functions.sets import isin, unique, unique_consecutive
    from tapegrad.functions.special import logit, logit_, mvlgamma, polygamma
    from tapegrad.functions.spectrograms import istft, stft
    from tapegrad.functions.statistics import corrcoef, cov
    from tapegrad.functions.strided_views import as_strided
    from tapegrad.functions.tiling import (
        cartesian_prod, combinations, meshgrid, repeat_interleave, roll, rot90, tile, vander,
    )
    from tapegrad.functions.windows import (
        bartlett_window, blackman_window, hamming_window, hann_window, kaiser_window,
    )
    from tapegrad.nn.functional import (
        adaptive_avg_pool1d, avg_pool1d, bilinear, celu, celu_, channel_shuffle, conv1d, conv2d,
        conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d, cosine_similarity, group_norm,
        layer_norm, max_pool1d, max_pool2d, max_pool3d, pairwise_distance, pixel_shuffle,
        pixel_unshuffle, rms_norm, rrelu, rrelu_, selu, selu_,
    )
    from tapegrad.nn.pooling_places import max_pool1d_with_indices
    from tapegrad.nn.top_level import (
        adaptive_max_pool1d, alpha_dropout, alpha_dropout_, batch_norm,
        binary_cross_entropy_with_logits, constant_pad_nd, cosine_embedding_loss, ctc_loss, dropout,
        dropout_, embedding, feature_alpha_dropout, feature_alpha_dropout_, feature_dropout,
        feature_dropout_, hinge_embedding_loss, instance_norm, kl_div, margin_ranking_loss,
        poisson_nll_loss, triplet_margin_loss,
    )
    from tapegrad.show.profiler import profile
    from tapegrad.transforms.checking import check_grads
    from tapegrad.transforms.checkpointing import checkpoint
    from tapegrad.transforms.control import cond, fori_loop, scan, switch, while_loop
    from tapegrad.transforms.custom import custom_jvp, custom_vjp, stop_gradient
    from tapegrad.transforms.forward import jvp, linearize
    from tapegrad.transforms.hessian_products import hvp, vhp
    from tapegrad.transforms.jacobians import hessian, jacfwd, jacobian, jacrev
    from tapegrad.transforms.mapping import vmap
    from tapegrad.transforms.pytree import (
        ravel_pytree, register_pytree_node, tree_flatten, tree_leaves, tree_map, tree_reduce,
        tree_unflatten,
    )
    from tapegrad.transforms.reverse import grad, value_and_grad, vjp
    # isort: on
    # fmt: on

__all__ = [
    "Generator", "Record", "Size", "Tape", "Tensor", "abs", "abs_", "absolute", "acos", "acos_",
    "acosh", "acosh_", "adaptive_avg_pool1d", "adaptive_max_pool1d", "add", "addbmm", "addcdiv",
    "addcmul", "addmm", "addmv", "addmv_", "addr", "adjoint", "all", "allclose", "alpha_dropout",
    "alpha_dropout_", "amax", "amin", "aminmax", "angle", "any", "arange", "arccos", "arccos_",
    "arccosh", "arccosh_", "arcsin", "arcsin_", "arcsinh", "arcsinh_", "arctan", "arctan2",
    "arctan_", "arctanh", "arctanh_", "argmax", "argmin", "argsort", "argwhere", "array_api",
    "as_strided", "as_strided_", "as_strided_scatter", "as_tensor", "asarray", "asin", "asin_",
    "asinh", "asinh_", "atan", "atan2", "atan_", "atanh", "atanh_", "atleast_1d", "atleast_2d",
    "atleast_3d", "autograd", "avg_pool1d", "baddbmm", "bartlett_window", "batch_norm", "bernoulli",
    "bilinear", "binary_cross_entropy_with_logits", "bincount", "binomial", "bitwise_and",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "blackman_window", "block_diag", "bmm", "bool", "broadcast_shapes", "broadcast_tensors",
    "broadcast_to", "bucketize", "can_cast", "cartesian_prod", "cat", "cdist", "cdouble", "ceil",
    "ceil_", "celu", "celu_", "cfloat", "chain_matmul", "channel_shuffle", "check_grads",
    "checkpoint", "cholesky", "cholesky_inverse", "cholesky_solve", "chunk", "clamp", "clamp_",
    "clamp_max", "clamp_max_", "clamp_min", "clamp_min_", "clip", "clip_", "clone", "column_stack",
    "combinations", "compat", "complex", "complex64", "complex128", "concat", "concatenate", "cond",
    "conj", "conj_physical", "conj_physical_", "constant_pad_nd", "conv1d", "conv2d", "conv3d",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "copysign", "corrcoef", "cos",
    "cos_", "cosh", "cosh_", "cosine_embedding_loss", "cosine_similarity", "count_nonzero", "cov",
    "cross", "ctc_loss", "cuda", "cummax", "cummin", "cumprod", "cumsum", "cumulative_trapezoid",
    "custom_jvp", "custom_vjp", "default_generator", "deg2rad", "deg2rad_", "det", "detach",
    "detach_", "device", "diag", "diag_embed", "diagflat", "diagonal", "diagonal_scatter", "diff",
    "digamma", "dist", "distributed", "div", "divide", "dot", "double", "dropout", "dropout_",
    "dsplit", "dstack", "dtype", "e", "einsum", "embedding", "empty", "empty_like", "empty_strided",
    "enable_grad", "eq", "equal", "erf", "erf_", "erfc", "erfc_", "erfinv", "exp", "exp2", "exp2_",
    "exp_", "expm1", "expm1_", "eye", "feature_alpha_dropout", "feature_alpha_dropout_",
    "feature_dropout", "feature_dropout_", "fft", "fill_", "finfo", "fix", "fix_", "flatten",
    "flip", "fliplr", "flipud", "float", "float16", "float32", "float64", "float_power", "floor",
    "floor_", "floor_divide", "fmax", "fmin", "fmod", "fori_loop", "frac", "frac_", "frexp",
    "frobenius_norm", "from_dlpack", "from_numpy", "full", "full_like", "func", "gather", "gcd",
    "gcd_", "ge", "geqrf", "ger", "get_default_dtype", "get_num_threads", "get_printoptions",
    "get_rng_state", "grad", "gradient", "greater", "greater_equal", "group_norm", "gt", "half",
    "hamming_window", "hann_window", "hardshrink", "heaviside", "hessian", "hinge_embedding_loss",
    "histc", "histogram", "histogramdd", "hsplit", "hstack", "hvp", "hypot", "i0", "i0_", "igamma",
    "igammac", "iinfo", "imag", "index_add", "index_copy", "index_fill", "index_put", "index_put_",
    "index_reduce", "index_select", "inf", "inference_mode", "initial_seed", "inner",
    "instance_norm", "int", "int8", "int16", "int32", "int64", "inverse", "is_anomaly_enabled",
    "is_complex", "is_conj", "is_floating_point", "is_grad_enabled", "is_inference",
    "is_inference_mode_enabled", "is_neg", "is_nonzero", "is_same_size", "is_signed", "is_tensor",
    "isclose", "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal", "istft",
    "jacfwd", "jacobian", "jacrev", "jit", "jvp", "kaiser_window", "kl_div", "kron", "kthvalue",
    "layer_norm", "lcm", "lcm_", "ldexp", "ldexp_", "le", "lerp", "less", "less_equal", "lgamma",
    "linalg", "linearize", "linspace", "log", "log1p", "log1p_", "log2", "log2_", "log10", "log10_",
    "log_", "log_softmax", "logaddexp", "logaddexp2", "logcumsumexp", "logdet", "logical_and",
    "logical_not", "logical_or", "logical_xor", "logit", "logit_", "logspace", "logsumexp", "long",
    "lt", "lu", "lu_solve", "lu_unpack", "manual_seed", "margin_ranking_loss", "masked_fill",
    "masked_scatter", "masked_select", "matmul", "matrix_exp", "matrix_power", "max", "max_pool1d",
    "max_pool1d_with_indices", "max_pool2d", "max_pool3d", "maximum", "mean", "median", "meshgrid",
    "min", "minimum", "mm", "mode", "moveaxis", "movedim", "msort", "mul", "multinomial",
    "multiply", "mv", "mvlgamma", "nan", "nan_to_num", "nan_to_num_", "nanmean", "nanmedian",
    "nanquantile", "nansum", "narrow", "ne", "neg", "neg_", "negative", "negative_", "newaxis",
    "nextafter", "nn", "no_grad", "nonzero", "norm", "normal", "not_equal", "nuclear_norm", "numel",
    "ones", "ones_like", "optim", "optimize", "orgqr", "ormqr", "outer", "pairwise_distance",
    "pca_lowrank", "pdist", "permute", "pi", "pinverse", "pixel_shuffle", "pixel_unshuffle",
    "poisson", "poisson_nll_loss", "polar", "polygamma", "positive", "pow", "prelu", "printoptions",
    "prod", "profile", "promote_types", "pure_callback", "put", "qr", "quantile", "rad2deg",
    "rad2deg_", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm",
    "range", "ravel", "ravel_pytree", "real", "reciprocal", "reciprocal_", "register_pytree_node",
    "relu", "relu_", "remainder", "renorm", "repeat_interleave", "reshape", "resolve_conj",
    "resolve_neg", "result_type", "rms_norm", "roll", "rot90", "round", "round_", "row_stack",
    "rrelu", "rrelu_", "rsqrt", "rsqrt_", "rsub", "scalar_tensor", "scan", "scatter", "scatter_add",
    "scatter_reduce", "scipy", "searchsorted", "seed", "select", "select_scatter", "selu", "selu_",
    "set_default_dtype", "set_grad_enabled", "set_num_threads", "set_printoptions", "set_rng_state",
    "sgn", "short", "show", "sigmoid", "sigmoid_", "sign", "signbit", "sin", "sin_", "sinc",
    "sinc_", "sinh", "sinh_", "slice_scatter", "slogdet", "softmax", "sort", "special", "split",
    "split_with_sizes", "sqrt", "sqrt_", "square", "square_", "squeeze", "stack", "std", "std_mean",
    "stft", "stop_gradient", "sub", "subtract", "sum", "svd", "svd_lowrank", "swapaxes", "swapdims",
    "switch", "t", "take", "take_along_dim", "tan", "tan_", "tanh", "tanh_", "tensor",
    "tensor_split", "tensordot", "threshold", "threshold_", "tile", "topk", "trace", "transpose",
    "trapezoid", "trapz", "tree_flatten", "tree_leaves", "tree_map", "tree_reduce",
    "tree_unflatten", "triangular_solve", "tril", "tril_indices", "triplet_margin_loss", "triu",
    "triu_indices", "true_divide", "trunc", "trunc_", "uint8", "unbind", "unflatten", "unique",
    "unique_consecutive", "unravel_index", "unsafe_chunk", "unsafe_split",
    "unsafe_split_with_sizes", "unsqueeze", "value_and_grad", "vander", "var", "var_mean", "vdot",
    "vhp", "view_as_complex", "view_as_real", "vjp", "vmap", "vsplit", "vstack", "where",
    "while_loop", "xlogy", "xlogy_", "zero_", "zeros", "zeros_like",
]  # fmt: skip
__version__ = "0.2.0"
float = float32
int = int32
inf, nan, pi, e, newaxis = _math.inf, _math.nan, _math.pi, _math.e, None

_install()
_install_numpy_face()
autograd.install()

# Half of the import's time, which a user of Tensors need not spend.
_LATER = {name: f"functions.{m}" for name, m in _deferred_functions().items()}
_LATER |= _deferred_names()


def __getattr__(name: str) -> _typing.Any:
    if name not in _LATER:
        from tapegrad.base.missing_names import missing

        raise missing("module 'tapegrad'", name, __all__)
    where = _LATER[name]
    module = _importlib.import_module(f"tapegrad.{where or name}")
    found = globals()[name] = getattr(module, name) if where else module
    return found


__dir__ = _dir_of(globals())


# As in PyTorch, log(0) is -inf and no news; the warning that NumPy would print names our own line.
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"tapegrad\.")
