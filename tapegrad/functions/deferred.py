"""Families of operations that are loaded when one of their names is first asked for.

They are a third of the functions' import time and seldom called.  A module stands here with the
names of its functions; its methods are found at the Tensor as descriptors that load it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tapegrad.functions.method_decorators import methods_of
from tapegrad.tensor import Tensor

# Those that are methods, too; what ends with "_" is a method only.
METHODS = {
    "activations": "hardshrink prelu",
    "added_products": ("addbmm addbmm_ addmm addmm_ addmv addmv_ addr addr_ baddbmm baddbmm_"),
    "distances": "dist renorm renorm_",
    "distributions": "bernoulli multinomial",
    "factorizations": "cholesky_inverse",
    "histograms": "bincount histc histogram",
    "householder": "geqrf orgqr ormqr",
    "matrices": "cholesky_solve det inverse logdet matrix_exp matrix_power pinverse slogdet",
    "matrix_methods": "cholesky lu lu_solve qr svd triangular_solve",
    "order_statistics": "aminmax cummax cummin kthvalue median mode msort nanmedian topk",
    "quantiles": "nanquantile quantile",
    "random_fills": (
        "bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_ random_ uniform_"
    ),
    "sets": "unique unique_consecutive",
    "spectrograms": "istft stft",
    "statistics": "corrcoef cov",
}
FUNCTIONS = {
    "calculus": "cumulative_trapezoid gradient trapezoid trapz",
    "distances": "cdist pdist",
    "distributions": "binomial normal poisson",
    "histograms": "bucketize searchsorted",
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
        if not name.endswith("_")
    }
