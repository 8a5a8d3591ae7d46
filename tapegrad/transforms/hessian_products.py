"""Products of a vector with the Hessian of a function, without that matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.autograd.grad_mode import recording
from tapegrad.autograd.hvp import leaf_products
from tapegrad.base.native_arrays import native_array
from tapegrad.lift.lifted_tensor import pull
from tapegrad.tape.shape_table import Shape
from tapegrad.tape.tape import current
from tapegrad.tensor import F8, Tensor, tensor_of, wrap
from tapegrad.transforms.call_arguments import any_tensor, require_function
from tapegrad.transforms.forward import directional
from tapegrad.transforms.numba_functions import numba_derivatives
from tapegrad.transforms.pickling import repeatable
from tapegrad.transforms.pytree import tree_map
from tapegrad.transforms.reverse import differentiated, pulled_back, quick


@repeatable
def hvp(f: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """The product of the Hessian of a scalar function with a vector: ``hvp(f)(x, v)``.

    >>> import numpy as np, tapegrad as tg
    >>> tg.hvp(lambda x: np.sum(x**3))(np.array([1.0, 2.0]), np.array([1.0, 10.0]))
    array([  6., 120.])
    """
    require_function(f, "hvp")
    if (numba := numba_derivatives(f)) is not None:
        return numba.hvp(f)  # type: ignore[no-any-return]
    on_tape = OnTape(f, "hvp")

    def slope(x: Any, v: Any) -> Tensor:
        return directional(f, x, v, "hvp")

    gradient = differentiated(slope, 0, has_aux=False, strict=False, name="hvp")

    def product(x: Any, v: Any) -> Any:
        """The Hessian at `x` times `v`; a vector of integers, as SciPy may send, is as good."""
        found = on_tape.product(x, v)
        if found is not None:
            return found
        # The gradient of the derivative along `v`: the gradient itself is never computed.
        if any_tensor(v) and not any_tensor(x):
            x = tree_map(lambda leaf: tensor_of(leaf, "hvp"), x)
        return gradient(x, tree_map(_floats, v))

    return product


# Elements of an argument up to which the passes in Python are faster than the general path with its
# kernels; and rows up to which a whole matrix is, which that path computes at once.
MOST, ROWS = 1 << 14, 20


class OnTape:
    """Products for one float64 array or float by passes over the tape of the function.

    A function that records what these passes do not know is not tried again.
    """

    def __init__(self, f: Callable[..., Any], name: str) -> None:
        self.f = f
        self.name = name
        self.known = True

    def product(self, x: Any, v: Any) -> Any:
        """The Hessian times `v`; None, with nothing done: take the general path."""
        kind = type(v)
        if not (kind is float or (kind is np.ndarray and v.dtype.kind in "fiu")):
            return None
        w = v if kind is not float and v.dtype is F8 else np.asarray(native_array(v, self.name), F8)
        if w.size > MOST or w.shape != (x.shape if type(x) is np.ndarray else np.shape(x)):
            return None
        return self._found((x,), {}, 0, w[None], w.shape)

    def matrix(self, args: tuple[Any, ...], kwargs: dict[str, Any], place: int) -> Any:
        """The whole Hessian, or None."""
        if not 0 <= place < len(args):
            return None
        x = args[place]
        if type(x) is not float and type(x) is not np.ndarray:  # it may be a pytree
            return None
        shape, size = np.shape(x), np.size(x)
        if size > ROWS:
            return None
        return self._found(args, kwargs, place, np.eye(size).reshape(size, *shape), shape + shape)

    def _found(self, args: Any, kwargs: Any, place: int, vs: np.ndarray, shape: Shape) -> Any:
        if not self.known:
            return None

        def sweep(root: Tensor, leaf: Tensor, start: int) -> Any:
            found, self.known = leaf_products(root, leaf, start, vs)
            return None if found is None else found.reshape(shape)

        def otherwise(root: Tensor, leaf: Tensor, start: int) -> Any:
            with recording(current.tape, True):
                first = pull([root], [None], [leaf], recorded=True, since=start)
            rows = [
                pull(first, [wrap(v)], [leaf], recorded=False, retain=True, since=start) for v in vs
            ]
            return np.reshape([g._a for (g,) in rows], shape)

        found = quick(self.f, args, kwargs, place, self.name, sweep, otherwise)
        return None if found is None else found[1]


def _floats(v: Any) -> Any:
    integers = isinstance(v, (np.ndarray, np.generic)) and v.dtype.kind in "iu"
    return v.astype(float) if integers else v


@repeatable
def vhp(f: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """The product of a vector with the Hessian of a scalar function: ``vhp(f)(x, v)``.

    >>> import numpy as np, tapegrad as tg
    >>> tg.vhp(lambda x: np.sum(x**3))(np.array([1.0, 2.0]), np.array([1.0, 10.0]))
    array([  6., 120.])
    """
    gradient = differentiated(f, 0, has_aux=False, strict=False, name="vhp")

    def product(x: Any, v: Any) -> Any:
        """`v` times the Hessian at `x`."""
        return pulled_back(gradient, (x,), "vhp")[1](v)[0]

    return product
