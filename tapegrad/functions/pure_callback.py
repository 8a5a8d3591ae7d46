"""Call a function of NumPy arrays in the midst of other operations, compiled ones too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.base.dtypes import get_default_dtype, to_numpy
from tapegrad.dispatch.dispatch import run
from tapegrad.functions.creation import shape_of
from tapegrad.ops import pure_callback as p
from tapegrad.tensor import Tensor, tensor_of


def pure_callback(
    function: Callable[..., Any],
    result: Tensor | np.ndarray | Sequence[int],
    *args: Tensor | np.ndarray | float,
    dtype: Any = None,
) -> Tensor:
    """What a function of NumPy arrays returns, under `jit` and `vmap`, too.

    `result` announces it: a Tensor or an array of its shape and type, or a shape, with `dtype`. The
    function gets arrays that it must not change, returns one array, and depends on nothing else:
    how often it is called is not said. Under `vmap` it is called for each example.

    It has no derivative, and to ask for one is an error; `custom_vjp` gives it one.

    >>> import numpy as np, tapegrad as tg
    >>> ranks = tg.jit(lambda x: 2.0 * tg.pure_callback(np.sort, x, x))
    >>> ranks(tg.tensor([3.0, 1.0, 2.0]))
    tensor([2., 4., 6.])
    """
    if not callable(function):
        raise TypeError(f"`pure_callback` takes a function, got {type(function).__name__}")
    kind = get_default_dtype().numpy if dtype is None else to_numpy(dtype)
    if isinstance(result, Tensor | np.ndarray):
        shape = tuple(result.shape)
        kind = to_numpy(result.dtype) if dtype is None else kind
    else:
        shape = shape_of((), result)
    operands = tuple([tensor_of(x, "pure_callback") for x in args])
    params = {"function": function, "shape": shape, "dtype": kind}
    found: Tensor = run(p.pure_callback, operands, params)
    return found
