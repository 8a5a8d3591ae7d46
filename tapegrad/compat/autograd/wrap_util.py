"""The names of `autograd.wrap_util`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.compat.autograd.operators import unary


def unary_to_nary(unary_operator: Callable[..., Any]) -> Callable[..., Any]:
    """Make an operator on functions of one argument work on those of several.

    The operator is called as ``unary_operator(fun, x)``; the result as ``operator(fun, argnum)``.

    >>> from tapegrad.compat.autograd import make_vjp
    >>> from tapegrad.compat.autograd.wrap_util import unary_to_nary
    >>> slope = unary_to_nary(lambda fun, x: make_vjp(fun)(x)[0](1.0))
    >>> slope(lambda x, y: x * y**2, 1)(2.0, 3.0)
    12.0
    """

    def operator(fun: Any, argnum: Any = 0, *op_args: Any, **op_kwargs: Any) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            of_one, x = unary(fun, argnum, args, kwargs)
            return unary_operator(of_one, x, *op_args, **op_kwargs)

        return call

    return operator


__all__ = ["unary_to_nary"]
