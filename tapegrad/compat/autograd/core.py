"""The operators of `autograd.core`, on functions of one argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.compat.autograd import operators


def make_vjp(fun: Callable[[Any], Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    """The function from weights of the value to the gradient in `x`, and the value.

    >>> from tapegrad.compat.autograd.core import make_vjp
    >>> vjp, value = make_vjp(lambda x: x**2, 3.0)
    >>> vjp(1.0), value
    (6.0, 9.0)
    """
    found: tuple[Callable[[Any], Any], Any] = operators.make_vjp(fun)(x)
    return found


def make_jvp(fun: Callable[[Any], Any], x: Any) -> Callable[[Any], Any]:
    """The function from a tangent of `x` to the value and its tangent.

    >>> from tapegrad.compat.autograd.core import make_jvp
    >>> make_jvp(lambda x: x**2, 3.0)(1.0)
    (9.0, 6.0)
    """
    found: Callable[[Any], Any] = operators.make_jvp(fun)(x)
    return found


__all__ = ["make_jvp", "make_vjp"]
