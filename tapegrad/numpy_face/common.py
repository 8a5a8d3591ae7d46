"""What the handlers share: names, refusals, operands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from tapegrad.base.abstract_array import known
from tapegrad.base.dtypes import dtype as DType
from tapegrad.base.dtypes import get_default_dtype
from tapegrad.dispatch.dispatch import run
from tapegrad.functions.arguments import alike, all_dims, holds_tensor
from tapegrad.functions.arithmetic import clamp
from tapegrad.functions.elementwise import remainder
from tapegrad.functions.joining import stacked
from tapegrad.functions.shapes import reshape
from tapegrad.ops.shape import to
from tapegrad.tensor import Tensor, tensor_of

F = TypeVar("F", bound=Callable[..., Any])
# From a ufunc to our function, from a NumPy function to how it is called; filled when first asked.
CALLS: dict[Any, Callable[..., Any]] = {}
TABLE: dict[Any, Callable[..., Any]] = {}  # from a NumPy function to its handler
HANDLERS: dict[Any, Callable[[tuple[Any, ...], dict[str, Any]], Any]] = {}
# What a NumPy function is of one float64 Tensor of modest size, without any other argument.
SHORT: dict[Any, Callable[[Tensor], Any]] = {}
# What it is of two operands, if its fast path takes them; None: it does not.
PAIRS: dict[Any, Callable[[Any, Any], Any]] = {}

OPTIONS = {
    "out": "an array cannot hold the history of a Tensor: use the Tensor that is returned, or give "
    "it a Tensor to write into, as `np.zeros_like(t)`",
    "where": "compute everything, and choose with `np.where(condition, t, other)`, or write into a "
    "Tensor, `out=np.zeros_like(t)`",
    "initial": "combine it with the result",
    "dtype": "convert the Tensor with `t.to(dtype)`",
}


def handles(*functions: Any) -> Callable[[F], F]:
    """Say which NumPy functions a handler is for."""

    def register(handler: F) -> F:
        for func in functions:
            TABLE[func] = handler
        return handler

    return register


def title(func: Any) -> str:
    """The name that a user knows a NumPy function by: ``np.linalg.norm``."""
    name = func.__name__
    if isinstance(func, np.ufunc):
        if getattr(np, name, None) is func:
            return f"np.{name}"
        known = special_name(func)
        return f"scipy.special.{known}" if known else "np.frompyfunc"
    return f"{func.__module__}.{name}".replace("numpy.", "np.", 1)


def special_name(ufunc: Any) -> str | None:
    """The function of `scipy.special` that a ufunc is, or that calls it: `zeta` calls `_zeta`."""
    name: str = ufunc.__name__
    special = sys.modules.get("scipy.special")
    homes = special, getattr(special, "_ufuncs", None)
    found = any(getattr(home, name, None) is ufunc for home in homes)
    return name.removeprefix("_") if found else None


def unsupported(name: str) -> TypeError:
    """The refusal of a function that would lose the gradient."""
    from tapegrad.base.nearest import nearest

    instead = nearest(name)
    advice = (
        f"Use {instead}"
        if instead
        else "Write it with functions that are (the page NumPy of the documentation lists them)"
    )
    return TypeError(
        f"`{name}` is not supported for Tensors: nothing would be recorded and the gradient lost. "
        f"{advice}, or, if no gradient is wanted through it, give it `t.detach().numpy()`"
    )


def bad_option(name: str, option: str) -> TypeError:
    """The refusal of an argument that a function does not take for Tensors."""
    advice = OPTIONS.get(option, "leave it out")
    return TypeError(f"`{name}`: `{option}=` is not supported for Tensors: {advice}")


def tensor(x: Any) -> Tensor:
    """The Tensor of an array-like."""
    return stacked(x) if isinstance(x, (list, tuple)) and holds_tensor(x) else tensor_of(x, "")


def operand(x: Any) -> Any:
    """An operand of an elementwise function; lists become arrays, or Tensors if one is in them."""
    if isinstance(x, (list, tuple)):
        return stacked(x) if holds_tensor(x) else np.asarray(x)
    return x


def promoted(*operands: Any) -> list[Tensor]:
    """Tensors of the operands of a product, in one type."""
    return alike(*map(operand, operands))


def floating(x: Tensor) -> Tensor:
    """Integers in the default floating-point type."""
    if x._a.dtype.kind in "fc":
        return x
    return run(to, (x,), {"dtype": get_default_dtype().numpy})


def nothing(axis: Any) -> bool:
    """Whether nothing is reduced: NumPy's empty tuple of axes, which to PyTorch means all."""
    return isinstance(axis, tuple) and not axis


def brought_in(places: Tensor, n: int, mode: str, name: str) -> Tensor:
    """Places among n, which are brought there or left as they are, as `mode` says."""
    if mode == "wrap":
        return remainder(places, n)
    if mode == "clip":
        return clamp(places, 0, n - 1)
    if mode != "raise":
        raise ValueError(f"`{name}`: mode is 'raise', 'wrap' or 'clip', got {mode!r}")
    return places


def line(x: Tensor, axis: Any) -> tuple[Tensor, int]:
    """What a function that goes along one axis works on: all elements if there is none."""
    if axis is None or not x._a.ndim:
        return reshape(x, (x._a.size,)), 0
    return x, all_dims(axis, x._a.ndim, "axis")[0]


def plain(x: Any, name: str) -> Any:
    """Arguments as a function of NumPy's reads them: arrays for Tensors, however deep they stand.

    A value that is not known here is refused: NumPy would read what stands in its place.
    """
    if isinstance(x, Tensor):
        return known(x._a, name)
    if type(x) is list or type(x) is tuple:
        return type(x)(plain(part, name) for part in x)
    return x.numpy if isinstance(x, DType) else x


def wrapped(x: Any) -> Any:
    """Results as Tensors, however deep they stand; what Python has a type for stays as it is."""
    if isinstance(x, (np.ndarray, np.generic)):
        return tensor_of(x, "")
    if type(x) is list or type(x) is tuple:
        return type(x)(wrapped(part) for part in x)
    return x
