"""Functions whose result is constant almost everywhere: comparisons, indices, counts, shapes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.functions.creation import as_tensor
from tapegrad.functions.shapes import broadcast_to, clone, to
from tapegrad.numpy_face.common import bad_option, handles, plain, tensor, title, wrapped
from tapegrad.numpy_face.mapped import MAPPED, PREDICATES, shown, varies
from tapegrad.tensor import Tensor

NAMES = (
    "allclose argpartition argwhere array_equal array_equiv can_cast common_type digitize "
    "einsum_path flatnonzero iscomplex isin isneginf isposinf isreal lexsort may_share_memory "
    "min_scalar_type nanargmax nanargmin nonzero packbits ravel_multi_index result_type "
    "shares_memory unpackbits unravel_index"
).split()
SHAPES = (
    "ndim shape size iscomplexobj isrealobj diag_indices_from tril_indices_from triu_indices_from"
).split()


def constant(func: Any) -> Callable[..., Any]:
    """The handler that calls NumPy on the arrays themselves, where these have their values."""
    try:
        names = list(inspect.signature(func).parameters)
    except ValueError:  # a function in C without a signature
        names = []
    at = names.index("out") if "out" in names else -1
    name = func.__name__
    otherwise = MAPPED.get(func) or PREDICATES.get(func)

    def handler(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("out") is not None or (0 < at < len(args) and args[at] is not None):
            raise bad_option(title(func), "out")
        if otherwise is not None and any(map(varies, (*args, *kwargs.values()))):
            return otherwise(*args, **kwargs)
        return wrapped(
            func(*[plain(x, name) for x in args], **{k: plain(v, name) for k, v in kwargs.items()})
        )

    return handler


for name in NAMES:
    handles(getattr(np, name))(constant(getattr(np, name)))


def _of_shape(func: Any) -> None:
    """What reads no element, and is the same for every example under a map."""

    def handler(a: Any, *args: Any, **kwargs: Any) -> Any:
        return wrapped(func(shown(a), *args, **kwargs))

    handles(func)(handler)


for name in SHAPES:
    _of_shape(getattr(np, name))


def _like(like: Any, dtype: Any, shape: Any) -> Tensor:
    """Zeros of which only the shape and the dtype are another's, so of one example's too."""
    given = like._a if isinstance(like, Tensor) else np.asarray(like)
    kind = given.dtype if dtype is None else plain(dtype, "zeros_like")
    return as_tensor(np.zeros(given.shape if shape is None else shape, kind))


def _made(func: Any) -> None:
    """What is filled with a number, for ``np.zeros(3, like=t)``: by that NumPy asks a Tensor."""

    def handler(shape: Any, *args: Any, **kwargs: Any) -> Tensor:
        return as_tensor(func(shape, *args, **kwargs))

    handles(func)(handler)


for func in (np.zeros, np.ones, np.empty):
    _made(func)


handles(np.zeros_like)(lambda a, dtype=None, shape=None: _like(a, dtype, shape))


@handles(np.ones_like)
def _ones_like(a: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    ones = _like(a, dtype, shape)
    ones._a[...] = 1
    return ones


@handles(np.empty_like)
def _empty_like(prototype: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    """Zeros are as good as any others."""
    return _like(prototype, dtype, shape)


@handles(np.full)
def _full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> Tensor:
    """For ``np.full(3, t, like=t)``."""
    fill = tensor(fill_value)
    return clone(broadcast_to(fill if dtype is None else to(fill, dtype=dtype), shape))


@handles(np.full_like)
def _full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    """The value that fills is not a constant: its gradient is a sum."""
    like = tensor(a)._a
    kind = like.dtype if dtype is None else dtype
    fill = to(tensor(fill_value), dtype=kind)
    return clone(broadcast_to(fill, like.shape if shape is None else shape))
