"""NumPy's own functions on Tensors: `np.sin(t)` records what `tg.sin(t)` records.

NumPy asks a Tensor twice what to do: `__array_ufunc__` for ufuncs (and so for the operators of
arrays, `array * t`), `__array_function__` for everything else.  Both look the function up in a
dictionary; what is not found there raises, so that no gradient is lost on the way through NumPy.

``ufuncs``       the ufuncs of NumPy and SciPy, and their methods (`np.add.reduce`)
``handlers``     binding arguments under NumPy's names
``methods``      what arrays have as methods and PyTorch's Tensors do not
``constants``    functions whose result has no derivative: comparisons, indices, shapes
``elementwise``, ``reductions``, ``calculus``, ``shapes``, ``joining``, ``products``, ``linalg``:
the handlers of everything else

None of these handlers is loaded before the first such call.

The package's top level imports this one, which imports `functions`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.base.native_arrays import refuse_operand
from tapegrad.dispatch.inplace import overwrite
from tapegrad.numpy_face.common import CALLS, HANDLERS, PAIRS, SHORT
from tapegrad.numpy_face.methods import METHODS
from tapegrad.tensor import F8, Tensor

# Operands that every function takes as they are.
PLAIN = frozenset((Tensor, np.ndarray, bool, int, float, np.float64, np.float32, np.int64, np.bool))


def array_ufunc(
    self: Tensor, ufunc: Any, method: str, x: Any, *others: Any, **kwargs: Any
) -> object:
    """What a NumPy ufunc does with a Tensor: the operation of that name, recorded."""
    if ufunc in CALLS and method == "__call__" and not kwargs:
        if not others:
            return CALLS[ufunc](x)
        if len(others) > 1:
            return CALLS[ufunc](x, *others)
        (y,) = others
        if type(x) in PLAIN and type(y) in PLAIN:
            if type(x) is Tensor and x._s >= 0:
                y = _short(y)
            elif type(y) is Tensor and y._s >= 0:
                x = _short(x)
            return CALLS[ufunc](x, y)
    elif len(kwargs) == 1 and ufunc in CALLS and method == "__call__":
        out, given = kwargs.get("out", ()), {type(x), *map(type, others)}
        if len(out) == 1 and type(out[0]) is Tensor and given <= PLAIN and Tensor in given:
            found = CALLS[ufunc](x, *others)
            if type(found) is Tensor and overwrite(out[0], found):
                return out[0]
            from tapegrad.numpy_face import common, writing

            return writing.into(out, found, common.title(ufunc), spread=True)
    from tapegrad.numpy_face import ufuncs

    return ufuncs.call(ufunc, method, (x, *others), kwargs)


def _short(x: Any) -> Any:
    """What stands beside a float64 Tensor, as native code takes it."""
    return float(x) if type(x) is np.float64 else x


def array_function(
    self: Tensor, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> object:
    """What any other NumPy function does with a Tensor."""
    if not kwargs:
        if len(args) == 1:
            short = SHORT.get(func)
            if short is not None:
                (x,) = args
                if type(x) is Tensor:
                    if x._s >= 0:
                        return short(x)
                elif isinstance(x, Tensor) and x._a.dtype is F8:
                    return short(x)
        elif (pair := PAIRS.get(func)) and len(args) == 2 and (found := pair(*args)) is not None:
            return found
    handler = HANDLERS.get(func)
    if handler is None:
        from tapegrad.numpy_face import handlers

        handler = handlers.find(func)
    for kind in types:
        if kind is not np.ndarray and not issubclass(kind, Tensor):
            if not issubclass(kind, np.ndarray):
                return NotImplemented
            refuse_operand(kind)
    return handler(args, kwargs)


def install() -> None:
    """Let NumPy know that Tensors have these functions."""
    own = {"__array_ufunc__": array_ufunc, "__array_function__": array_function}
    for name, method in (own | METHODS).items():
        setattr(Tensor, name, method)
