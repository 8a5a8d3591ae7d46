"""The derivative operators of HIPS autograd, in terms of tapegrad's transforms."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.tensor import Tensor
from tapegrad.transforms import jacobians, reverse
from tapegrad.transforms.call_arguments import name_of
from tapegrad.transforms.checkpointing import checkpoint
from tapegrad.transforms.forward import jvp, linearize
from tapegrad.transforms.pickling import repeatable
from tapegrad.transforms.pytree import tree_map

Argnum = int | tuple[int, ...] | list[int]
Function = Callable[..., Any]


def _argnums(argnum: Any) -> Any:
    """`argnum` in tapegrad's form: HIPS takes a list as well as a tuple."""
    return tuple(argnum) if isinstance(argnum, list) else argnum


def unary(f: Function, argnum: Any, args: Any, kwargs: Any) -> tuple[Function, Any]:
    """A function of the chosen argument alone (or of a tuple of the chosen ones), and its value."""
    argnum = _argnums(argnum)

    def of_one(x: Any) -> Any:
        given = list(args)
        pairs = zip(argnum, x) if isinstance(argnum, tuple) else [(argnum, x)]
        for k, value in pairs:
            given[k] = value
        return f(*given, **kwargs)

    of_one.__name__ = name_of(f)
    x = tuple(args[k] for k in argnum) if isinstance(argnum, tuple) else args[argnum]
    return of_one, tree_map(_float, x)


def _float(leaf: Any) -> Any:
    """HIPS differentiates in arrays of integers, too, as in those of floats."""
    integers = isinstance(leaf, np.ndarray) and leaf.dtype.kind in "iu"
    return leaf.astype(float) if integers else leaf


def _of_floats(derivative: Function, argnum: Any) -> Function:
    """A derivative in one or several arguments, that may be arrays of integers."""

    @functools.wraps(derivative, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        given = list(args)
        for k in argnum if isinstance(argnum, tuple) else (argnum,):
            if -len(given) <= k < len(given):
                given[k] = tree_map(_float, given[k])
        return derivative(*given, **kwargs)

    return call


def _ones(x: Any) -> Any:
    def like(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            return np.ones(leaf.shape)
        return np.ones_like(leaf) if isinstance(leaf, np.ndarray) else 1.0

    return tree_map(like, x)


def _scalar(f: Function) -> Function:
    """`f` where HIPS takes an array of one element for a scalar."""

    @functools.wraps(f, updated=())
    def one(*args: Any, **kwargs: Any) -> Any:
        y = f(*args, **kwargs)
        shape = getattr(y, "shape", ())
        return y.reshape(()) if isinstance(shape, tuple) and set(shape) == {1} else y

    return one


@repeatable
def grad(fun: Function, argnum: Argnum = 0) -> Function:
    """The gradient of a scalar function in one argument, or in several (`argnum` a tuple).

    >>> import numpy as np
    >>> from tapegrad.compat.autograd import grad
    >>> grad(lambda x, y: x * y**2, argnum=1)(2.0, 3.0)
    12.0
    """
    return _of_floats(reverse.grad(_scalar(fun), _argnums(argnum)), _argnums(argnum))


@repeatable
def value_and_grad(fun: Function, argnum: Argnum = 0) -> Function:
    """The value and the gradient.

    >>> from tapegrad.compat.autograd import value_and_grad
    >>> value_and_grad(lambda x: x**2)(3.0)
    (9.0, 6.0)
    """
    return _of_floats(reverse.value_and_grad(_scalar(fun), _argnums(argnum)), _argnums(argnum))


@repeatable
def grad_and_aux(fun: Function, argnum: Argnum = 0) -> Function:
    """The gradient of the first of two results, and the second.

    >>> from tapegrad.compat.autograd import grad_and_aux
    >>> grad_and_aux(lambda x: (x**2, "more"))(3.0)
    (6.0, 'more')
    """
    return _of_floats(reverse.grad(fun, _argnums(argnum), has_aux=True), _argnums(argnum))


@repeatable
def grad_named(fun: Function, argname: str) -> Function:
    """The gradient in an argument given by its name.

    >>> from tapegrad.compat.autograd import grad_named
    >>> grad_named(lambda x, rate: x * rate, "rate")(2.0, 3.0)
    2.0
    """
    return grad(fun, list(inspect.signature(fun).parameters).index(argname))


@repeatable
def elementwise_grad(fun: Function, argnum: Argnum = 0) -> Function:
    """The derivative of each element of the result in its own element of the argument.

    More exactly the sums of the columns of the Jacobian.

    >>> import numpy as np
    >>> from tapegrad.compat.autograd import elementwise_grad
    >>> elementwise_grad(lambda x: x**3)(np.array([1.0, 2.0]))
    array([ 3., 12.])
    """

    @functools.wraps(fun, updated=())
    def columns(*args: Any, **kwargs: Any) -> Any:
        vjp, y = make_vjp(fun, argnum)(*args, **kwargs)
        return vjp(_ones(y))

    return columns


@repeatable
def deriv(fun: Function, argnum: Argnum = 0) -> Function:
    """The derivative along a vector of ones, by forward mode.

    >>> import numpy as np
    >>> from tapegrad.compat.autograd import deriv
    >>> deriv(lambda x: np.stack([x, x**2]))(3.0)
    array([1., 6.])
    """

    @functools.wraps(fun, updated=())
    def slope(*args: Any, **kwargs: Any) -> Any:
        of_one, x = unary(fun, argnum, args, kwargs)
        return jvp(of_one, (x,), (_ones(x),))[1]

    return slope


@repeatable
def jacobian(fun: Function, argnum: Argnum = 0) -> Function:
    """The Jacobian: the shape of the result followed by that of the argument.

    >>> import numpy as np
    >>> from tapegrad.compat.autograd import jacobian
    >>> jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    return _of_floats(jacobians.jacobian(fun, _argnums(argnum)), _argnums(argnum))


@repeatable
def hessian(fun: Function, argnum: int = 0) -> Function:
    """The Jacobian of the Jacobian, also where the function is not scalar.

    >>> import numpy as np
    >>> from tapegrad.compat.autograd import hessian
    >>> hessian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    return jacobian(jacobian(fun, argnum), argnum)


@repeatable
def make_vjp(fun: Function, argnum: Argnum = 0) -> Function:
    """The function that returns (vjp, value), where `vjp` takes weights for the value.

    >>> import numpy as np
    >>> from tapegrad.compat.autograd import make_vjp
    >>> vjp, value = make_vjp(np.sin)(0.0)
    >>> vjp(2.0), value
    (2.0, 0.0)
    """

    @functools.wraps(fun, updated=())
    def both(*args: Any, **kwargs: Any) -> tuple[Function, Any]:
        of_one, x = unary(fun, argnum, args, kwargs)
        y, pullback = reverse.vjp(of_one, x)
        return lambda g: pullback(g)[0], y

    return both


@repeatable
def make_jvp(fun: Function, argnum: Argnum = 0) -> Function:
    """The function that returns `jvp`, which takes a tangent and returns (value, derivative).

    >>> import numpy as np
    >>> from tapegrad.compat.autograd import make_jvp
    >>> make_jvp(np.sin)(0.0)(2.0)
    (0.0, 2.0)
    """

    @functools.wraps(fun, updated=())
    def at(*args: Any, **kwargs: Any) -> Function:
        of_one, x = unary(fun, argnum, args, kwargs)
        return lambda v: jvp(of_one, (x,), (v,))

    return at


@repeatable
def make_hvp(fun: Function, argnum: Argnum = 0) -> Function:
    """The function that returns (hvp, gradient), where `hvp` multiplies by the Hessian.

    >>> import numpy as np
    >>> from tapegrad.compat.autograd import make_hvp
    >>> hvp, gradient = make_hvp(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    >>> hvp(np.array([1.0, 0.0])), gradient
    (array([6., 0.]), array([ 3., 12.]))
    """
    return make_vjp(grad(fun, argnum), argnum)


@repeatable
def hessian_tensor_product(fun: Function, argnum: int = 0) -> Function:
    """The Hessian times an array: ``hessian_tensor_product(f)(*args, array)``.

    >>> import numpy as np
    >>> from tapegrad.compat.autograd import hessian_tensor_product
    >>> hessian_tensor_product(lambda x: np.sum(x**3))(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([ 6., 12.])
    """
    gradient = grad(fun, argnum)

    @functools.wraps(fun, updated=())
    def product(*args: Any, **kwargs: Any) -> Any:
        of_one, x = unary(gradient, argnum, args[:-1], kwargs)
        return jvp(of_one, (x,), (args[-1],))[1]

    return product


@repeatable
def tensor_jacobian_product(fun: Function, argnum: int = 0) -> Function:
    """An array times the Jacobian, over all dimensions of the array.

    >>> import numpy as np
    >>> from tapegrad.compat.autograd import tensor_jacobian_product
    >>> tensor_jacobian_product(lambda x: x**2)(np.array([1.0, 2.0]), np.array([1.0, 10.0]))
    array([ 2., 40.])
    """

    @functools.wraps(fun, updated=())
    def weighted(*args: Any, **kwargs: Any) -> Any:
        *given, array = args
        return np.tensordot(array, fun(*given, **kwargs), axes=np.ndim(array))

    return jacobian(weighted, argnum)


@repeatable
def make_ggnvp(
    f: Function, g: Function = lambda x: 0.5 * np.sum(x**2, axis=-1), f_argnum: int = 0
) -> Function:
    """Products with the generalized Gauss-Newton matrix of g(f(x)).

    >>> import numpy as np
    >>> from tapegrad.compat.autograd import make_ggnvp
    >>> make_ggnvp(lambda x: x**2)(np.array([1.0, 2.0]))(np.array([1.0, 1.0]))
    array([ 4., 16.])
    """

    def at(*args: Any, **kwargs: Any) -> Function:
        of_one, x = unary(f, f_argnum, args, kwargs)
        y, ahead = linearize(of_one, x)
        back, _ = make_vjp(of_one)(x)
        curvature, _ = make_hvp(g)(y)
        return lambda v: back(curvature(ahead(v)))

    return at


hessian_vector_product = hessian_tensor_product
vector_jacobian_product = tensor_jacobian_product

__all__ = [
    "checkpoint", "deriv", "elementwise_grad", "grad", "grad_and_aux", "grad_named", "hessian",
    "hessian_tensor_product", "hessian_vector_product", "jacobian", "make_ggnvp", "make_hvp",
    "make_jvp", "make_vjp", "tensor_jacobian_product", "value_and_grad", "vector_jacobian_product",
]  # fmt: skip
