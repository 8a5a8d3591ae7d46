"""The libraries as compilers of functions: one small adapter each."""

from bench.sides.with_casadi import Casadi
from bench.sides.with_jax import Jax
from bench.sides.with_numba import Numba
from bench.sides.with_scipy import Scipy
from bench.sides.with_tapegrad import Tapegrad
from bench.sides.with_torch import Torch

ADAPTERS = {
    "tapegrad": Tapegrad,
    "numba": Numba,
    "jax": Jax,
    "torch": Torch,
    "casadi": Casadi,
    "scipy": Scipy,
}

__all__ = ["ADAPTERS", "Casadi", "Jax", "Numba", "Scipy", "Tapegrad", "Torch"]
