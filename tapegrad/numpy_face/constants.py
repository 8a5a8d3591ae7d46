"""Functions whose result is constant almost everywhere: comparisons, indices, counts, shapes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.functions.shapes import broadcast_to, clone, to
from tapegrad.numpy_face.common import bad_option, plain, tensor, title, wrapped
from tapegrad.numpy_face.dispatch import handles
from tapegrad.tensor import Tensor, wrap

NAMES = (
    "all allclose any argmax argmin argpartition argsort argwhere array_equal array_equiv "
    "can_cast common_type count_nonzero diag_indices_from digitize einsum_path empty_like "
    "flatnonzero iscomplex iscomplexobj isclose isin isneginf isposinf isreal isrealobj lexsort "
    "may_share_memory min_scalar_type nanargmax nanargmin ndim nonzero ones_like result_type "
    "searchsorted shape shares_memory size tril_indices_from triu_indices_from zeros_like"
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
        return wrapped(func(*[plain(x) for x in args], **{k: plain(v) for k, v in kwargs.items()}))

    return handler


for name in NAMES:
    handles(getattr(np, name))(constant(getattr(np, name)))


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
