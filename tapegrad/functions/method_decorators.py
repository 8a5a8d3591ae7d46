"""Decorators that make a function a method of the Tensor, too."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar, cast

from tapegrad.dispatch.views import view_of
from tapegrad.functions.arguments import numpy_names

F = TypeVar("F", bound=Callable[..., Any])
Methods = dict[str, Callable[..., Any]]


def method(function: F, *names: str) -> F:
    """Make a function a method, under its own name or other ones."""
    marked: Any = function
    names = names or (function.__name__,)
    marked.methods = getattr(function, "methods", {}) | dict.fromkeys(names, function)
    return function


def axis_method(function: F) -> F:
    """Make a function a method; both also take `axis`, `keepdims` and `ddof`, NumPy's names."""
    return method(numpy_names(function))


def axis_view_method(function: F) -> F:
    """The same for a function that makes views."""
    plain: Any = function
    return method(cast("F", view_of(numpy_names(plain.__wrapped__))))


def methods_of(module: ModuleType) -> Methods:
    """The methods among the functions of a module."""
    found: Methods = {}
    for function in vars(module).values():
        if getattr(function, "__module__", None) == module.__name__:
            found |= getattr(function, "methods", {})
    return found
