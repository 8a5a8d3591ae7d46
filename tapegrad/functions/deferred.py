"""Families of operations that are loaded when one of their names is first asked for.

They are most of the functions, and seldom called.  A module stands here with the names of its
functions; its methods are found at the Tensor as descriptors that load it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tapegrad.functions.method_decorators import methods_of
from tapegrad.tensor import Tensor

# Those that are methods, too; what ends with "_", or stands in `ALONE`, is a method only.
METHODS = {
    "activations": "hardshrink prelu",
    "added_products": "addbmm addbmm_ addmm addmm_ addmv addmv_ addr addr_ baddbmm baddbmm_",
    "compositions": (
        "clamp_max clamp_max_ clamp_min clamp_min_ cpu diagflat dsplit fliplr flipud hsplit "
        "index_copy index_copy_ index_fill index_fill_ positive sum_to_size untyped_storage vsplit"
    ),
    "contractions": "cross diag_embed kron trace",
    "conversions": "byte cdouble cfloat char type type_as",
    "diagonals": "diag diagonal tril triu",
    "distances": "dist renorm renorm_",
    "distributions": "bernoulli multinomial",
    "exponents": "float_power float_power_ frexp ldexp ldexp_",
    "factorizations": "cholesky_inverse",
    "histograms": "bincount histc histogram",
    "householder": "geqrf orgqr ormqr",
    "inplace_view_methods": "as_strided_ squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_",
    "joining": (
        "chunk split split_with_sizes tensor_split unbind unsafe_chunk unsafe_split "
        "unsafe_split_with_sizes"
    ),
    "matrices": "cholesky_solve det inverse logdet matrix_exp matrix_power pinverse slogdet",
    "matrix_methods": "cholesky lu lu_solve qr svd triangular_solve",
    "order_statistics": "aminmax cummax cummin kthvalue median mode msort nanmedian topk",
    "quantiles": "nanquantile quantile",
    "queries": (
        "is_conj is_neg is_nonzero is_same_size is_signed ndimension resolve_conj resolve_neg"
    ),
    "random_fills": (
        "bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_ random_ uniform_"
    ),
    "scattering": (
        "as_strided_scatter diagonal_scatter fill_diagonal_ index_reduce index_reduce_ "
        "masked_scatter masked_scatter_ put put_ scatter_reduce scatter_reduce_ select_scatter "
        "slice_scatter"
    ),
    "sets": "unique unique_consecutive",
    "special": "logit logit_ mvlgamma mvlgamma_ polygamma_",
    "spectrograms": "istft stft",
    "statistics": "corrcoef cov",
    "strided_views": "as_strided unfold",
    "tiling": "repeat repeat_interleave roll rot90 tile",
}
ALONE = frozenset(
    "byte cdouble cfloat char cpu ndimension repeat sum_to_size type type_as unfold "
    "untyped_storage".split()
)
FUNCTIONS = {
    "added_products": "addmv_",
    "calculus": "cumulative_trapezoid gradient trapezoid trapz",
    "compositions": (
        "atleast_1d atleast_2d atleast_3d broadcast_shapes broadcast_tensors clamp_max_ clamp_min_ "
        "detach detach_ index_put_ is_complex is_floating_point is_inference is_tensor numel "
        "std_mean threshold threshold_ unravel_index var_mean"
    ),
    "complex_parts": "conj_physical_",
    "contractions": "einsum tensordot",
    "diagonals": "block_diag tril_indices triu_indices",
    "distances": "cdist pdist",
    "distributions": "binomial normal poisson",
    "exponents": "ldexp_",
    "histograms": "bucketize searchsorted",
    "inplace_functions": (
        "abs_ acos_ acosh_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ atan_ "
        "atanh_ ceil_ cos_ cosh_ deg2rad_ erf_ erfc_ exp2_ exp_ expm1_ fix_ floor_ frac_ gcd_ i0_ "
        "lcm_ log10_ log1p_ log2_ log_ neg_ negative_ rad2deg_ reciprocal_ relu_ rsqrt_ sigmoid_ "
        "sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_"
    ),
    "inplace_methods": "clamp_ clip_ fill_ nan_to_num_ round_ zero_",
    "inplace_view_methods": "as_strided_",
    "joining": "cat column_stack concat concatenate dstack hstack row_stack stack vstack",
    "joint_histograms": "histogramdd",
    "low_rank": "pca_lowrank svd_lowrank",
    "lu": "lu_unpack",
    "matrix_chains": "chain_matmul",
    "norms": "frobenius_norm nuclear_norm",
    "pure_callback": "pure_callback",
    "random": (
        "Generator default_generator get_rng_state initial_seed manual_seed rand rand_like randint "
        "randint_like randn randn_like randperm seed set_rng_state"
    ),
    "ranges": "logspace range",
    "sets": "isin",
    "special": "logit_ polygamma",
    "tiling": "cartesian_prod combinations meshgrid vander",
    "windows": "bartlett_window blackman_window hamming_window hann_window kaiser_window",
}


class DeferredMethod:
    """A method of the Tensor whose module puts itself into the place of this when it is loaded."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __get__(self, tensor: Tensor | None, owner: type[Tensor]) -> Any:
        _attach(self.module)
        return getattr(owner if tensor is None else tensor, self.name)


def load(module: str) -> Any:
    """The module of that name among the functions."""
    return import_module(f"tapegrad.functions.{module}")


def _attach(module: str) -> None:
    for name, function in methods_of(load(module)).items():
        if isinstance(vars(Tensor).get(name), DeferredMethod):  # else NumPy's form stands there
            setattr(Tensor, name, function)


def attach_all() -> None:
    """Every method in its place, for what reads the Tensor's table of them."""
    for module in METHODS:
        _attach(module)


def deferred_methods() -> dict[str, Any]:
    """What stands in the Tensor until the modules are loaded."""
    return {
        name: DeferredMethod(module, name)
        for module, names in METHODS.items()
        for name in names.split()
    }


def deferred_functions() -> dict[str, str]:
    """The names at top level, and the modules where they are."""
    found = {name: module for module, names in FUNCTIONS.items() for name in names.split()}
    return found | {
        name: module
        for module, names in METHODS.items()
        for name in names.split()
        if not name.endswith("_") and name not in ALONE
    }
