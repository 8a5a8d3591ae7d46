"""Derivatives of roots by the implicit function theorem, whatever found the root.

From a root x0, f(x0, a) = 0, chord steps x - J^-1 (f(x, a) - f(x0, a)) stay where they are, J being
the Jacobian at x0, a constant.  As functions of `a` they are the root itself: k steps have its
first k derivatives, in every mode, whatever `f` reads, and record no more than k calls of `f`.
Without the term f(x0, a), they refine what was found to a coarse tolerance, and its derivatives.
Where J is singular all is NaN.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.autograd.grad_mode import no_grad
from tapegrad.functions.arithmetic import where
from tapegrad.functions.reductions import sum as sum_
from tapegrad.functions.shapes import reshape
from tapegrad.functions.unchecked_solves import inv_ex
from tapegrad.lift.levels import levels_of
from tapegrad.lift.lifted_tensor import on_tape
from tapegrad.numpy_face.common import tensor
from tapegrad.numpy_face.mapped import varies
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor
from tapegrad.transforms.call_arguments import require_function
from tapegrad.transforms.custom import stop_gradient
from tapegrad.transforms.jacobians import jacobian
from tapegrad.transforms.pytree import flatten, tree_map
from tapegrad.transforms.reverse import grad

Function = Callable[..., Any]
ORDERS = 3  # of derivatives at least, since they may be taken of what a transform returned


def numbers(y: Any) -> Any:
    """Plain numbers and arrays in place of Tensors."""
    if type(y) is Tensor:
        return y._a[()]
    return tree_map(lambda t: t._a[()] if isinstance(t, Tensor) else t, y)


def _in_double(x: Any) -> Any:
    """A search in single precision would end far from the root."""
    if isinstance(x, Tensor):
        return x.double() if x._a.dtype.kind == "f" else x
    return x.astype(float) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x


def _vectorial(f: Function, shape: tuple[int, ...]) -> Function:
    return lambda x: reshape(tensor(f(reshape(x, shape))), (-1,))


def _constant_slope(f: Function, x: Tensor, elementwise: bool) -> Tensor:
    """The derivative of each element, or the Jacobian, as a constant."""
    with no_grad():
        found = grad(lambda x: sum_(f(x)))(x) if elementwise else jacobian(f)(x)
    return stop_gradient(found)  # type: ignore[no-any-return]


def _inverse(slope: Tensor) -> Tensor:
    """The inverse of a Jacobian; NaN if it is singular, but for rounding."""
    inverse = inv_ex(slope).inverse
    sizes = [sum_(abs(x), 0).amax() for x in (slope, inverse)]
    limit = 0.1 / np.finfo(slope._a.dtype).eps
    return where(sizes[0] * sizes[1] < limit, inverse, np.nan)


class Equation:
    """A function of an unknown, and of arguments: as a search sees it, and as roots depend on it.

    `pair`: it returns its derivative, too, as a second result.
    """

    def __init__(self, name: str, f: Function, args: Any, start: Any, pair: bool = False) -> None:
        require_function(f, name)
        self.name, self.f, self.pair = name, f, pair
        self.args = args if isinstance(args, tuple) else (args,)
        leaves = flatten((self.args, start))[0]
        self.tensors = any(isinstance(x, Tensor) for x in leaves)
        kinds = [x._a.dtype for x in leaves if isinstance(x, Tensor) and x._a.dtype.kind == "f"]
        self.dtype = np.result_type(*kinds) if kinds else np.dtype(float)  # of roots
        self.checked = False  # whether no gradient is lost where no result is a Tensor
        self.fixed, self.start = stop_gradient((self.args, start))
        if self.tensors:
            self.fixed, self.start = tree_map(_in_double, (self.fixed, self.start))

    def with_function(self, f: Function) -> Equation:
        """Another equation, of the same arguments."""
        found = copy.copy(self)
        found.f, found.pair = f, False
        return found

    def known(self, x: Any) -> bool:
        """Whether a search has numbers to go by: not under `vmap` and `jit`."""
        if not any(at.size is not None or at.traces for at in current.tape.levels):
            return True
        given = np.asarray(x) if isinstance(x, (list, tuple)) and not self.tensors else x
        return not varies(flatten((self.start, self._searched(self.f, given)))[0])

    def _searched(self, f: Function, x: Any, *more: Any) -> Any:
        given = tensor(x) if self.tensors else x
        with no_grad():
            found = f(given, *more, *self.fixed)
        if type(found) is Tensor:
            self.tensors = True
            return found.detach()
        self.tensors = self.tensors or any(isinstance(t, Tensor) for t in flatten(found)[0])
        tape = current.tape
        if not (self.tensors or self.checked) and (tape.depth or tape.levels):
            self.checked = True
            f(given, *more, *self.fixed)  # raises if a number is made of what it reads from outside
        return stop_gradient(found)

    def plain(self, f: Any) -> Any:
        """A function for SciPy, of numbers; what is none passes."""
        return (lambda *x: numbers(self._searched(f, *x))) if callable(f) else f

    def derivative(self, x: Any, elementwise: bool = True) -> Any:
        """The gradient for SciPy, or the Jacobian; None of a function that takes no Tensors."""
        self._searched(self.f, x)
        of = self._of(self.fixed)
        slope = lambda x, *_: numbers(_constant_slope(of, tensor(x), elementwise))
        return slope if self.tensors else None

    def _of(self, args: tuple[Any, ...]) -> Function:
        """The function of the unknown alone."""
        return lambda x: tensor(self.f(x, *args)[0] if self.pair else self.f(x, *args))

    def search(self, shape: tuple[int, ...] | None = None) -> tuple[Function, Function]:
        """The value and the slope as constants, for a search that is made of operations.

        They are elementwise, or of vectors that stand for unknowns of a shape.
        """
        f = self._of(self.fixed)
        of = f if shape is None else _vectorial(f, shape)

        def value(x: Tensor) -> Any:
            with no_grad():
                return stop_gradient(of(x))

        return value, lambda x: _constant_slope(of, x, shape is None)

    def real(self, x: Any, kind: Any = float) -> Tensor:
        """A point as a Tensor."""
        t = tensor(x)
        if t._a.dtype.kind == "c":
            raise TypeError(
                f"`{self.name}` with Tensors finds real roots, got {t._a.dtype}: solve for the "
                "real and the imaginary part"
            )
        return t.to(kind)

    def root(self, x: Any, elementwise: bool = False, refined: bool = False) -> Any:
        """A root that was found, as it depends on what `f` reads; `refined` by the steps."""
        if not self.tensors:
            return x
        x0 = self.real(x, self.dtype)
        shape = x0._a.shape
        f = self._of(self.args)
        elementwise = elementwise or not shape
        if not elementwise:
            f, x0 = _vectorial(f, shape), reshape(x0, (-1,))
        y = f(x0)
        if on_tape(y) or any(at.size is None or at.traces for at in levels_of((y,))):
            zero = 0.0 if refined else stop_gradient(y)
            slope = _constant_slope(f, x0, elementwise).to(self.dtype)
            inverse = 1.0 / slope if elementwise else _inverse(slope)
            for k in range(max(ORDERS, 2 * current.tape.depth)):
                change = ((f(x0) if k else y) - zero).to(self.dtype)
                x0 = x0 - (inverse * change if elementwise else inverse @ change)
        return x0 if elementwise else reshape(x0, shape)
