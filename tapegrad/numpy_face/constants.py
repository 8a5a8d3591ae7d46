"""Functions whose result is constant almost everywhere: comparisons, indices, counts, shapes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.functions.shapes import broadcast_to, clone, to
from tapegrad.numpy_face.common import bad_option, plain, tensor, title, wrapped
from tapegrad.numpy_face.dispatch import handles
from tapegrad.numpy_face.unread import FORMS, is_unread
from tapegrad.tensor import Tensor, wrap

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
    """The handler that calls NumPy on the arrays themselves."""
    try:
        names = list(inspect.signature(func).parameters)
    except ValueError:  # a function in C without a signature
        names = []
    at = names.index("out") if "out" in names else -1

    def handler(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("out") is not None or (0 < at < len(args) and args[at] is not None):
            raise bad_option(title(func), "out")
        if func in FORMS and any(map(is_unread, args)):
            return FORMS[func](*args, **kwargs)
        return wrapped(func(*[plain(x) for x in args], **{k: plain(v) for k, v in kwargs.items()}))

    return handler


for name in NAMES:
    handles(getattr(np, name))(constant(getattr(np, name)))


def _of_shape(func: Any) -> None:
    """What reads no element, and is the same for every example under a map."""

    def handler(a: Any, *args: Any, **kwargs: Any) -> Any:
        like = plain(a)
        shown = np.broadcast_to(np.zeros((), like.dtype), like.shape)
        return wrapped(func(shown, *args, **kwargs))

    handles(func)(handler)


for name in SHAPES:
    _of_shape(getattr(np, name))


def _filled(func: Any, fill: Callable[..., np.ndarray]) -> None:
    """An array of which only the shape and the dtype are another's, so of one example's too."""

    def handler(a: Any, dtype: Any = None, shape: Any = None) -> Tensor:
        like = plain(a)
        if not isinstance(like, np.ndarray):
            like = np.asarray(like)
        kind = like.dtype if dtype is None else plain(dtype)
        return wrap(fill(like.shape if shape is None else shape, kind))

    handles(func)(handler)


_filled(np.zeros_like, np.zeros)
_filled(np.ones_like, np.ones)
_filled(np.empty_like, np.zeros)  # as good as any others


@handles(np.full_like)
def _full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    """The value that fills is not a constant: its gradient is a sum."""
    like = tensor(a)._a
    kind = like.dtype if dtype is None else dtype
    fill = to(tensor(fill_value), kind)
    return clone(broadcast_to(fill, like.shape if shape is None else shape))
