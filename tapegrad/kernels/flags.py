"""The one place that decides how Numba compiles: no other module calls `njit` itself."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba import types

from tapegrad.kernels.structs import StructPointer
from tapegrad.kernels.sweep.sweep_abi import SweepFrame
from tapegrad.kernels.whole_program import ShortPipeline, linked, together

# Only kernels call these: what would make them callable from Python is left out.
PLAIN: dict[str, Any] = {
    "error_model": "numpy",
    "nogil": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": ShortPipeline,
}
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
    return cast(F, numba.njit(forceinline=True, **PLAIN)(f))


# What the compiled sweep's functions call their arguments says what they are; everything else is an
# int64.
WORDS, DOUBLES = types.CPointer(types.int64), types.CPointer(types.float64)
NAMED = {
    "frame": StructPointer(SweepFrame),
    "record": WORDS,
    "x": DOUBLES,
    "bounded": types.boolean,
    "checked": types.boolean,
    "fresh": types.boolean,
    "mean": types.boolean,
    "narrow": types.boolean,
    "first_turned": types.boolean,
    "second_turned": types.boolean,
}


def from_python(f: F) -> F:
    """Compile a function that Python calls, as users' `@njit` does."""
    return cast(F, numba.njit(f))


def helper(f: F) -> F:
    """Compile a function that kernels call; inlined only where LLVM thinks that it pays."""
    return cast(F, numba.njit(**PLAIN)(f))


def typed(f: F) -> F:
    """Compile a function of the compiled sweep, once, for arguments whose names tell their types.

    Left to itself Numba would compile it again for every constant that it is called with.  Inlined
    only where LLVM thinks that it pays.
    """
    return typed_with()(f)


def typed_with(**named: Any) -> Callable[[F], F]:
    """`typed`, where further names of arguments tell their types: pointers to a `WordStruct`."""
    known = NAMED | {name: StructPointer(struct) for name, struct in named.items()}

    def decorator(f: F) -> F:
        code = f.__code__
        names = code.co_varnames[: code.co_argcount]
        kinds = tuple(known.get(name, types.int64) for name in names)
        return cast(F, numba.njit(kinds, **PLAIN)(f))

    return decorator


def entry_point(function: Callable[..., Any], arity: int) -> tuple[str, str]:
    """Compile a kernel over int64 arguments; returns its name and the LLVM IR of the whole."""
    signature = types.int64(*[types.int64] * arity)
    with together():
        made = numba.njit(signature, **PLAIN | {"no_cfunc_wrapper": False})(function)
        compiled: Any = made.overloads[signature.args]
        return str(compiled.fndesc.llvm_cfunc_wrapper_name), linked(compiled.library)
