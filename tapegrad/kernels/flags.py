"""The one place that decides how Numba compiles: no other module calls `njit` itself."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def scalar(f: F) -> F:
    """Compile a scalar function that is called inside the loops of kernels.

    `error_model="numpy"`: a division by zero gives infinity or NaN as in NumPy; Numba's default
    tests every divisor and raises, and that branch keeps LLVM from vectorising the loop.
    `forceinline`: LLVM vectorises a loop only if nothing in it is a call, and its own estimate
    of what is worth inlining stops short of a long polynomial.
    `fastmath` stays off: it would reassociate the error-compensating sums and drop NaNs.
    Nothing compiles until the first call.
    """
    return cast(F, numba.njit(error_model="numpy", nogil=True, forceinline=True)(f))


def helper(f: F) -> F:
    """Compile a function of the walk: like `scalar`, but inlined only where LLVM thinks it pays."""
    return cast(F, numba.njit(error_model="numpy", nogil=True)(f))


def entry_point(function: Callable[..., Any], arity: int) -> tuple[str, str]:
    """Compile a kernel over int64 arguments; returns its native name and its optimised LLVM IR."""
    signature = numba.types.int64(*[numba.types.int64] * arity)
    compiled = numba.cfunc(signature, error_model="numpy", nogil=True)(function)
    return str(compiled.native_name), str(compiled.inspect_llvm())
