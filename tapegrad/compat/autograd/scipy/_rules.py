"""SciPy's functions with rules: partial derivatives, written once for both directions."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.compat.autograd.extend import Primitive, defjvp, defvjp, primitive
from tapegrad.tensor import Tensor

Function = Callable[..., Any]


def scipy(path: str) -> Any:
    """What stands at a path of SciPy's, of which the parts are loaded when they are asked for."""
    module, *names = path.split(".")
    return functools.reduce(getattr, names, importlib.import_module(f"scipy.{module}"))


def elementwise(path: str, *partials: Function | None) -> Primitive:
    """A function of SciPy's with its partial derivatives, of the value and the arguments.

    None stands for an argument in which there is no derivative, which is refused.
    """
    known = [k for k, partial in enumerate(partials) if partial is not None]

    def computed(*args: Any, **kwargs: Any) -> Any:
        return scipy(path)(*args, **kwargs)

    computed.__name__ = computed.__qualname__ = path.rpartition(".")[2]
    computed.__doc__ = f"`scipy.{path}`, which is differentiable in its arguments {known}."
    made = primitive(computed)

    def back(k: int) -> Function:
        def vjp(ans: Any, *args: Any) -> Function:
            return lambda g: summed(g * partials[k](ans, *args), args[k])  # type: ignore[misc]

        return vjp

    def ahead(k: int) -> Function:
        return lambda g, ans, *args: g * partials[k](ans, *args)  # type: ignore[misc]

    defvjp(made, *map(back, known), argnums=known)
    defjvp(made, *map(ahead, known), argnums=known)
    return made


def summed(g: Any, x: Any) -> Any:
    """A gradient in the shape of an argument that was broadcast."""
    extra = np.ndim(g) - np.ndim(x)
    if extra:
        g = np.sum(g, axis=tuple(range(extra)))
    shape, found = np.shape(x), np.shape(g)
    axes = tuple([k for k, n in enumerate(shape) if n == 1 and found[k] != 1])
    return np.sum(g, axis=axes, keepdims=True) if axes else g


def composed(path: str) -> Callable[[Function], Function]:
    """Take a function that is made of operations for Tensors alone, and SciPy's for the rest."""

    def around(function: Function) -> Function:
        @functools.wraps(function)
        def either(*args: Any, **kwargs: Any) -> Any:
            for x in (*args, *kwargs.values()):
                if isinstance(x, Tensor):
                    return function(*args, **kwargs)
            return scipy(path)(*args, **kwargs)

        return either

    return around
