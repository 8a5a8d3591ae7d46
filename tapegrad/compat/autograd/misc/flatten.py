"""Containers of arrays as vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.transforms.pytree import ravel_pytree


def _sorted(value: Any) -> Any:
    if type(value) is dict:
        return {key: _sorted(value[key]) for key in sorted(value)}
    return type(value)(map(_sorted, value)) if type(value) in (list, tuple) else value


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """A vector of all numbers in nested containers, and the function that makes containers of it.

    The entries of a dict follow each other in the order of their keys.

    >>> import numpy as np
    >>> from tapegrad.compat.autograd.misc import flatten
    >>> flat, unflatten = flatten({"b": np.ones(2), "a": 3.0})
    >>> flat
    array([3., 1., 1.])
    >>> unflatten(2 * flat)
    {'a': 6.0, 'b': array([2., 2.])}
    """
    return ravel_pytree(_sorted(value))


def flatten_func(func: Callable[..., Any], example: Any) -> tuple[Any, Any, Any]:
    """A function of containers as one of vectors; with it the way back, and the example's vector.

    >>> from tapegrad.compat.autograd.misc.flatten import flatten_func
    >>> flat_func, unflatten, flat = flatten_func(lambda d: {"y": d["x"] ** 2}, {"x": 3.0})
    >>> flat_func(flat)
    array([9.])
    """
    flat, unflatten = flatten(example)
    return lambda x, *args: flatten(func(unflatten(x), *args))[0], unflatten, flat


__all__ = ["flatten", "flatten_func"]
