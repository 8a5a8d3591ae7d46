"""Questions about values that only a program knows, or that differ from example to example.

Where NumPy cannot be asked, since a Tensor under a transform holds no array, the answer is computed
by operations; a truth value is then a guard of a compiled function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.functions import arithmetic as ew
from tapegrad.functions.reductions import any as any_of
from tapegrad.functions.shapes import reshape
from tapegrad.numpy_face.common import tensor
from tapegrad.specimen import Specimen
from tapegrad.tensor import Tensor, wrap


def is_unread(x: Any) -> bool:
    """Whether an operand has no array to ask."""
    return isinstance(x, Tensor) and type(x._a) is Specimen


def _array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    a, b = tensor(a1), tensor(a2)
    return a._a.shape == b._a.shape and ew.all_equal(a, b, equal_nan)


def _array_equiv(a1: Any, a2: Any) -> bool:
    a, b = tensor(a1), tensor(a2)
    try:
        np.broadcast_shapes(a._a.shape, b._a.shape)
    except ValueError:
        return False
    return ew.all_equal(a, b)


def _allclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    return ew.allclose(tensor(a), tensor(b), rtol, atol, equal_nan)


def _isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *,
    kind: Any = None,
) -> Tensor:  # fmt: skip
    x = tensor(element)
    found = any_of(ew.eq(reshape(x, (*x._a.shape, 1)), reshape(tensor(test_elements), (-1,))), -1)
    return ew.logical_not(found) if invert else found


def _isreal(x: Any) -> Tensor:
    t = tensor(x)
    return wrap(np.ones(t._a.shape, bool)) if t._a.dtype.kind != "c" else ew.eq(t.imag, 0)


def _iscomplex(x: Any) -> Tensor:
    return ew.logical_not(_isreal(x))


def _types(func: Callable[..., Any]) -> Callable[..., Any]:
    """A function that asks operands for no more than their dtypes."""
    return lambda *args, **kwargs: func(
        *[x._a.dtype if isinstance(x, Tensor) else x for x in args], **kwargs
    )


FORMS: dict[Any, Callable[..., Any]] = {
    np.array_equal: _array_equal,
    np.array_equiv: _array_equiv,
    np.allclose: _allclose,
    np.isin: _isin,
    np.isreal: _isreal,
    np.iscomplex: _iscomplex,
    np.isposinf: lambda x: ew.eq(tensor(x), np.inf),
    np.isneginf: lambda x: ew.eq(tensor(x), -np.inf),
    np.result_type: _types(np.result_type),
    np.can_cast: _types(np.can_cast),
}
